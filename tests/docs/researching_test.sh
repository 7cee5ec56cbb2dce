#!/usr/bin/env bash
# researching_test.sh PROGRAM DOCUMENT: the program of docs/researching.md prints what its comment
# says; its commands run, with the built programs in place of `bazel run`.
set -euo pipefail
output=$("$1")
[[ $output == '1 kernel, then 4' ]] || {
  echo "$output" >&2
  exit 1
}
while read -r command; do
  example=${command#bazel run //examples/}
  "examples/$example/$example"
done < <(sed -n '/^```sh$/,/^```$/p' "$2" | sed '/^```/d')
