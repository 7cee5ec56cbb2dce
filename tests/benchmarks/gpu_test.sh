#!/usr/bin/env bash
# gpu_test.sh GPU: without a GPU, which the toolkit's stub of the driver has none of, it fails and says
# so in one sentence.
set -euo pipefail
mkdir "$TEST_TMPDIR/stub"
ln -s /usr/local/cuda/lib64/stubs/libcuda.so "$TEST_TMPDIR/stub/libcuda.so.1"
if FL_CUDA_LIB=$TEST_TMPDIR/stub "$1" --json="$TEST_TMPDIR/gpu.json" >"$TEST_TMPDIR/out" 2>&1; then
  exit 1
fi
[[ $(wc -l <"$TEST_TMPDIR/out") == 1 ]]
grep -Eq '^gpu: CUDA: fl is built for CUDA 13.0, and .*/libcuda.so.1 has no device' "$TEST_TMPDIR/out"
[[ ! -e $TEST_TMPDIR/gpu.json ]]
