#!/usr/bin/env bash
# run_test.sh FL: `fl run` runs graphs, schedules and kernels, finds what differs from the
# reference, reads and writes NumPy's files, words bad input.
set -euo pipefail
fl=$PWD/$1
cd "$TEST_TMPDIR"
unset BUILD_WORKING_DIRECTORY  # the tool would go there where `bazel run` runs this test

cat >softmax.flir <<'GRAPH'
graph @softmax(%x: f32[40,7], %s: number f32, %i: number s64, %j: number s64) {
  %0 = mul %x, %s : f32[40,7]
  %1 = amax %0 {keepDims=1, axes=[0]} : f32[1,7]
  %2 = sub %0, %1 : f32[40,7]
  %3 = exp %2 : f32[40,7]
  %4 = sum %3 {keepDims=1, axes=[0]} : f32[1,7]
  %5 = div %3, %4 : f32[40,7]
  %6 = slice %5, %i, %j {rank=2, sizesThenStrides=[40,7,-1,1]} : f32[40,7]
  return %5, %6
}
GRAPH
expect() { # expect CODE PATTERN ARGUMENTS...
  local code=$1 pattern=$2 output actual=0
  shift 2
  output=$("$fl" run "$@" 2>&1) || actual=$?
  if ((actual != code)) || ! grep -Eq -- "$pattern" <<<"$output"; then
    echo "fl run $*: exit code $actual and" >&2
    echo "$output" >&2
    echo "not $code and $pattern" >&2
    exit 1
  fi
}

# The columns of a softmax add up to 1, in each form; a schedule and a kernel are compiled, or not.
"$fl" opt softmax.flir >schedule.flir
sed -n '/^kernel @k0/,/^}/p' schedule.flir >kernel.flir
ones='^result 0 f32\[40,7\]: sum (7|7\.0000[0-9]*|6\.9999[0-9]*)$'
for file in softmax.flir schedule.flir kernel.flir; do
  flags=()
  [[ $file == kernel.flir ]] && flags=(--extents=40,7)
  for device in cpu ref; do
    expect 0 "$ones" "${flags[@]}" --device=$device --seed=3 $file
  done
  FL_JIT=off expect 0 "$ones" "${flags[@]}" $file
  expect 0 '^result 0 f32\[40,7\]: sum 0$' "${flags[@]}" --device=null $file
  expect 0 '^result 0 f32\[40,7\]: difference [0-9.e-]+$' "${flags[@]}" --check=ref $file
  expect 2 'difference [0-9.e-]+, too large$' "${flags[@]}" --check=ref --tolerance=0 $file
  expect 1 '^fl: --check: the device null computes nothing to compare$' "${flags[@]}" \
    --device=null --check=ref $file
  FL_DEVICE=null expect 1 '^fl: --check: the device null computes nothing to compare$' \
    "${flags[@]}" --device= --check=ref $file
  expect 0 '^time: [0-9.e+]+ us, median of 3 runs; [0-9.e+-]+ GB/s of [0-9]+ bytes$' \
    "${flags[@]}" --time=3 $file
done
expect 0 '^inputs: p0 f32\[40,7\] drawn with seed 3, p1 f32\[\] drawn with seed 3, p2 s64' \
  --seed=3 softmax.flir
# All kernels of a graph are compiled before it runs, which is what the log's last line tells.
FL_CACHE=off FL_LOG=3,log.txt expect 0 '^result 0 ' softmax.flir
[[ $(grep -cE '^kernel compiled [0-9.e-]+ ms: [a-z]+_[a-zA-Z_]+_[0-9a-f]{8}$' log.txt) == \
  "$(grep -c '^kernel @' schedule.flir)" && $(tail -1 log.txt) == 'realize: '* ]] || {
  cat log.txt >&2
  exit 1
}
# A dump says in front which numbers its first run had; files go before that.
{ echo '// numbers: p1=0.5 p2=39 p3=0' && cat softmax.flir; } >numbers.flir
expect 0 '^inputs: p0 .* drawn with seed 0, p1 f32\[\] recorded as 0.5, p2 s64\[\] recorded as 39, p3' \
  numbers.flir
expect 0 '^result 1 f32\[40,7\]: difference [0-9.e-]+$' --check=ref numbers.flir
for word in p0=1 p1=half p2=0.5 p9=1 p1; do
  { echo "// numbers: $word" && cat softmax.flir; } >bad.flir
  expect 1 "^fl: the comment of numbers: \"$word\" gives none of p0 f32\[40,7\], p1 f32\[\], p2" bad.flir
