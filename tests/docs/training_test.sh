#!/usr/bin/env bash
# training_test.sh PROGRAM: the program of docs/training.md learns and leaves its model.
set -euo pipefail
program=$(realpath "$1")
cd "$TEST_TMPDIR"
losses=$("$program")
awk 'NR == 1 { first = $1 } { last = $1 } END { exit !(NR == 100 && last < 0.5 * first) }' <<<"$losses" || {
  echo "the program does not learn: $losses" >&2
  exit 1
}
[[ -s model.bin ]]
