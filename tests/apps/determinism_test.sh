#!/usr/bin/env bash
# determinism_test.sh TRAIN FL: 20 processes with each of 1, 2 and 4 threads train for 225 steps and write
# the same model, to the bit. The first half plan and compile for themselves, while interpreted code runs;
# the others load what the first of them has kept.
set -euo pipefail
train=$PWD/$1
cd "$TEST_TMPDIR"
export FL_CACHE_DIR=$PWD/kept
for run in {1..20}; do
  cache=$( ((run > 10)) && echo on || echo off)
  for threads in 1 2 4; do
    FL_CACHE=$cache FL_NUM_THREADS=$threads "$train" --epochs=5 --curve= --save=model.bin >out.txt
    sha256sum model.bin >>sums.txt
  done
done
grep -q 'test accuracy' out.txt
((1 == $(sort -u sums.txt | wc -l)))