done
# A slice that runs backwards begins where it fits.
expect 0 '^result 1 f32\[40,7\]: difference [0-9.e-]+$' --check=ref softmax.flir
expect 0 '^result 1 f32\[40,7\]: difference [0-9.e-]+$' --check=ref schedule.flir
expect 0 '^result 0 .*: difference 0$' --backend=eager --device=ref --check=ref softmax.flir
expect 0 '^check: differences allowed, .*: f64 1e-12, f32 1e-05, f16 0.01, bf16 0.05, others 0$' \
  --check=ref softmax.flir
expect 0 'f32 0.5' --check=ref --tolerance=0.5 softmax.flir
# A result is as good as the inputs it comes from.
cat >widened.flir <<'GRAPH'
graph @widened(%x: f32[99]) {
  %0 = erf %x : f32[99]
  %1 = astype %0 {dtype=f64} : f64[99]
  return %1
}
GRAPH
expect 0 '^result 0 f64\[99\]: difference [0-9.]+e-0[6-9]$' --check=ref widened.flir
expect 0 '^result 0 f32\[16,16\]: sum' kernel.flir
expect 0 '^result 0 f32\[0,7\]: sum 0' --extents=0,7 kernel.flir

# What a run writes, another reads under the parameters' names; what is left out is drawn.
cat >types.flir <<'GRAPH'
graph @types(%a: b8[3], %b: s64[2,3], %c: bf16[4], %d: number f16, %e: f64[]) {
  %0 = logicalNot %a : b8[3]
  %1 = negative %b : s64[2,3]
  %2 = astype %c {dtype=f32} : f32[4]
  %3 = astype %d {dtype=f32} : f32[]
  %4 = negative %e : f64[]
  return %a, %b, %c, %0, %1, %2, %3, %4
}
GRAPH
expect 0 '^result 2 bf16\[4\]: difference 0$' --outputs=out.npz --check=ref types.flir
# What is rounded to 16 bits within may differ by that.
cat > within.flir <<'END'
graph @f(%a: f32[65536]) {
  %x = astype %a {dtype=f16} : f16[65536]
  %0 = tanh %x : f16[65536]
  %1 = astype %0 {dtype=f32} : f32[65536]
  return %1
}
END
expect 0 '^result 0 f32\[65536\]: difference 0\.000[0-9]+$' --check=ref within.flir
sed '/return/s/%c, .*/%c/' types.flir >given.flir
expect 0 '' --outputs=r.npz given.flir
LC_ALL=C sed 's/r\([0-2]\)\.npy/p\1.npy/g' r.npz >p.npz
expect 0 'p2 bf16\[4\] from p.npz, p3 f16\[\] drawn with seed 9' --seed=9 --inputs=p.npz types.flir
sums=$("$fl" run types.flir | grep '^result [0-2]')
[[ $("$fl" run --seed=9 --inputs=p.npz types.flir | grep '^result [0-2]') == "$sums" ]]
cat >pair.flir <<'GRAPH'
graph @pair(%a: f32[3], %b: f32[3]) {
  %0 = negative %a : f32[3]
  %1 = sub %a, %b : f32[3]
  return %0, %1
}
GRAPH
npy() { # npy FILE DESCR SHAPE: an array of zeros
  local header="{'descr': '$2', 'fortran_order': False, 'shape': $3, }"
  { printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "$header" && head -c "$4" /dev/zero; } >"$1"
}
npy zeros.npy '<f4' '(3,)' 12
npy wide.npy '<f8' '(3,)' 24
npy long.npy '<f4' '(4,)' 16
expect 0 '^result 1 f32\[3\]: sum 0$' --inputs=zeros.npy,zeros.npy --outputs=r.npz pair.flir
cp zeros.npy also.npy
expect 0 '^inputs: p0 f32\[3\] from zeros.npy, p1 f32\[3\] from also.npy$' \
  --inputs=zeros.npy,also.npy pair.flir
sed 's/pair(%a: f32\[3\], %b: f32\[3\])/pair(%a: f32[3], %b: f32[3], %c: f32[3])/' pair.flir >three.flir
expect 1 '^fl: r.npz: "r0" is no parameter; there are: p0 f32\[3\], p1 f32\[3\]$' --inputs=r.npz pair.flir

