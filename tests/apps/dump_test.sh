#!/usr/bin/env bash
# dump_test.sh TRAIN FL: runs of the MNIST program dump the same text, with what is kept on disk too, every
# stage of every plan in it runs and gives what the reference gives, and bisect finds nothing wrong in a
# healthy one.
set -euo pipefail
train=$PWD/$1 fl=$PWD/$2
cd "$TEST_TMPDIR"
dump() { FL_CACHE=$2 FL_CACHE_DIR=$PWD/kept FL_JIT=sync FL_DUMP=$1 "$train" --epochs=1 >/dev/null; }
dump first off
dump second off
dump cold on
# All kernels are on disk now.
kept=$(find kept -type f | wc -l)
((kept > 10))
dump warm on
((kept == $(find kept -type f | wc -l)))
for run in second cold warm; do diff -r first $run; done
stages=0
for file in first/plan*/*.flir; do
  if ! output=$("$fl" run --check=ref "$file" 2>&1); then
    echo "$file: $output" >&2
    exit 1
  fi
  ((++stages))
done
# Every step has its line.
if grep -hE '^  (launch|library) ' first/plan*/*_pack.flir | grep -v '  // [a-zA-Z/]*\.[a-z]*:[0-9]'; then exit 1; fi
"$fl" bisect first/plan0000/00_recorded.flir 2>/dev/null | grep -qx '// no pass changes a result'
echo "$stages stages"
((stages >= 100 && stages % ($("$fl" opt --list | wc -l) + 1) == 0))
