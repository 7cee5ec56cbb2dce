#!/usr/bin/env bash
# dump_test.sh TRAIN FL: two runs of the MNIST program dump the same text, every stage of every plan
# in it runs and gives what the reference gives, and bisect finds nothing wrong in a healthy one.
set -euo pipefail
train=$PWD/$1 fl=$PWD/$2
cd "$TEST_TMPDIR"
for run in first second; do
  FL_CACHE=off FL_JIT=sync FL_DUMP=$run "$train" --epochs=1 >/dev/null
done
diff -r first second
stages=0
for file in first/plan*/*.flir; do
  # Drawn inputs may be large, and what is left of their differences inexact.
  if ! output=$("$fl" run --check=ref --tolerance=1e-4 "$file" 2>&1); then
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