# `bazel run` starts the tool elsewhere; paths are meant from where the user stands.
mkdir elsewhere
(cd elsewhere && BUILD_WORKING_DIRECTORY=$TEST_TMPDIR expect 0 '^result 1 f32\[3\]: sum 0$' \
  --inputs=zeros.npy,zeros.npy --outputs=from_elsewhere.npz pair.flir)
[[ -e from_elsewhere.npz ]]

# Input errors.
expect 1 '^fl: --inputs: 1 file for p0 f32\[3\], p1 f32\[3\]$' --inputs=zeros.npy pair.flir
expect 1 '^fl: --inputs: 2 files for p0 f32\[3\], p1 f32\[3\], p2 f32\[3\]$' \
  --inputs=zeros.npy,zeros.npy three.flir
expect 1 '^fl: wide.npy: is f64\[3\], but p1 is f32\[3\]$' --inputs=zeros.npy,wide.npy pair.flir
expect 1 '^fl: long.npy: is f32\[4\], but p0 is f32\[3\]$' --inputs=long.npy,zeros.npy pair.flir
expect 1 '^fl: nowhere.npy: cannot be opened$' --inputs=nowhere.npy,zeros.npy pair.flir
expect 1 '^fl: nowhere.npz: No such file$' --inputs=nowhere.npz pair.flir
expect 1 '^fl: --inputs: x.txt: expected files of .npy, or one .npz$' --inputs=x.txt pair.flir
echo PNG >broken.npy
expect 1 '^fl: broken.npy: is no .npy file' --inputs=broken.npy,zeros.npy pair.flir
expect 1 '^fl: --outputs: r.npy: expected a name that ends in .npz$' --outputs=r.npy pair.flir
expect 1 '^fl: /nowhere/r.npz: ' --outputs=/nowhere/r.npz pair.flir
expect 1 '^fl: kernel.flir: --extents has 1, but the kernel.s rank is 2$' --extents=3 kernel.flir
expect 1 '^fl: kernel.flir: --extents: one is negative$' --extents=3,-1 kernel.flir
expect 1 '^fl: --extents: "x" is no integer$' --extents=3,x kernel.flir
expect 1 '^fl: --extents: is for a kernel, not a graph$' --extents=3,4 softmax.flir
expect 1 '^fl: --check: "cpu" is not ref$' --check=cpu softmax.flir
for tolerance in -1 nan inf; do
  expect 1 "^fl: --tolerance: $tolerance is no number from 0 on$" --check=ref \
    --tolerance=$tolerance softmax.flir
done
expect 1 '^fl: --time: -1 is negative$' --time=-1 softmax.flir
for file in softmax.flir schedule.flir; do
  expect 1 '^fl: device "gpu" does not exist; there are: cpu,( cuda,)? null, ref$' --device=gpu $file
  expect 1 '^fl: backend "tape" does not exist; there are: eager, lazy$' --backend=tape $file
done
expect 1 '^fl: run: expected one file$'
expect 1 '^fl: nowhere.flir: cannot be read$' nowhere.flir
expect 1 '^fl: \.: cannot be read: it is a directory$' .
echo 'graph @g(%x: f32[2]) { %0 = exq %x : f32[2] }' >bad.flir
expect 1 '^fl: bad.flir:1:29: "exq" is no op$' bad.flir
expect 1 '^                            \^$' bad.flir
echo 'tree @t' >tree.flir
expect 1 '^fl: tree.flir:1:1: expected "graph", "schedule" or "kernel", not "tree"$' tree.flir

# Drawn indices fit; others are told, on both devices. A kernel alone does not say what it may read.
cat >gather.flir <<'GRAPH'
graph @gather(%x: f32[2,8], %i: s64[8], %j: s64[1,1]) {
  %0 = reshape %i {shape=[1,8]} : s64[1,8]
  %1 = gather %x, %0 {axis=0} : f32[1,8]
  %2 = transpose %j {axes=[1,0]} : s64[1,1]
  %3 = scatterAdd %x, %0, %1 {axis=0} : f32[2,8]
  %4 = gather %1, %2 {axis=0} : f32[1,8]
  return %1, %3, %4
}
GRAPH
"$fl" opt gather.flir >lookup.flir
for file in gather.flir lookup.flir; do
  for seed in 1 2 3; do
    expect 0 '^result 2 f32\[1,8\]: difference 0$' --check=ref --seed=$seed $file
  done
