#!/usr/bin/env bash
# opt_test.sh FL: what `fl opt` prints, where it says an error is, and its exit codes.
set -uo pipefail
fl=$PWD/$1
cd "$TEST_TMPDIR"
unset BUILD_WORKING_DIRECTORY  # the tool would go there where `bazel run` runs this test
failures=0

fail() {
  echo "FAIL: $*" >&2
  failures=$((failures + 1))
}

# run CODE ARGUMENTS...: output and errors go to files; the exit code must be CODE.
run() {
  local expected=$1 code=0
  shift
  command_line="fl $*"
  "$fl" "$@" >out 2>err || code=$?
  [[ $code == "$expected" ]] || fail "$command_line: exit code $code, not $expected: $(cat err)"
}

# says FILE TEXT: the last command's out or err has TEXT.
says() {
  grep -qF -- "$2" "$1" || fail "$command_line: no \"$2\" in $1: $(head -20 "$1")"
}

# prints_nothing FILE
prints_nothing() {
  [[ ! -s $1 ]] || fail "$command_line: $1 is not empty: $(head -5 "$1")"
}

cat >good.flir <<'END'
graph @f(%x: f32[4,8], %n: number f32) {
  %0 = mul %x, %n : f32[4,8]
  %1 = mul %x, %n : f32[4,8]
  %2 = add %0, %1 : f32[4,8]
  %3 = sum %2 {axes=[0]} : f32[8]
  return %3
}
END
cat >bad.flir <<'END'
graph @f(%x: f32[4,8]) {
  %0 = exp %x : f32[4,8]
  %1 = frob %0 : f32[4,8]
  return %1
}
END
cat >shapes.flir <<'END'
graph @f(%x: f32[4,8], %y: f32[3]) {
  %0 = add %x, %y : f32[4,8]
  return %0
}
END

run 0 opt good.flir
says out "schedule @s arena=0 bound=0 {"
says out "launch 0 extents=[4,8]"
prints_nothing err
cp out schedule.flir

# The outcome is a form that it reads, and prints the same.
run 0 opt schedule.flir
cmp -s out schedule.flir || fail "a schedule does not print as it was read"
sed -n '/^kernel/,/^}/p' schedule.flir | sed 's/@k0/@k/' >kernel.flir
run 0 opt kernel.flir
cmp -s out kernel.flir || fail "a kernel does not print as it was read"
run 0 opt - <good.flir
cmp -s out schedule.flir || fail "standard input gives another outcome"

run 0 opt --pass=cse good.flir
says out "%1 = add %0, %0 : f32[4,8]"
run 0 opt --stop_after=fuse good.flir
says out "// fuse space=(4, 8) reduced=[0]: mul%0 add%1 sum%2"
run 0 opt --skip=fuse good.flir
[[ $(grep -c launch out) == 3 ]] || fail "--skip=fuse: a launch for each node: $(cat out)"
run 0 opt --skip=canonicalize,layout,cse,library,dce,order,join,epilogue good.flir
says out "launch"
run 0 opt --skip=cse --stop_after=cse good.flir
says out "%1 = mul"
run 1 opt --skip=cse,frobnicate good.flir
says err 'skip: "frobnicate" is no pass'
run 1 opt --skip=pack good.flir
says err 'skip: nothing runs without pack'

# Every pass with its reason, in order.
run 0 opt --list
says out "graph canonicalize: "
says out "schedule pack: "
grep -vqE '^(graph|fusion|schedule) [a-z]+: .+' out && fail "--list: $(cat out)"
[[ $(head -1 out) == "graph canonicalize: "* ]] || fail "--list: order: $(cat out)"
while read -r stage pass _; do
  run 0 opt "--stop_after=${pass%:}" good.flir
  [[ $stage != graph ]] || run 0 opt "--pass=${pass%:}" good.flir
done < <("$fl" opt --list)

# Code of every kernel.
run 0 opt --emit=llvm good.flir
says out "define i64 @k0("
llvm-as-19 -o /dev/null out || fail "--emit=llvm: LLVM does not read it"
run 0 opt --emit=asm good.flir
says out "k0:"
says out "retq"
run 0 opt --emit=cuda good.flir
says out 'extern "C" __global__ void __launch_bounds__(256, 2) k0(const k0_arguments a) {'
run 0 opt --emit=mlir good.flir
says out 'func.func @g(%p0: tensor<8x4xf32> {bufferization.writable = false}, '
mlir-opt-19 -o /dev/null out || fail "--emit=mlir: MLIR does not take it"

