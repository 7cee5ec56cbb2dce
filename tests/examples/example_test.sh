#!/usr/bin/env bash
# example_test.sh PROGRAM SOURCE LINES REGEX: the program succeeds and prints what matches; its source
# has fewer lines.
set -euo pipefail
output=$("$1")
echo "$output"
if [[ ! $output =~ ^$4$ ]]; then
  echo "that does not match: $4" >&2
  exit 1
fi
(($(wc -l <"$2") < $3))
