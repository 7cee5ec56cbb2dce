#!/usr/bin/env bash
# replaced_add_test.sh PROGRAM SOURCE: the additions that the example counts are all that the plan of
# its step has, in under 30 lines.
set -euo pipefail
output=$(FL_DUMP=$TEST_TMPDIR/dump "$1")
echo "$output"
[[ $output =~ ^additions:\ forward\ ([0-9]+),\ backward\ ([0-9]+),\ optimizer\ ([0-9]+)\;\ loss ]]
counted=$((BASH_REMATCH[1] + BASH_REMATCH[2] + BASH_REMATCH[3]))
((BASH_REMATCH[1] > 0 && BASH_REMATCH[2] > 0 && BASH_REMATCH[3] > 0))
last=$(printf '%s\n' "$TEST_TMPDIR"/dump/plan* | tail -1)
recorded=$(grep -c ' = add ' "$last/00_recorded.flir")
if ((counted != recorded)); then
  echo "$recorded additions in the plan" >&2
  exit 1
fi
(($(wc -l <"$2") < 30))
