#!/usr/bin/env bash
# compile_test.sh PROGRAM: the program of docs/compile.md learns, and runs its recurrence.
set -euo pipefail
output=$("$1")
awk 'NR == 1 { exit !($2 < 0.2 * $1) }' <<<"$output" || {
  echo "the program does not learn: $output" >&2
  exit 1
}
numbers=$(tail -n +2 <<<"$output" | grep -oE -- '-?[0-9]+\.[0-9]+' | wc -l)
[[ $numbers -eq 8 ]] || {
  echo "not eight numbers: $output" >&2
  exit 1
}
