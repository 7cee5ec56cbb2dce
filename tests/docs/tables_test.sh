#!/usr/bin/env bash
# tables_test.sh FL PAGES...: each page is what `fl doc` prints now.
set -euo pipefail
fl=$PWD/$1
shift
for page in "$@"; do
  name=$(basename "$page" .md)
  if ! "$fl" doc "$name" | diff "$page" -; then
    echo "docs/$name.md is stale: bazel run //tools:fl -- doc $name >docs/$name.md" >&2
    exit 1
  fi
done
# What is no page is said.
if output=$("$fl" doc kernels 2>&1) || [[ $output != *'doc: "kernels" is not ops, passes or flags'* ]]; then
  echo "$output" >&2
  exit 1
fi
