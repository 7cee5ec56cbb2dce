#!/usr/bin/env bash
# gpu_bundle.sh [FILE]: packs //tests:gpu and //benchmarks:gpu for a machine that has a GPU and its driver
# and nothing else: the programs, their data, the libraries that they need and NVRTC. cuBLASLt and cuDNN
# are too large; they are used where the machine has them, as PyTorch's packages bring them. Prints the
# command to run there.
set -euo pipefail
cd "$(dirname "$0")/.."
bundle=$(realpath -m "${1:-gpu_bundle.tar.xz}")
most=$((60 << 20))
cuda=${CUDA_HOME:-/usr/local/cuda}/lib64

bazel build //tests:gpu //benchmarks:gpu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/fl_gpu/lib"
# pack PROGRAM NAME: with its data; and the libraries, but what every Linux machine has: mixing C
# libraries fails.
pack() {
  cp -L "$1" "$folder/fl_gpu/$2"
  cp -rL "$1.runfiles" "$folder/fl_gpu/$2.runfiles"
  rm -f "$folder/fl_gpu/$2.runfiles"/*/"${1#bazel-bin/}"  # the program, once more
  rm -f "$folder/fl_gpu/$2.runfiles/MANIFEST"             # paths of this machine
  strip "$folder/fl_gpu/$2"
  ldd "$1" | awk '$3 ~ /^\// { print $3 }' |
    grep -Ev '/(libc|libm|libdl|libpthread|librt|libgcc_s|libstdc\+\+)\.so' |
    xargs -I{} cp -L {} "$folder/fl_gpu/lib/"
}
pack bazel-bin/tests/runtime/cuda/gpu tests
pack bazel-bin/benchmarks/gpu benchmarks
cp -L "$cuda"/libnvrtc.so.13 "$cuda"/libnvrtc-builtins.so.13.* "$folder/fl_gpu/lib/"
cat >"$folder/fl_gpu/run" <<'RUN'
#!/bin/sh
# run tests [gtest flags]: what //tests:gpu tests. run benchmarks [--peers] [--json=FILE]: times.
here=$(cd "$(dirname "$0")" && pwd)
program=${1:?tests or benchmarks}
shift
for libraries in $(python3 -c 'import glob, site
for folder in site.getsitepackages() + [site.getusersitepackages()]:
    print(*glob.glob(folder + "/nvidia/*/lib"))' 2>/dev/null); do
  FL_CUDA_LIB=${FL_CUDA_LIB:+$FL_CUDA_LIB:}$libraries
done
export FL_CUDA_LIB="$here/lib${FL_CUDA_LIB:+:$FL_CUDA_LIB}" FL_JIT=sync
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export RUNFILES_DIR="$here/$program.runfiles" FL_CACHE_DIR="${FL_CACHE_DIR:-$(mktemp -d)}"
exec "$here/$program" "$@"
RUN
chmod +x "$folder/fl_gpu/run"
tar -C "$folder" -c fl_gpu | xz -6 -T0 >"$bundle"
size=$(stat -c %s "$bundle")
echo "$bundle: $((size >> 20)) MiB; on the machine with the GPU:"
echo "  tar xf $(basename "$bundle") && fl_gpu/run tests && fl_gpu/run benchmarks --json=gpu.json"
((size <= most)) || { echo "larger than $((most >> 20)) MiB" >&2; exit 1; }
