#!/usr/bin/env bash
# memory_test.sh FL TIMELINE: what `fl memory` prints of a plan, and its drawing.
set -euo pipefail
fl=$PWD/$1
timeline=$PWD/$2
cd "$(mktemp -d)"
export MPLCONFIGDIR=$PWD  # a folder that it can write to, or it says so
fail() {
  echo "FAIL: $*"
  exit 1
}

cat >plan.flir <<'END'
graph @f(%x: f32[25,20], %w: f32[20,40], %w2: f32[50,25], %w3: f32[30,50], %w4: f32[2,30]) {
  %a = matmul %x, %w : f32[25,40]
  %b = matmul %w2, %a : f32[50,40]
  %c = matmul %w3, %b : f32[30,40]
  %d = matmul %w4, %c : f32[2,40]
  return %d
}
END
"$fl" memory plan.flir >plan.json
tr -d ' \n' <plan.json >plain
step() { echo "{\"name\":\"matmul\",\"alive\":$1}"; }
buffer() { echo "{\"name\":\"matmul\",\"bytes\":$1,\"first\":$2,\"last\":$3,\"offset\":$4}"; }
wanted='{"arena":12800,"bound":12800,"ratio":1.0,"recorded":12800,"unplanned":16832,'
wanted+="\"steps\":[$(step 4032),$(step 12032),$(step 12800),$(step 4800)],"
wanted+="\"buffers\":[$(buffer 4032 0 1 0),$(buffer 8000 1 2 4800),$(buffer 4800 2 3 0)]}"
[[ $(<plain) == "$wanted" ]] || fail "$(<plain) is not $wanted"

# A schedule gives the same.
"$fl" opt plan.flir >schedule.flir
"$fl" memory schedule.flir | cmp - plan.json

# What a call works in is a buffer of its step.
cat >sort.flir <<'END'
graph @f(%x: f32[1000]) {
  %0 = argsort %x {axis=0, count=1000} : s64[1000]
  return %0
}
END
"$fl" memory sort.flir | tr -d ' \n' >plain
wanted='{"arena":8000,"bound":8000,"ratio":1.0,"recorded":8000,"unplanned":8000,'
wanted+='"steps":[{"name":"argsort","alive":8000}],'
wanted+='"buffers":[{"name":"scratchmemoryofargsort","bytes":8000,"first":0,"last":0,"offset":0}]}'
[[ $(<plain) == "$wanted" ]] || fail "$(<plain) is not $wanted"

# Intervals alone have steps without names.
echo 'schedule @s arena=0 bound=64 { temporary bytes=64 first=0 last=1 offset=0 }' >intervals.flir
"$fl" opt --pass=pack intervals.flir | "$fl" memory - >intervals.json
tr -d ' \n' <intervals.json >plain
grep -qF '"steps":[{"name":"","alive":64},{"name":"","alive":64}]' plain || fail "$(<plain)"
# Their sum is what they take without a plan, and no order was recorded.
grep -qF '"ratio":1.0,"unplanned":64,"steps"' plain || fail "$(<plain)"
# The bound is what is alive at most, whatever the text says.
sed 's/bound=64/bound=0/' intervals.flir | "$fl" memory - | tr -d ' \n' >plain
grep -qF '{"arena":64,"bound":64,"ratio":1.0,' plain || fail "$(<plain)"

# What is not packed lies end to end, aligned as the bound has it: no arena is below that.
{
  echo 'schedule @s arena=0 bound=0 {'
  echo ' temporary bytes=1 first=0 last=1 offset=0'
  echo ' temporary bytes=63 first=0 last=1 offset=0'
  echo ' temporary bytes=65 first=1 last=2 offset=0'
  echo '}'
} >unpacked.flir
"$fl" memory unpacked.flir | tr -d ' \n' >plain
grep -qF '{"arena":256,"bound":256,"ratio":1.0,"unplanned":129,' plain || fail "$(<plain)"
grep -qF '"bytes":65,"first":1,"last":2,"offset":128}' plain || fail "$(<plain)"

echo 'kernel @k rank=1 reduced=[] { operand output f32 [1] scalar f32 %0 = scalar 0 : f32 stage { store 0 %0 } }' >kernel.flir
"$fl" memory kernel.flir 2>err && fail "a kernel has no memory"
grep -q "kernel.flir: is a kernel, which has no temporaries" err || fail "$(<err)"
"$fl" memory 2>err && fail "no file"
grep -q "memory: expected one file" err || fail "$(<err)"

# expect_refusal WORDS ARGUMENT...: one line of them, and 1.
expect_refusal() {
  local words=$1 code=0
  shift
  "$timeline" "$@" 2>err || code=$?
  [[ $code == 1 && $(<err) == "memory_timeline.py: $words" ]] || fail "$code: $(<err)"
}
mkdir without
echo 'raise ImportError("none here")' >without/matplotlib.py
PYTHONPATH=without expect_refusal \
  "none here; setup.sh installs what /usr/bin/python3 needs" plan.json plan.svg

if ! /usr/bin/python3 -c 'import matplotlib' 2>/dev/null; then
  echo "matplotlib is not installed, so nothing is drawn"
  exit 0
fi
"$timeline" plan.json plan.svg
grep -q "arena 12.8 kB, bound 12.8 (ratio 1.000), as recorded 12.8, unplanned 16.83" plan.svg ||
  fail "the title of $(head -c 2000 plan.svg)"
"$timeline" intervals.json intervals.svg
grep -q "arena 64 bytes, bound 64 (ratio 1.000), unplanned 64" intervals.svg ||
  fail "the title of $(head -c 2000 intervals.svg)"
grep -q ">bound<" plan.svg || fail "no bound"
"$timeline" plan.json again.svg
cmp plan.svg again.svg

expect_refusal "missing.json: No such file or directory" missing.json plan.svg
expect_refusal "missing/plan.svg: No such file or directory" plan.json missing/plan.svg
for text in '{}' '[]' '{"arena": "x"}' '{"arena": 1, "buffers": [1]}' 'arena' ''; do
  echo "$text" >wrong.json
  expect_refusal "wrong.json: is not what \`fl memory\` prints" wrong.json plan.svg
done
printf '\xff' >wrong.json
expect_refusal "wrong.json: is not what \`fl memory\` prints" wrong.json plan.svg
"$timeline" plan.json plan.what 2>err && fail "no such format"
grep -q "^memory_timeline.py: plan.what: Format 'what' is not supported" err || fail "$(<err)"
(($(wc -l <err) == 1)) || fail "$(<err)"
