#!/usr/bin/env bash
# viewer_test.sh DOCUMENT TRAIN FL: the commands of docs/viewer.md run.
set -euo pipefail
document=$PWD/$1 train=$PWD/$2 fl=$PWD/$3
cd "$TEST_TMPDIR"
commands=$(sed -n '/^```sh$/,/^```$/p' "$document" | sed '/^```/d' |
  sed "s|/tmp/|$TEST_TMPDIR/|g; s|bazel run //apps/mnist:train --|$train|; s|bazel run //tools:fl --|$fl|")
while read -r command; do
  echo "+ $command"
  bash -c "$command"
done <<<"$commands"
grep -q 'class="plan"' plans.html
grep -q 'class="plan"' live.html
grep -q 'subgraph cluster_0' plan.dot
