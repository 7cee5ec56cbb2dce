#!/usr/bin/env bash
# everything_test.sh TRAIN: the MNIST program with every log, dump, check and page at once trains as
# without, and writes them all.
set -euo pipefail
train=$PWD/$1
cd "$TEST_TMPDIR"
plain=$("$train" --epochs=2 | grep 'test accuracy')
all=$(FL_LOG=5,log.txt FL_DUMP=dump FL_VIEW=view.html FL_PROFILE=trace.json FL_JIT_NAMES=on JITDUMPDIR=$PWD FL_CHECK=verify \
  FL_CACHE=explain FL_ON_SYNC=warn FL_JIT=sync FL_MEMORY_BUDGET=100000000 FL_FLUSH_NODES=5000 \
  "$train" --epochs=2 2>err.txt | grep 'test accuracy')
[[ $plain == "$all" ]] || {
  echo "$plain, but with everything switched on $all" >&2
  exit 1
}
grep -q '^after canonicalize:$' log.txt
ls dump/plan0000/14_pack.flir
grep -q '<html' view.html
grep -q 'library\|map \|rows ' .debug/jit/*/jit-*.dump
python3 -c 'import json; assert len(json.load(open("trace.json"))) > 100'
grep -q 'a read runs what is pending, at apps/mnist/Train.cpp:' err.txt
grep -q 'operators is new: it is the first' err.txt

# Every operator, kernel and pass of its steps against the reference.
checked=$(FL_CHECK=ref FL_JIT=sync "$train" --epochs=1 | grep 'test accuracy')
[[ $checked == "$("$train" --epochs=1 | grep 'test accuracy')" ]]
