#!/usr/bin/env bash
# flags_test.sh README FLAGS: the variables of the README's table are those of Flags.def.
set -euo pipefail
diff <(grep -o '^| `FL_[A-Z_]*`' "$1" | grep -o 'FL_[A-Z_]*' | sort) \
  <(grep -o '^FL_FLAG([a-zA-Z]*, "FL_[A-Z_]*"' "$2" | grep -o '"FL_[A-Z_]*' | tr -d '"' | sort)