done
# What is wrong with the log is no fault of the inputs.
FL_LOG=x expect 1 '^fl: FL_LOG: "x" is no integer$' softmax.flir
FL_LOG=1,/nowhere/log expect 1 '^fl: FL_LOG: cannot write /nowhere/log$' softmax.flir
# An index that is computed may not fit what was drawn.
cat >computed.flir <<'GRAPH'
graph @computed(%x: f32[2,8], %i: s64[1,8]) {
  %0 = add %i, %i : s64[1,8]
  %1 = mul %0, %0 : s64[1,8]
  %2 = gather %x, %1 {axis=0} : f32[1,8]
  return %2
}
GRAPH
expect 1 '^fl: index: f32\[2,8\]: -?[0-9]+ is out of range for dimension 0 of 2 elements; inputs that are drawn need not fit .*: give them by --inputs$' \
  --check=ref computed.flir
npy table.npy '<f4' '(2, 8)' 64
npy zeros8.npy '<i8' '(8,)' 64
npy column.npy '<i8' '(1, 1)' 8
{ head -c 184 zeros8.npy && printf '\x03\0\0\0\0\0\0\0'; } >bad8.npy
expect 0 '^result 0 f32\[1,8\]: sum 0$' --inputs=table.npy,zeros8.npy,column.npy lookup.flir
expect 1 '^fl: index: f32\[2,8\]: 3 is out of range for dimension 0 of 2 elements$' \
  --inputs=table.npy,bad8.npy,column.npy gather.flir
for device in cpu ref; do
  expect 1 '^fl: a lookup found the index 3, out of range for 2$' --device=$device \
    --inputs=table.npy,bad8.npy,column.npy lookup.flir
done
sed -n '/^kernel @k0/,/^}/p' lookup.flir >lookup_kernel.flir
grep -q gather lookup_kernel.flir
expect 1 'lookup_kernel.flir: the kernel gathers, and what it may read is not in its text' \
  lookup_kernel.flir

# Numbers that take a box out of its buffer are refused.
cat >slice.flir <<'GRAPH'
graph @slice(%x: f32[9], %i: number s64) {
  %0 = slice %x, %i {rank=1, sizesThenStrides=[4,2]} : f32[4]
  return %0
}
GRAPH
"$fl" opt slice.flir >box.flir
npy nine.npy '<f4' '(9,)' 36
npy zero.npy '<i8' '()' 8
{ head -c 128 zero.npy && printf '\x03\0\0\0\0\0\0\0'; } >three.npy
expect 0 'sum 0$' --inputs=nine.npy,zero.npy box.flir
expect 1 '^fl: the numbers given make step 0 touch elements 3 to 9 of 9$' \
  --inputs=nine.npy,three.npy box.flir

# So are those that take a call out of it, what it reads or writes, and those of a call's box.
schedule() { # schedule NUMBER LIBRARY: a step with the numbers p2=NUMBER.
  cat <<END
// numbers: p2=$1
schedule @s arena=0 bound=0 {
  parameter f32[9]
  parameter f32[4]
  parameter number s64
  parameter number f32
  output f32[9] over p0
  output f32[4] over p1
  library $2
}
END
}
for number in 6 -1 9223372036854775807; do
  schedule $number 'reshape {shape=[4]} (p0+0+1*p2: f32[4]) -> o1: f32[4]' >read.flir
  schedule $number 'reshape {shape=[4]} (p1: f32[4]) -> o0+0+1*p2: f32[4]' >written.flir
  for file in read.flir written.flir; do
    expect 1 '^fl: the numbers given make step 0 touch elements -?[0-9]+ to [0-9]+ of 9$' $file
  done
  schedule $number 'slice {rank=1, sizesThenStrides=[4,1]} (p0: f32[9], p2: s64[]) -> o1: f32[4]' \
    >boxes.flir
  schedule $number 'update {rank=1, strides=[1]} (p0: f32[9], p1: f32[4], p2: s64[]) -> o0: f32[9]' \
    >boxes_written.flir
  for file in boxes.flir boxes_written.flir; do
    expect 1 '^fl: the number given as p2, -?[0-9]+, lets step 0 reach out of the 9 elements of dim' $file
  done
