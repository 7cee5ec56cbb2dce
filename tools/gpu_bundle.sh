#!/usr/bin/env bash
# gpu_bundle.sh [FILE]: packs //tests:gpu for a machine that has a GPU and its driver and nothing else:
# the program, its data, the libraries that it needs and NVRTC. Prints the one command to run there.
set -euo pipefail
cd "$(dirname "$0")/.."
bundle=$(realpath -m "${1:-gpu_bundle.tar.xz}")
most=$((60 << 20))
cuda=${CUDA_HOME:-/usr/local/cuda}/lib64

bazel build //tests:gpu
built=bazel-bin/tests/runtime/cuda
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/fl_gpu/lib"
cp -rL $built/gpu $built/gpu.runfiles "$folder/fl_gpu/"
rm -f "$folder"/fl_gpu/gpu.runfiles/*/tests/runtime/cuda/gpu  # the program, once more
rm -f "$folder"/fl_gpu/gpu.runfiles/MANIFEST                    # paths of this machine
strip "$folder/fl_gpu/gpu"
# What every Linux machine has stays out: mixing C libraries fails.
ldd $built/gpu | awk '$3 ~ /^\// { print $3 }' |
  grep -Ev '/(libc|libm|libdl|libpthread|librt|libgcc_s|libstdc\+\+)\.so' |
  xargs -I{} cp -L {} "$folder/fl_gpu/lib/"
cp -L "$cuda"/libnvrtc.so.13 "$cuda"/libnvrtc-builtins.so.13.* "$folder/fl_gpu/lib/"
cat >"$folder/fl_gpu/run" <<'RUN'
#!/bin/sh
# run [gtest flags]
here=$(cd "$(dirname "$0")" && pwd)
export LD_LIBRARY_PATH="$here/lib" FL_CUDA_LIB="$here/lib" FL_JIT=sync
export RUNFILES_DIR="$here/gpu.runfiles" FL_CACHE_DIR="${FL_CACHE_DIR:-$(mktemp -d)}"
exec "$here/gpu" "$@"
RUN
chmod +x "$folder/fl_gpu/run"
tar -C "$folder" -c fl_gpu | xz -6 -T0 >"$bundle"
size=$(stat -c %s "$bundle")
echo "$bundle: $((size >> 20)) MiB; on the machine with the GPU:"
echo "  tar xf $(basename "$bundle") && fl_gpu/run"
((size <= most)) || { echo "larger than $((most >> 20)) MiB" >&2; exit 1; }
