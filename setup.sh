#!/usr/bin/env bash
# Installs the Debian 12 packages that the build, the tests and the tools need; with --peers also
# those that the benchmarks' --peers compares with.
# Safe to run again: it asks apt for nothing when all of them are there.
set -euo pipefail

packages=(
  # build: Bazel 4.2, the default compiler (gcc 12), and clang for the layering check
  bazel-bootstrap g++ clang-19 lld-19 libclang-rt-19-dev git python3
  # compiler inside the library, and FileCheck for its tests
  llvm-19 llvm-19-dev llvm-19-tools
  # libraries
  libdnnl-dev libabsl-dev libxxhash-dev libdw-dev libzstd-dev zlib1g-dev
  nlohmann-json3-dev libcereal-dev libzip-dev
  # tests and benchmarks
  libgtest-dev libgmock-dev libbenchmark-dev
  # learning curves
  gnuplot-nox
  # formatting
  clang-format-19
)

case "$*" in
  "") ;;
  --peers) packages+=(python3-torch libopenblas0-openmp) ;;
  *)
    echo "setup: usage: ./setup.sh [--peers]" >&2
    exit 1
    ;;
esac

installed() {
  [[ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" == installed ]]
}

missing=()
for package in "${packages[@]}"; do
  installed "$package" || missing+=("$package")
done

if ((${#missing[@]} == 0)); then
  echo "setup: all ${#packages[@]} packages are installed"
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  as_root=(sudo)
fi

echo "setup: installing ${missing[*]}"
# The environment is set behind sudo, which would drop it.
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)
"${apt[@]}" update </dev/null
"${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null
echo "setup: done"
