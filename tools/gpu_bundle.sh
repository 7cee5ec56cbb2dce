#!/usr/bin/env bash
# gpu_bundle.sh [FILE]: packs //tests:gpu, //benchmarks:gpu and //apps/mnist:train for a machine that has a
# GPU and its driver and nothing else: the programs, their data, the libraries that they need and NVRTC.
# cuBLASLt and cuDNN are too large; they are used where the machine has them, as PyTorch's packages bring
# them. Prints the command to run there.
set -euo pipefail
cd "$(dirname "$0")/.."
bundle=$(realpath -m "${1:-gpu_bundle.tar.xz}")
most=$((60 << 20))
cuda=${CUDA_HOME:-/usr/local/cuda}/lib64

bazel build //tests:gpu //benchmarks:gpu //apps/mnist:train
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
pack bazel-bin/apps/mnist/train train
cp -L "$cuda"/libnvrtc.so.13 "$cuda"/libnvrtc-builtins.so.13.* "$folder/fl_gpu/lib/"
cat >"$folder/fl_gpu/run" <<'RUN'
#!/bin/sh
# run tests [gtest flags]: what //tests:gpu tests. run benchmarks [--peers] [--json=FILE]: times.
# run train [flags]: trains apps/mnist's network on the GPU, on the digits that come with it.
here=$(cd "$(dirname "$0")" && pwd)
program=${1:?tests, benchmarks or train}
shift
for libraries in $(python3 -c 'import glob, site
for folder in site.getsitepackages() + [site.getusersitepackages()]:
    print(*glob.glob(folder + "/nvidia/*/lib"))' 2>/dev/null); do
  FL_CUDA_LIB=${FL_CUDA_LIB:+$FL_CUDA_LIB:}$libraries
done
export FL_CUDA_LIB="$here/lib${FL_CUDA_LIB:+:$FL_CUDA_LIB}" FL_JIT=sync FL_PLAN=all
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Of the libraries here, those that the machine lacks or has in another version, and what these need in
# turn: other programs, which inherit the path, have the machine's. NVRTC looks for its own by name.
mkdir "$scratch/lib"
ln -s "$here"/lib/libnvrtc-builtins.so.* "$scratch/lib/"
export LD_LIBRARY_PATH="$scratch/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
for round in 1 2 3 4; do
  for library in $(ldd "$here/$program" 2>&1 | sed -n \
      -e 's/^[[:space:]]*\([^ ]*\) => not found.*/\1/p' \
      -e 's/^[^ ]*: \([^ ]*\): version .* not found.*/\1/p'); do
    ln -sf "$here/lib/$(basename "$library")" "$scratch/lib/"
  done
done
export RUNFILES_DIR="$here/$program.runfiles" FL_CACHE_DIR="${FL_CACHE_DIR:-$scratch/cache}"
if [ "$program" = train ]; then
  export FL_DEVICE="${FL_DEVICE:-cuda}"
  set -- --save= --curve= "$@"  # what draws the curve may not be there
fi
"$here/$program" "$@"
RUN
chmod +x "$folder/fl_gpu/run"
# One behind the other, for a dictionary of 64 MiB to find how much of the programs is the same.
(cd "$folder" && tar -c fl_gpu/tests fl_gpu/benchmarks fl_gpu/train fl_gpu/run fl_gpu/lib fl_gpu/*.runfiles) |
  xz -9 -T0 >"$bundle"
size=$(stat -c %s "$bundle")
echo "$bundle: $((size >> 20)) MiB; on the machine with the GPU:"
echo "  tar xf $(basename "$bundle") && fl_gpu/run tests && fl_gpu/run benchmarks --json=gpu.json && fl_gpu/run train"
((size <= most)) || { echo "larger than $((most >> 20)) MiB" >&2; exit 1; }
