#!/usr/bin/env bash
# commands_test.sh PERFORMANCE CUDA: the commands of docs/performance.md, which take hours, and of
# docs/cuda.md, which take a GPU, are benchmarks with flags that these take, and the tests of a GPU, which
# themselves are among all tests.
set -euo pipefail
commands=$(sed -n '/^```\(ba\)\?sh$/,/^```$/p' "$@" | grep '^bazel ')
for_gpu='bazel test //tests:gpu --test_output=all'
(($(grep -cxF "$for_gpu" <<<"$commands") == 1))
commands=$(grep -vxF "$for_gpu" <<<"$commands")
while read -r command; do
  echo "+ $command"
  [[ $command =~ ^bazel\ run\ (-c\ opt\ )?//(benchmarks:[a-z_]+)(\ --\ (.*))?$ ]]
  program=${BASH_REMATCH[2]/:/\/}
  # Help ends with an exit code of 1.
  output=$(bash -c "$program ${BASH_REMATCH[4]:-} --help" 2>&1) || true
  if [[ $output != "$(basename "$program"): "* ]]; then
    echo "$output" >&2
    exit 1
  fi
done <<<"$commands"
(($(wc -l <<<"$commands") >= 10))
