#!/usr/bin/env bash
# memory_test.sh PROGRAM DOCUMENT TRAIN FL TIMELINE: the program of docs/memory.md has the same loss
# within its budget, is refused the small one and has the memory manager's log; the document's
# commands run.
set -euo pipefail
program=$PWD/$1 document=$PWD/$2 train=$PWD/$3 fl=$PWD/$4 timeline=$PWD/$5
output=$("$program")
fail() {
  echo "$1: $output" >&2
  exit 1
}
[[ $(head -1 <<<"$output") =~ ^([0-9.e-]+)\ ([0-9.e-]+)$ ]] || fail "no two losses"
[[ ${BASH_REMATCH[1]} == "${BASH_REMATCH[2]}" ]] || fail "the losses differ"
grep -q "do not fit the budget of 102400 bytes: " <<<"$output" || fail "no refusal"
[[ $output =~ nativeAlloc\ 2097152\ ([0-9]+).*alloc\ 4000\ 0\ ([0-9]+).*unlock\ ([0-9]+)\ 0\ 4000 ]] || fail "no log"
[[ ${BASH_REMATCH[1]} == "${BASH_REMATCH[2]}" && ${BASH_REMATCH[1]} == "${BASH_REMATCH[3]}" ]] || fail "other blocks"
grep -q "^device 0: 0 B in use, 4096 B kept for reuse" <<<"$output" || fail "no information"

cd "$TEST_TMPDIR"
if ! /usr/bin/python3 -c 'import matplotlib' 2>/dev/null; then
  echo "matplotlib is not installed, so nothing is drawn"
  timeline=true
fi
commands=$(sed -n '/^```sh$/,/^```$/p' "$document" | sed '/^```/d' |
  sed "s|/tmp/|$TEST_TMPDIR/|g; s|bazel run //apps/mnist:train --|$train|; s|bazel run //tools:fl --|$fl|
    s|tools/memory_timeline.py|$timeline|")
while read -r command; do
  echo "+ $command"
  bash -c "$command"
done <<<"$commands"
grep -q '"steps"' plan.json
