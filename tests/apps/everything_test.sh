#!/usr/bin/env bash
# everything_test.sh TRAIN FL: the MNIST program with every flag that goes with the others, all logs, dumps
# and pages at once, and with each check, trains as without, and writes them all.
set -euo pipefail
train=$PWD/$1 fl=$PWD/$2
cd "$TEST_TMPDIR"
plain=$("$train" --epochs=2 | grep 'test accuracy')
on=(FL_NUM_THREADS=2 FL_JIT=sync FL_LOG=5,log.txt FL_DUMP=dump FL_VIEW=view.html FL_PROFILE=trace.json
  FL_JIT_NAMES=on JITDUMPDIR="$PWD" FL_FLUSH_NODES=5000 FL_FLUSH_BYTES=1000000000 FL_CPU=x86-64-v3
  FL_ON_SYNC=warn FL_CHECK=verify FL_POISON=1 FL_CACHE=explain FL_CACHE_DIR="$PWD/kept"
  FL_CACHE_BYTES=1000000 FL_MEMORY_BUDGET=100000000 FL_MEMORY_DECAY=1 FL_TRIM=all FL_TUNE=1 FL_PLAN=all)
# The other flags, and why they are not: the other checks, guard among them, are values of FL_CHECK, and
# run by themselves below.
declare -A off=(
  [FL_BACKEND]='eager has no plans' [FL_DEVICE]='the others have no code of this machine'
  [FL_EMITTER]='mlir is for fl run' [FL_MLIR_PIPELINE]='so is its pipeline'
  [FL_SKIP]='leaves passes out' [FL_FAULT]='breaks something' [FL_CUDA_LIB]='is for a GPU'
)
for flag in $("$fl" doc flags | sed -n 's/^| `\(FL_[A-Z_]*\)` .*/\1/p'); do
  if [[ " ${on[*]}" != *" $flag="* && ! -v off[$flag] ]]; then
    echo "$flag is not switched on, without a reason" >&2
    exit 1
  fi
done
all=$(env "${on[@]}" "$train" --epochs=2 2>err.txt | grep 'test accuracy')
[[ $plain == "$all" ]] || {
  echo "$plain, but with everything switched on $all" >&2
  exit 1
}
grep -q '^after canonicalize:$' log.txt
ls dump/plan0000/*_pack.flir
grep -q '<html' view.html
grep -q 'library\|map \|rows ' .debug/jit/*/jit-*.dump
python3 -c 'import json; assert len(json.load(open("trace.json"))) > 100'
grep -q 'a read runs what is pending, at apps/mnist/Train.cpp:' err.txt
grep -q 'operators is new: it is the first' err.txt

# Each check, as the table of flags lists them; ref holds every operator, kernel and pass of the steps
# against the reference.
plain=$("$train" --epochs=1 | grep 'test accuracy')
checks=$("$fl" doc flags | sed -n 's/^| `FL_CHECK` |[^|]*| `\([^`]*\)` .*/\1/p' | tr '\\|' ' ')
count=0
for check in $checks; do
  checked=$(FL_CHECK=$check FL_JIT=sync "$train" --epochs=1 2>err.txt | grep 'test accuracy')
  if [[ $checked != "$plain" || -s err.txt ]]; then
    echo "FL_CHECK=$check: $checked, not $plain" >&2
    cat err.txt >&2
    exit 1
  fi
  ((++count))
done
((count >= 6))

poisoned=$(FL_POISON=1 FL_CHECK=guard FL_JIT=sync "$train" --epochs=1 | grep 'test accuracy')
[[ $poisoned == "$plain" ]]

# Operator by operator.
alone=$(FL_PLAN=none FL_JIT=sync "$train" --epochs=1 | grep 'test accuracy')
[[ $alone == "$plain" ]]

# More is computed again than without, and gives the same.
trimmed=$(FL_TRIM=all FL_JIT=sync FL_DUMP=trimmed "$train" --epochs=1 | grep 'test accuracy')
[[ $trimmed == "$plain" ]]
FL_JIT=sync FL_DUMP=kept "$train" --epochs=1 >/dev/null
steps() { cat "$1"/plan*/*_pack.flir | grep -cE '^  (launch|library) '; }
echo "$(steps trimmed) steps, without FL_TRIM=all $(steps kept)"
(($(steps trimmed) > $(steps kept)))
