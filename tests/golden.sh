#!/usr/bin/env bash
# golden.sh FL FILE: runs the tool as FILE's first line says (`// RUN: opt --pass=cse`), compares with
# the CHECK lines.
set -euo pipefail
fl=$1 file=$2
unset BUILD_WORKING_DIRECTORY  # the tool would go there where `bazel run` runs this test
flags=$(sed -n '1s|^// RUN: ||p' "$file")
if [[ -z $flags ]]; then
  echo "$file: its first line is no // RUN: line" >&2
  exit 1
fi
# shellcheck disable=SC2086  # the line is split into words
"$fl" $flags "$file" | FileCheck-19 "$file"
