#!/usr/bin/env bash
# Installs the Debian 12 packages that the build, the tests and the tools need; with --peers also
# what the benchmarks' --peers compares with: Debian's PyTorch, and newest ones of PyPI in a virtual
# environment, ~/.cache/fl-peers (6 GB).
# Safe to run again: it asks apt for nothing when all of them are there.
set -euo pipefail

packages=(
  # build: Bazel 4.2, the default compiler (gcc 12), and clang for the layering check
  bazel-bootstrap g++ clang-19 lld-19 libclang-rt-19-dev git python3
  # compiler inside the library, and FileCheck for its tests
  llvm-19 llvm-19-dev llvm-19-tools
  # the second emitter of the tool, and what verifies its text
  libmlir-19-dev mlir-19-tools
  # libraries
  libdnnl-dev libabsl-dev libxxhash-dev libdw-dev libzstd-dev zlib1g-dev
  nlohmann-json3-dev libcereal-dev libzip-dev libhwy-dev
  # the page of `fl view`, and what its test opens it and its DOT with
  node-d3 node-dagre-layout chromium-headless-shell graphviz
  # tests and benchmarks
  libgtest-dev libgmock-dev libbenchmark-dev
  # what kernels have names for
  gdb linux-perf
  # learning curves, and charts of the benchmarks
  gnuplot-nox python3-matplotlib
  # formatting
  clang-format-19
)

peers_environment="${HOME}/.cache/fl-peers"
peers=false
case "$*" in
  "") ;;
  --peers)
    packages+=(python3-torch libopenblas0-openmp python3-venv)
    peers=true
    ;;
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

install_missing() {
  local as_root=()
  if ((EUID != 0)); then
    as_root=(sudo)
  fi
  echo "setup: installing ${missing[*]}"
  # The environment is set behind sudo, which would drop it.
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq
    -o DPkg::Lock::Timeout=300)
  "${apt[@]}" update </dev/null
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null
}

if ((${#missing[@]} > 0)); then
  install_missing
fi
if "${peers}"; then
  requirements="$(dirname "$0")/benchmarks/peers/requirements.txt"
  echo "setup: installing $(paste -sd ' ' "${requirements}") in ${peers_environment}"
  /usr/bin/python3 -m venv "${peers_environment}"
  "${peers_environment}/bin/pip" install --quiet --requirement "${requirements}"
fi
echo "setup: all ${#packages[@]} packages are installed"
