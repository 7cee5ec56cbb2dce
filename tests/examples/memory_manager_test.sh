#!/usr/bin/env bash
# memory_manager_test.sh PROGRAM SOURCE: the example trains the same with its manager, which serves
# every step, in under 100 lines.
set -euo pipefail
output=$("$1")
echo "$output"
[[ $output =~ ^loss\ ([0-9.e-]+),\ with\ our\ manager\ ([0-9.e-]+)\;\ ([0-9]+)\ allocations,\ at\ most\ ([0-9]+)\ bytes$ ]]
[[ ${BASH_REMATCH[1]} == "${BASH_REMATCH[2]}" ]]
((BASH_REMATCH[3] >= 50 && BASH_REMATCH[4] >= 64 * 256 * 4))
(($(wc -l <"$2") < 100))
