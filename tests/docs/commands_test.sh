#!/usr/bin/env bash
# commands_test.sh PAGE: the commands of docs/performance.md, which take hours, are benchmarks with flags
# that these take.
set -euo pipefail
commands=$(sed -n '/^```bash$/,/^```$/p' "$1" | grep '^bazel ')
while read -r command; do
  echo "+ $command"
  [[ $command =~ ^bazel\ run\ //(benchmarks:[a-z_]+)(\ --\ (.*))?$ ]]
  program=${BASH_REMATCH[1]/:/\/}
  # Help ends with an exit code of 1.
  output=$(bash -c "$program ${BASH_REMATCH[3]:-} --help" 2>&1) || true
  if [[ $output != "$(basename "$program"): "* ]]; then
    echo "$output" >&2
    exit 1
  fi
done <<<"$commands"
(($(wc -l <<<"$commands") >= 10))
