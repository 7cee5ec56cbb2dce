#!/usr/bin/env bash
# adding_test.sh FL: the commands of docs/adding.md renew pages that are stale.
set -euo pipefail
readonly copy=$TEST_TMPDIR/copy
mkdir "$copy"
cp -RL docs fl tools "$copy"
chmod -R u+w "$copy"
mkdir -p "$copy/bazel-bin/tools"
cp "$1" "$copy/bazel-bin/tools/fl"
cd "$copy"
for page in ops passes flags modules; do echo stale >"docs/$page.md"; done
PATH=$copy/bazel-bin/tools:$PATH
eval "$(sed -n '/^```sh$/,/^```$/p' docs/adding.md | sed '/^```/d')"
cd - >/dev/null
for page in ops passes flags modules; do
  diff "docs/$page.md" "$copy/docs/$page.md"
done