done
for file in read.flir boxes.flir; do
  sed -i 's/^\/\/ numbers.*/\/\/ numbers: p2=5/' $file
  expect 0 '^result 1 f32\[4\]: difference 0$' --check=ref $file
  sed -i '/numbers/d; s/,1\]} (p0/,-2]} (p0/' $file
  expect 0 '^result 1 f32\[4\]: difference 0$' --check=ref $file
done
schedule 0 'exp (p3: f32[4]) -> o1: f32[4]' >number.flir
expect 1 '^fl: number.flir:9:3: not valid: step 0 uses parameter 3, a number, as f32\[4\]$' number.flir
expect 1 '^fl: kernel.flir: --extents: there are more elements than can be counted$' \
  --extents=4294967296,4294967296 kernel.flir
# A launch's number may be too large to count with, and the starts of a slice may stand in its text.
sed '1i// numbers: p1=9223372036854775807' box.flir >far.flir
expect 1 '^fl: the numbers given make step 0 touch elements -9223372036854775808 to [0-9]+ of 9$' \
  --inputs= far.flir
"$fl" opt --pass=canonicalize - >stated.flir <<'GRAPH'
graph @slice(%x: f32[9]) {
  %0 = slice %x {rank=1, sizesThenStrides=[4,1,2]} : f32[4]
  return %0
}
GRAPH
expect 0 '^result 0 f32\[4\]: difference 0$' --check=ref stated.flir

# Where memory does not suffice, the largest value is named.
cat >huge.flir <<'GRAPH'
graph @huge(%x: f32[1000000]) {
  %0 = reshape %x {shape=[1,1000000]} : f32[1,1000000]
  %1 = broadcast %0 {shape=[100000000,1000000]} : f32[100000000,1000000]
  %2 = cumsum %1 {axis=0} : f32[100000000,1000000]
  return %2
}
GRAPH
words='its values do not fit into memory; the largest is'
expect 1 "^fl: huge.flir: $words %1 f32\[100000000,1000000\], 400000000000000 bytes$" huge.flir
echo 'graph @wide(%x: f64[100000000000000]) { return %x }' >wide.flir
expect 1 "^fl: wide.flir: $words p0 f64\[100000000000000\], 800000000000000 bytes$" wide.flir
{
  echo 'schedule @s arena=0 bound=0 {'
  for _ in 1 2; do echo ' temporary bytes=4611686018427387904 first=0 last=1 offset=0'; done
  echo '}'
} >intervals.flir
expect 1 "^fl: intervals.flir: $words temporary 0, 4611686018427387904 bytes$" intervals.flir
words="p0 f32\[1000000000000\], 4000000000000 bytes"
echo 'graph @much(%x: f32[1000000000000]) { %0 = exp %x : f32[1000000000000] return %0 }' >much.flir
expect 1 "^fl: much.flir: .* do not fit into memory; the largest is $words$" much.flir
for command in bisect "view --time=1 --page=much.html"; do
  output=$("$fl" $command much.flir 2>&1) && exit 1
  grep -Eq "^fl: much.flir: .* do not fit into memory; the largest is $words$" <<<"$output" || {
    echo "fl $command: $output" >&2
    exit 1
  }
done
# A wrong flag is found before anything is drawn.
FL_DEVICE=foo expect 1 '^fl: FL_DEVICE: device "foo" does not exist[^;]*; there are: [^;]*$' wide.flir
expect 1 '^fl: device "gpu" does not exist' --device=gpu wide.flir

# Starts that are given have to fit, in every mode; those that are drawn do.
cat >starts.flir <<'GRAPH'
graph @starts(%x: f32[8], %y: f32[3], %i: number s64, %j: number s64) {
  %0 = slice %x, %i {rank=1, sizesThenStrides=[4,-2]} : f32[4]
  %1 = update %x, %y, %j {rank=1, strides=[2]} : f32[8]
  return %0, %1
}
GRAPH
sed 's/%0 = slice %x, %i/%0 = add %i, %i : s64[]\n  %1 = slice %x, %0/; s/%1 = update/%2 = update/; s/return .*/return %1, %2/' \
  starts.flir >computed.flir