# Errors: one message, where and why, nothing on standard output.
run 1 opt bad.flir
says err 'fl: bad.flir:3:8: "frob" is no op'
says err "  %1 = frob %0 : f32[4,8]"
says err "       ^"
prints_nothing out
run 1 opt shapes.flir
says err "fl: shapes.flir:"
says err "add: f32[4,8] x f32[3]: shapes do not broadcast"
prints_nothing out
run 1 opt missing.flir
says err "fl: missing.flir: cannot be read"
run 1 opt .
says err "fl: .: cannot be read: it is a directory"
run 0 opt <(cat good.flir)
cmp -s out schedule.flir || fail "a pipe gives another outcome"
run 1 opt --pass=frobnicate good.flir
says err '"frobnicate" is no graph pass'
run 1 opt --pass=pack good.flir
says err '"pack" is no graph pass'
run 1 opt --stop_after=frobnicate good.flir
says err '"frobnicate" is no pass'
run 1 opt --emit=tape good.flir
says err '--emit: "tape" is not llvm, asm, cuda or mlir'
run 1 opt --frobnicate good.flir
says err "frobnicate"
run 1 opt
says err "expected one file"
run 1 opt good.flir bad.flir
says err "expected one file"

# Flags that mean nothing together, or for the form, are refused, not ignored.
refused() { # refused WORDS ARGUMENTS...
  local words=$1
  shift
  run 1 opt "$@"
  [[ $(<err) == "fl: $words" ]] || fail "$command_line: $(cat err)"
  prints_nothing out
}
refused "opt: --stop_after and --emit do not go together" --stop_after=cse --emit=llvm good.flir
refused "opt: --pass and --emit do not go together" --pass=dce --emit=llvm good.flir
refused "opt: --pass and --stop_after do not go together" --pass=dce --stop_after=cse good.flir
refused "opt: --pass and --skip do not go together" --pass=dce --skip=cse good.flir
refused "opt: --verify and --skip do not go together" --verify --skip=cse good.flir
refused "opt: --verify and --pass do not go together" --verify --pass=dce good.flir
refused "opt: --list and --verify do not go together" --list --verify good.flir
refused "opt: --list takes no file" --list good.flir
for form in schedule kernel; do
  for flag in --pass=dce --stop_after=cse --skip=cse --emit=llvm; do
    [[ $form$flag == schedule--pass* ]] ||
      refused "$form.flir: is a $form; ${flag%=*} is for a graph" $flag $form.flir
  done
done
refused '"dce" is no schedule pass' --pass=dce schedule.flir
refused '"pack" is no graph pass' --pass=pack good.flir
refused "opt: build makes a schedule of a graph" --pass=build schedule.flir
run 0 opt --pass=order schedule.flir
says out "schedule @s"
cat > shares.flir << 'EOF'
schedule @s arena=0 bound=0 {
  temporary bytes=64 first=0 last=1 offset=0
  temporary bytes=64 first=2 last=3 offset=0 shares=0
}
EOF
for pass in order budget join share epilogue; do
  refused "opt: the pass $pass would lose which temporaries share memory; pack alone takes them" \
    --pass=$pass shares.flir
done
run 0 opt --pass=pack shares.flir
says out "last=3 offset=0 shares=0"
sed 's/ shares=0/ host/' shares.flir >host.flir
refused "opt: temporaries that are on the host are what the pass budget has made" --pass=budget \
  host.flir
# A launch that is an epilogue stays behind its call.
cat >product.flir <<'END'
graph @f(%x: f32[64,64], %y: f32[64,64]) {
  %0 = matmul %x, %y : f32[64,64]
  %1 = exp %0 : f32[64,64]
  return %1
}
END
"$fl" opt --stop_after=epilogue product.flir >epilogue.flir
grep -q ' epilogue$' epilogue.flir || fail "no epilogue: $(cat epilogue.flir)"
for pass in order budget join; do
  refused "opt: the pass $pass moves steps, which would part epilogues from the calls that they belong to" \
    --pass=$pass epilogue.flir
done
run 0 opt --pass=pack epilogue.flir
run 0 opt --pass=pack host.flir
says out "last=3 offset=0 host"
run 1 opt --budget=1 --skip=fuse good.flir
says err "a plan's temporaries do not fit the budget of 1 bytes: "
says err " are needed while "
says err " runs; a budget of "
says err " is met by this plan (others may need more); the largest of them:"
# Other passes leave temporaries that no step uses as they are.
cat >intervals.flir <<'EOF'
schedule @s arena=0 bound=2000000 {
  temporary bytes=2000000 first=0 last=1 offset=0
  temporary bytes=64 first=2 last=3 offset=0
}
EOF
for pass in order budget join share epilogue; do
  for budget in 0 64; do
    run 0 opt --pass=$pass --budget=$budget intervals.flir
    cmp -s intervals.flir out || fail "$command_line: $(cat out)"
  done
done
refused '"foo" is no schedule pass' --pass=foo intervals.flir
# Intervals that no memory holds, and that live too long to look at each step.
echo 'schedule @s arena=0 bound=0 {' >huge.flir
for _ in 1 2 3 4 5; do echo ' temporary bytes=4611686018427387904 first=0 last=1 offset=0'; done >>huge.flir
echo '}' >>huge.flir
refused "interval 1: with its 4611686018427387904 bytes they take more than all memory" --pass=pack huge.flir
# What does not fit a budget, and where it lives.
cat >tight.flir <<'EOF'
schedule @s arena=0 bound=0 {
  temporary bytes=64 first=0 last=0 offset=0
  temporary bytes=100 first=1 last=4 offset=0
}
EOF
run 1 opt --pass=pack --budget=64 tight.flir
says err "do not fit the budget of 64 bytes: packed they take 128; the largest of them:"
says err "  100 bytes of interval 1 (steps 1 to 4)"
echo 'schedule @s arena=0 bound=0 { temporary bytes=64 first=0 last=2147483646 offset=0 }' >long.flir
refused "a temporary lives until step 2147483646; a plan has at most 10000000" --pass=pack long.flir
run 0 opt --skip=fuse --stop_after=fuse good.flir
run 0 opt --skip=fuse --emit=llvm good.flir
[[ $(grep -c "^define i64 @k" out) == 3 ]] || fail "--skip=fuse --emit=llvm: $(cat out)"

