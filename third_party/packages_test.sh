#!/usr/bin/env bash
# setup.sh installs every package that a library's rule asks for.
set -euo pipefail
setup=$1
shift
bash -n "$setup"

# Optional libraries, which setup.sh leaves to the user.
optional='^(cuda-|libcudnn|libnccl|libgloo)'
asked=$(sed -nE 's/.*: "([a-z0-9.+-]+)",?\}?,?$/\1/p' "$@" | sort -u | grep -vE "$optional")
echo "asked for:" $asked
[[ $(wc -w <<<"$asked") -ge 10 ]]
status=0
for package in $asked; do
  grep -qE "(^| )$package( |\$)" "$setup" || {
    echo "$package is missing from setup.sh"
    status=1
  }
done
exit $status
