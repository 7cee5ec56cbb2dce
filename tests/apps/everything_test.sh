#!/usr/bin/env bash
# everything_test.sh TRAIN FL: the MNIST program with every log, dump and page at once, and with each
# check, trains as without, and writes them all.
set -euo pipefail
train=$PWD/$1 fl=$PWD/$2
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

# More is computed again than without, and gives the same.
trimmed=$(FL_TRIM=all FL_JIT=sync FL_DUMP=trimmed "$train" --epochs=1 | grep 'test accuracy')
[[ $trimmed == "$plain" ]]
FL_JIT=sync FL_DUMP=kept "$train" --epochs=1 >/dev/null
steps() { cat "$1"/plan*/*_pack.flir | grep -cE '^  (launch|library) '; }
echo "$(steps trimmed) steps, without FL_TRIM=all $(steps kept)"
(($(steps trimmed) > $(steps kept)))
