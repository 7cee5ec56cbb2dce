#!/usr/bin/env bash
# modules_test.sh MODULES_PY: docs/modules.md is what the comments of the modules make of it; that is
# noticed where it is not, and where a module lacks its comment.
set -euo pipefail
"$1" --check

copy=$TEST_TMPDIR/copy
cp -RL . "$copy"
chmod -R u+w "$copy"
cd "$copy"
expect_failure() {
  if output=$("$1" --check 2>&1) || [[ $output != *"$2"* ]]; then
    echo "expected '$2', not: $output" >&2
    exit 1
  fi
}
sed -i 's/^\/\/ max(x, 0)$/\/\/ x, or 0/' fl/nn/modules/Activations.h
expect_failure "$1" "docs/modules.md is stale"
sed -i '/^class GELU/i\\' fl/nn/modules/Activations.h
sed -i '/REGISTER_TYPE(fl::Tanh)/d' fl/nn/modules/Activations.cpp
expect_failure "$1" "GELU, Tanh: a module is registered and has its shapes above it"
