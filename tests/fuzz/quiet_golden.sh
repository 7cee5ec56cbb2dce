#!/usr/bin/env bash
# quiet_golden.sh FL FILE: golden.sh, and nothing on stderr, where a plan that fails is told of.
set -euo pipefail
errors=$(tests/golden.sh "$@" 2>&1)
if [[ -n $errors ]]; then
  echo "$errors" >&2
  exit 1
fi