: >empty.flir
run 1 opt empty.flir
says err "fl: empty.flir:1:1: "
head -c 40 good.flir >cut.flir
run 1 opt cut.flir
says err "fl: cut.flir:"
prints_nothing out

# Text that parses and holds what cannot be is the user's, not an error of the program.
sed 's/extents=\[4,8\]/extents=[4,8,2]/' schedule.flir >mutated_extents.flir
sed 's/rank=2/rank=9/' schedule.flir >mutated_rank.flir
sed 's/rank=2/rank=9/' kernel.flir >mutated_kernel.flir
sed -E 's/(store [0-9]+ )%[0-9]+/\1%99/' kernel.flir >mutated_store.flir
for mutated in mutated_*.flir; do
  run 1 opt $mutated
  grep -qE "^fl: $mutated:[0-9]+:[0-9]+: not valid: " err || fail "$command_line: $(cat err)"
  grep -qiE 'report|internal' err && fail "$command_line: $(cat err)"
  [[ $(wc -l <err) == 1 ]] || fail "$command_line: more than a line: $(cat err)"
  prints_nothing out
done

# --verify says whether a file may run; before the pass `pack`, each temporary gets memory of its own.
for form in graph schedule kernel; do
  [[ $form == graph ]] && file=good.flir || file=$form.flir
  run 0 opt --verify $file
  [[ $(<out) == "$file: ok, a $form" ]] || fail "$command_line: $(cat out)"
done
cat >chain.flir <<'END'
graph @chain(%x: f32[4,8], %y: f32[8,4]) {
  %0 = matmul %x, %y : f32[4,4]
  %1 = matmul %0, %0 : f32[4,4]
  %2 = matmul %1, %0 : f32[4,4]
  return %2
}
END
"$fl" opt --stop_after=order chain.flir >unpacked.flir
run 0 opt unpacked.flir
cmp -s out unpacked.flir || fail "a schedule without places does not print as it was read"
run 0 opt --verify unpacked.flir
run 0 run --check=ref unpacked.flir
sed 's/arena=0/arena=1/' unpacked.flir >small.flir
run 1 opt --verify small.flir
says err "fl: small.flir:5:3: not valid: temporary 0 ends behind the arena's 1 bytes"
sed 's/arena=0/arena=64/' unpacked.flir >overlapping.flir
run 1 opt --verify overlapping.flir
says err "fl: overlapping.flir:5:3: not valid: temporaries 0 and 1 overlap"
run 1 opt --verify bad.flir
says err 'fl: bad.flir:3:8: "frob" is no op'
cat >draw.flir <<'END'
graph @f(%seed: number u64, %offset: number b8) {
  %0 = rand %seed, %offset {dtype=f32, shape=[4,8]} : f32[4,8]
  return %0
}
END
run 1 opt --verify draw.flir
says err "fl: draw.flir:2:8: rand: u64[] x b8[]: the seed and offsets are scalars of u64"
says err "  %0 = rand %seed, %offset {dtype=f32, shape=[4,8]} : f32[4,8]"
says err "       ^"
# A schedule's kernel is named, too.
sed -E '/^kernel @k0/,/^}/s/(store [0-9]+ )%[0-9]+/\1%99/' schedule.flir >bad_kernel.flir
line=$(grep -n '^kernel @k0' bad_kernel.flir | cut -d: -f1)
run 1 opt --verify bad_kernel.flir
says err "fl: bad_kernel.flir:$line:1: not valid: kernel @k0: %99 is not defined and a stage uses it"
run 1 opt --verify mutated_store.flir
says err "fl: mutated_store.flir:1:1: not valid: kernel @k: %99 is not defined and a stage uses it"
prints_nothing out

# Output that is lost is an error.
for arguments in --list "--emit=llvm good.flir" good.flir; do
  command_line="fl opt $arguments >/dev/full" code=0
  "$fl" opt $arguments >/dev/full 2>err || code=$?
  [[ $code == 1 ]] || fail "$command_line: exit code $code"
  [[ $(<err) == "fl: standard output: cannot be written; not all of it is there" ]] ||
    fail "$command_line: $(cat err)"
done

run 1
says err "usage: fl opt"
run 1 frobnicate
says err "usage: fl opt"
run 0 --help
says out "usage: fl opt"
# Each command lists its own flags.
run 0 opt --help
says out "--stop_after"
run 0 run --help
says out "--inputs"

((failures == 0))
