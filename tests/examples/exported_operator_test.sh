#!/usr/bin/env bash
# exported_operator_test.sh EXAMPLE FL: what the example of a custom operator dumps, forward, backward
# and all that its suite runs, a process computes that knows nothing of the operator.
set -euo pipefail
example=$PWD/$1 fl=$PWD/$2
cd "$TEST_TMPDIR"
unset BUILD_WORKING_DIRECTORY  # the tool would go there where `bazel run` runs this test
FL_CACHE=off FL_JIT=sync FL_DUMP=dump "$example"
plans=0
for plan in dump/plan*; do
  for stage in "$plan"/00_recorded.flir "$plan"/*_pack.flir; do
    if ! output=$("$fl" run --check=ref "$stage" 2>&1); then
      echo "$stage: $output" >&2
      exit 1
    fi
  done
  ((++plans))
done
((plans >= 8))
# The numbers of its first step, the sigmoid's among them, are there, and taken.
step=dump/plan0001/00_recorded.flir
grep -qE '^// numbers: .*p[0-9]+=1( |$)' $step
output=$("$fl" run $step)
grep -qE 'p[0-9]+ f32\[\] recorded as 1(,|$)' <<<"$output"
if grep -q gated dump/plan*/*.flir; then exit 1; fi
