#!/usr/bin/env bash
# composite_test.sh PROGRAM: the program of docs/composite.md computes the same fused and alone.
set -euo pipefail
output=$("$1")
[[ $output == 0 ]] || {
  echo "not the same: $output" >&2
  exit 1
}
