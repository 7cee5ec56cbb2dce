#!/usr/bin/env bash
# readme_test.sh README EXAMPLE TRAIN FL: runs the README's program and, line by line, its block of
# commands, with the built programs in place of `bazel run`; the training for less long.
set -euo pipefail
readme=$PWD/$1 example=$PWD/$2 train=$PWD/$3 fl=$PWD/$4

# The program learns: its last loss is below its first.
losses=$("$example")
if ! awk 'NR == 1 { first = $1 } END { exit !(NR == 100 && $1 < first) }' <<<"$losses"; then
  echo "the README's program does not learn: $losses" >&2
  exit 1
fi

# On a new machine: .ci/run runs the second as it stands.
first=$(sed -n '/^```bash$/,/^```$/p' "$readme" | sed '/^```/d')
if [[ $first != $'./setup.sh && bazel run //apps/mnist:train\n./setup.sh && bazel test //...' ]]; then
  echo "other commands for a new machine: $first" >&2
  exit 1
fi
cd "$TEST_TMPDIR"
training=$("$train" --epochs=2)
if [[ $training != *"test accuracy: "*% ]]; then
  echo "the training prints: $training" >&2
  exit 1
fi

# A program written for Flashlight, for the line that changes its includes.
printf '#include "flashlight/fl/%s.h"\n' runtime/Stream tensor/backend/af/mem/MemoryManagerAdapter tensor/Index >program.cpp
touch program.h
commands=$(sed -n '/^```sh$/,/^```$/p' "$readme" | sed '/^```/d' |
  sed "s|/tmp/|$TEST_TMPDIR/|g; s|bazel run //apps/mnist:train --|$train|; s|bazel run //tools:fl --|$fl|
    s|bazel build //tools:fl|mkdir -p bazel-bin/tools \\&\\& ln -s $fl bazel-bin/tools|")
while read -r command; do
  echo "+ $command"
  output=$(bash -c "$command" 2>&1)
  if [[ -z $output && $command != sed* ]]; then
    echo "it prints nothing" >&2
    exit 1
  fi
done <<<"$commands"

changed=$(cat program.cpp)
if [[ $changed != $'#include "fl/device/Stream.h"\n#include "fl/runtime/MemoryManagerAdapter.h"\n#include "fl/tensor/Index.h"' ]]; then
  echo "the includes of a program for Flashlight become: $changed" >&2
  exit 1
fi