npy eight.npy '<f4' '(8,)' 32
npy three.npy '<f4' '(3,)' 12
number() { # number NAME BYTES
  npy "$1" '<i8' '()' 0
  printf "$2" >>"$1"
}
number six.npy '\6\0\0\0\0\0\0\0'
number five.npy '\5\0\0\0\0\0\0\0'
number three_.npy '\3\0\0\0\0\0\0\0'
number far.npy '\0\0\0\0\0\0\0\177'
number minus.npy '\377\377\377\377\377\377\377\377'
for how in --backend=lazy --backend=eager --device=ref; do
  expect 0 '^result 0 f32\[4\]: sum 0$' $how --inputs=eight.npy,three.npy,six.npy,three_.npy starts.flir
  for start in five far minus; do
    expect 1 "^fl: the number given as p2, -?[0-9]+, lets slice %0 reach out of the 8 elements of dimension 0$" \
      $how --inputs=eight.npy,three.npy,$start.npy,three_.npy starts.flir
    [[ $start == five ]] && continue
    expect 1 "^fl: the number given as p3, -?[0-9]+, lets update %1 reach out of the 8 elements of dimension 0$" \
      $how --inputs=eight.npy,three.npy,six.npy,$start.npy starts.flir
  done
  expect 1 '^fl: slice %1: its starts have to be parameters that are numbers$' $how computed.flir
done
expect 0 '^result 1 f32\[8\]: difference 0$' --check=ref starts.flir

# Through MLIR run graphs that would be compiled, lowered by any pipeline that leaves functions to call.
export FL_EMITTER=mlir
expect 0 "$ones" --seed=3 softmax.flir
for file in softmax.flir gather.flir; do
  expect 0 '^result 1 .*: difference [0-9.e-]+$' --check=ref --seed=3 $file
  FL_MLIR_PIPELINE='builtin.module(func.func(cse),fl-lower)' \
    expect 0 '^result 1 .*: difference [0-9.e-]+$' --check=ref --seed=3 $file
done
expect 1 '^fl: index: f32\[2,8\]: 3 is out of range for dimension 0 of 2 elements$' \
  --inputs=table.npy,bad8.npy,column.npy gather.flir
FL_MLIR_PIPELINE="$("$fl" run --help | grep '^builtin.module(')" expect 0 "$ones" --seed=3 softmax.flir
wrong() { # wrong PIPELINE WORDS
  FL_MLIR_PIPELINE=$1 expect 1 "^fl: mlir: $2" softmax.flir
  FL_MLIR_PIPELINE=$1 expect 0 "$ones" --backend=eager --seed=3 softmax.flir
}
wrong 'canonicalize' "the pipeline: expected pass pipeline to be wrapped with the anchor operation type"
wrong 'builtin.module(frob)' "the pipeline: .*'frob' does not refer to a registered pass"
wrong 'func.func(canonicalize)' 'the pipeline: it is none of builtin.module'
wrong 'builtin.module(func.func(fl-lower))' 'the pipeline: .*fl-lower has passes over modules: it stands in builtin.module alone'
wrong 'builtin.module(canonicalize)' 'compiling: cannot be converted to LLVM IR'
# What cannot be called is not.
for pass in 'func.func(llvm-request-c-wrappers),' 'buffer-results-to-out-params,'; do
  FL_MLIR_PIPELINE=$("$fl" run --help | grep '^builtin.module(' | sed "s/$pass//") \
    expect 1 '^fl: mlir: the pipeline: it leaves no function g that returns nothing and has a C wrapper of 6 descriptors$' \
    softmax.flir
done
for arguments in schedule.flir "--extents=40,7 kernel.flir"; do
  expect 1 '^fl: FL_EMITTER=mlir: runs graphs, no schedule or kernel$' $arguments
done
# Other kernels are ours, and that is said, once.
words=$("$fl" bisect softmax.flir 2>&1 >/dev/null)
(($(grep -cxF 'fl: FL_EMITTER=mlir: `fl run` alone has MLIR run graphs; kernels are ours' <<<"$words") == 1))
FL_EMITTER=gcc expect 1 '^fl: FL_EMITTER: "gcc" is not one of llvm\|mlir$' softmax.flir
unset FL_EMITTER

# Output that is lost is an error.
if words=$("$fl" run softmax.flir 2>&1 >/dev/full) ||
  [[ $words != "fl: standard output: cannot be written; not all of it is there" ]]; then
  echo "fl run softmax.flir >/dev/full: exit code 0, or $words" >&2
  exit 1
fi
