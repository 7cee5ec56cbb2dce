#!/usr/bin/env bash
# vector_math_test.sh VECTOR_MATH: a pass over some numbers prints, and leaves the file of all of them
# alone.
set -euo pipefail
output=$TEST_TMPDIR/accuracy.md
echo "of all numbers" >"$output"
printed=$("$1" --stride=300000001 --threads=1 --output="$output" 2>/dev/null)
grep -Eq '^exp +f32 +[0-9.]+ ULP at ' <<<"$printed"
[[ $(<"$output") == "of all numbers" ]]
