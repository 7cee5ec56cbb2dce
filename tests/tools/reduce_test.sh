#!/usr/bin/env bash
# reduce_test.sh FL: `fl reduce` finds the few nodes, steps and instructions that a failure needs,
# and keeps to what fails.
set -euo pipefail
fl=$PWD/$1
cd "$TEST_TMPDIR"
unset BUILD_WORKING_DIRECTORY  # the tool would go there where `bazel run` runs this test

fail() {
  echo "FAIL: $*" >&2
  cat out err >&2
  exit 1
}

# reduce CODE ARGUMENTS...: output and errors go to files.
reduce() {
  local expected=$1 code=0
  shift
  "$fl" reduce "$@" >out 2>err || code=$?
  [[ $code == "$expected" ]] || fail "fl reduce $*: exit code $code, not $expected"
}

# A chain of 60 nodes with several results; two of its nodes are a tanh and, far from it, an amax.
{
  echo 'graph @long(%x: f32[24,6], %y: f32[24,6], %n: number f32, %unused: f64[3]) {'
  last=%x
  for ((i = 0; i < 60; ++i)); do
    case $i in
      13) node="tanh $last : f32[24,6]" ;;
      41) node="amax $last {keepDims=1, axes=[0]} : f32[1,6]" ;;
      42) node="mul %$((i - 2)), $last : f32[24,6]" ;;
      *) node="$([[ $((i % 3)) == 0 ]] && echo "sub $last, %y" ||
        { [[ $((i % 3)) == 1 ]] && echo "mul $last, %n" || echo "absolute $last"; }) : f32[24,6]" ;;
    esac
    echo "  %$i = $node"
    last=%$i
  done
  echo '  %60 = iota {dtype=f32, axis=0, shape=[24,6]} : f32[24,6]'
  echo "  return %20, $last, %60, %41"
  echo '}'
} >long.flir
"$fl" opt --verify long.flir >/dev/null

# What the compiler makes of it decides: two ops in the schedule, wherever they are.
cat >both.sh <<END
#!/usr/bin/env bash
$fl opt "\$1" >schedule.txt && grep -q ' = tanh ' schedule.txt && grep -q 'reduce amax' schedule.txt
END
chmod +x both.sh
reduce 0 --command='./both.sh {}' long.flir
grep -q '^reduce: 61 nodes, 4 inputs, 4 results after 1 candidates: the input$' err ||
  fail "no first line of progress"
grep -q ': nothing smaller found$' err || fail "no last line of progress"
cp out reduced.flir
./both.sh reduced.flir || fail "the failure does not show any more"
"$fl" opt --verify reduced.flir >/dev/null
[[ $(grep -c ' = ' out) == 2 ]] || fail "more than two nodes"
grep -q '24\|unused\|iota' out && fail "something stays that is not needed"
reduce 0 --command='./both.sh {}' reduced.flir
cmp -s out reduced.flir || fail "what was reduced is reduced further"
# A command stands where the tool does: where the user stood is not handed on.
BUILD_WORKING_DIRECTORY=$PWD reduce 0 \
  --command='[ -z "$BUILD_WORKING_DIRECTORY" ] && [ -e {} ]' reduced.flir

# A result that differs from the reference by more than nothing, which takes one function of the
# vector math; the pipe's last command decides.
reduce 0 --command="$fl run --check=ref --tolerance=0 {} | grep -q 'too large'" long.flir
[[ $(grep -c ' = ' out) == 1 ]] || fail "more than one node"
cp out reduced.flir
("$fl" run --check=ref --tolerance=0 reduced.flir || true) >out
grep -q 'too large' out || fail "the failure is lost"

# Structure that must stay: a sum of two slices of one exp.
cat >diamond.flir <<'END'
graph @diamond(%x: f32[8], %i: number s64, %j: number s64) {
  %0 = negative %x : f32[8]
  %1 = exp %0 : f32[8]
  %2 = slice %1, %i {rank=1, sizesThenStrides=[4,1]} : f32[4]
  %3 = slice %1, %j {rank=1, sizesThenStrides=[4,1]} : f32[4]
  %4 = add %2, %3 : f32[4]
  %5 = sqrt %4 : f32[4]
  return %5, %0
}
END
cat >diamond.sh <<'END'
#!/usr/bin/env bash
exp=$(sed -n 's/ *\(%[0-9]*\) = exp .*/\1/p' "$1")
[[ -n $exp && $(grep -c " = slice $exp," "$1") == 2 ]] && grep -q ' = add %[0-9]*, %[0-9]* ' "$1"
END
chmod +x diamond.sh
reduce 0 --command='./diamond.sh {}' diamond.flir
cat >expected.flir <<'END'
graph @g(%p0: number s64, %p1: f32[1]) {
  %0 = exp %p1 : f32[1]
  %1 = slice %0, %p0 {rank=1, sizesThenStrides=[1,1]} : f32[1]
  %2 = slice %0, %p0 {rank=1, sizesThenStrides=[1,1]} : f32[1]
  %3 = add %1, %2 : f32[1]
  return %3
}
END
diff expected.flir out || fail "another graph is left"

# A node that no result needs stays if the failure is its own, and what it needs is reduced too.
cat >unread.flir <<'END'
graph @unread(%x: f32[8], %y: f32[8]) {
  %0 = exp %x : f32[8]
  %1 = tanh %0 : f32[8]
  %2 = sqrt %y : f32[8]
  %3 = sin %x : f32[8]
  return %2
}
END
reduce 0 --command="grep -q tanh {} && ! '$fl' opt {} | grep -q tanh" unread.flir
diff - out <<'END' || fail "another graph is left"
graph @g(%p0: f32[1]) {
  %0 = tanh %p0 : f32[1]
  return %p0
}
END
reduce 0 --command='grep -q sqrt {}' unread.flir
[[ $(grep -c ' = ' out) == 1 ]] || fail "more than one node"

# Depth costs no stack: 30000 nodes in a chain.
{
  echo 'graph @deep(%x: f32[2]) {'
  echo '  %0 = exp %x : f32[2]'
  for ((i = 1; i < 30000; ++i)); do
    echo "  %$i = negative %$((i - 1)) : f32[2]"
  done
  echo '  return %29999'
  echo '}'
} >deep.flir
(ulimit -s 256 && reduce 0 --command="grep -q exp {}" deep.flir)
[[ $(grep -c ' = ' out) == 1 ]] || fail "more than one node of a deep graph"

# A kernel: of 57 instructions, two reductions and two stores what makes an exp.
{
  echo 'kernel @long rank=2 reduced=[0] {'
  printf '  operand %s\n' 'input f32 [1,*]' 'input f32 [0,1]' 'output f32 [1,*]' 'output f32 [0,1]'
  printf '  %s\n' 'scalar f32' '%0 = load 0 : f32' '%1 = load 1 : f32' '%2 = scalar 0 : f32'
  for ((i = 3; i < 60; ++i)); do
    case $i in
      3) value='mul %0, %2' ;;
      20) value='total 0' ;;
      21) value='sub %19, %20' ;;
      30) value='exp %29' ;;
      40) value='total 1' ;;
      *[02468]) value="mul %$((i - 1)), %2" ;;
      *) value="add %$((i - 1)), %1" ;;
    esac
    echo "  %$i = $value : f32"
  done
  echo '  sweep { reduce amax %19 }'
  echo '  sweep { store 2 %30 reduce sum %39 }'
  echo '  stage { store 3 %59 }'
  echo '}'
} >kernel.flir
"$fl" opt --verify kernel.flir >/dev/null
reduce 0 --command='grep -q " = exp " {}' kernel.flir
grep -q '^reduce: 0 steps, 57 instructions, 2 stores after 1 candidates: the input$' err ||
  fail "no first line of progress"
diff - out <<'END' || fail "another kernel is left"
kernel @k rank=2 reduced=[0] {
  operand input f32 [1,*]
  operand output f32 [1,*]
  %0 = load 0 : f32
  %1 = exp %0 : f32
  sweep { store 1 %1 }
}
END
cp out reduced.flir
reduce 0 --command='grep -q " = exp " {}' reduced.flir
cmp -s out reduced.flir || fail "what was reduced is reduced further"
reduce 0 --command='grep -q "reduce sum" {} && grep -q "reduce amax" {}' kernel.flir
[[ $(grep -c ' = total ' out) == 2 && $(grep -c ' = ' out) == 3 ]] || fail "not two totals alone"

# A schedule: steps in the middle, whose operands become parameters and whose results are outputs.
cat >schedule.flir <<'END'
schedule @s arena=15040 bound=15040 recorded=15040 unplanned=23040 {
  parameter f32[40,64]
  parameter f32[64,30]
  parameter f32[30,20]
  parameter number f32
  output f32[40]
  output f32[40,20]
  output f32[20,40] shares o1
  output f32[64,40] shares p0
  temporary bytes=10240 first=0 last=2 offset=4800
  temporary bytes=4800 first=1 last=4 offset=0
  temporary bytes=3200 first=3 last=5 offset=4800
  temporary bytes=3200 first=3 last=5 offset=4800 shares=2
kernel @k0 rank=1 reduced=[] {
  operand input f32 [1]
  operand output f32 [1]
  %0 = load 0 : f32
  %1 = exp %0 : f32
  stage { store 1 %1 }
}
kernel @k1 rank=2 reduced=[0] {
  operand input f32 [1,*]
  operand output f32 [1,*]
  %0 = load 0 : f32
  %1 = tanh %0 : f32
  %2 = total 0 : f32
  %3 = div %1, %2 : f32
  sweep { reduce sum %1 }
  sweep { store 1 %3 }
}
kernel @k2 rank=1 reduced=[] {
  operand input f32 [1]
  operand output f32 [1]
  scalar f32
  %0 = load 0 : f32
  %1 = scalar 0 : f32
  %2 = mul %0, %1 : f32
  stage { store 1 %2 }
}
kernel @k3 rank=2 reduced=[1] {
  operand input f32 [1,*]
  operand output f32 [1,0]
  %0 = load 0 : f32
  %1 = total 0 : f32
  sweep { reduce sum %0 }
  stage { store 1 %1 }
}
  launch 0 extents=[2560] operands(p0+0[1], t0+0[1]) numbers=[]
  library matmul (t0: f32[40,64], p1: f32[64,30]) -> t1: f32[40,30]
  launch 1 extents=[40,30] operands(t1+0[1,40], t1+0[1,40]) numbers=[] epilogue
  library matmul (t1: f32[40,30], p2: f32[30,20]) -> t2: f32[40,20]
  launch 2 extents=[800] operands(t2+0[1], t3+0[1]) numbers=[3]
  launch 2 extents=[800] operands(t3+0[1], o1+0[1]) numbers=[3]
  launch 3 extents=[40,20] operands(o1+0[1,40], o0+0[1,0]) numbers=[]
}
END
"$fl" opt --verify schedule.flir >/dev/null
reduce 0 --command='grep -q " = exp " {}' schedule.flir
grep -q '^reduce: 7 steps, 6 instructions, 4 stores after 1 candidates: the input$' err ||
  fail "no first line of progress"
diff - out <<'END' || fail "another schedule is left"
schedule @s arena=0 bound=0 {
  parameter f32[1,1]
  output f32[1]
kernel @k0 rank=1 reduced=[] {
  operand input f32 [1]
  operand output f32 [1]
  %0 = load 0 : f32
  %1 = exp %0 : f32
  stage { store 1 %1 }
}
  launch 0 extents=[1] operands(p0+0[1], o0+0[1]) numbers=[]
}
END
cp out reduced.flir
reduce 0 --command='grep -q " = exp " {}' reduced.flir
cmp -s out reduced.flir || fail "what was reduced is reduced further"
# Machine code that is wrong, in the middle of it.
wrong="FL_FAULT=wrong:tanh '$fl' run --check=ref {} | grep -q 'too large'"
reduce 0 --command="$wrong" schedule.flir
[[ $(grep -c '^  launch\|^  library' out) == 1 ]] || fail "more than one step"
[[ $(grep -c ' = ' out) == 2 ]] || fail "more than a load and an instruction"
grep -q ' = tanh ' out || fail "the failure is lost"
# A call and its epilogue; places that are shared.
reduce 0 --command='grep -q epilogue {}' schedule.flir
sed -n '/^  [a-z]* [0m]/p' out | diff - <(
  echo '  library matmul (p1: f32[1,1], p0: f32[1,1]) -> o0: f32[1,1]' &&
  echo '  launch 0 extents=[1,1] operands(o0+0[1,1], o0+0[1,1]) numbers=[] epilogue') ||
  fail "another call or launch"
reduce 0 --command='grep -q " shares=" {}' schedule.flir
diff - out <<'END' || fail "another schedule is left"
schedule @s arena=15040 bound=3200 {
  parameter f32[1,1]
  parameter f32[1]
  output f32[1,1]
  temporary bytes=3200 first=0 last=2 offset=4800
  temporary bytes=3200 first=0 last=2 offset=4800 shares=0
kernel @k0 rank=1 reduced=[] {
  operand input f32 [1]
  operand output f32 [1]
  %0 = load 0 : f32
  stage { store 1 %0 }
}
  library matmul (p1: f32[1,1], p0: f32[1,1]) -> t0: f32[1,1]
  launch 0 extents=[1] operands(t0+0[1], t1+0[1]) numbers=[]
  launch 0 extents=[1] operands(t1+0[1], o0+0[1]) numbers=[]
}
END
# Results that share another's memory.
reduce 0 --command='grep -q "shares p0" {}' schedule.flir
[[ $(grep -c 'output\|launch\|library\|kernel' out) == 1 ]] || fail "more than a view"
# A buffer that two launches write: one of them is left, and what it writes.
cat >halves.flir <<'END'
schedule @s arena=0 bound=0 {
  parameter f32[8]
  parameter f32[8]
  output f32[4,4]
kernel @k0 rank=1 reduced=[] {
  operand input f32 [1]
  operand output f32 [1]
  %0 = load 0 : f32
  %1 = tanh %0 : f32
  stage { store 1 %1 }
}
  launch 0 extents=[8] operands(p0+0[1], o0+0[1]) numbers=[]
  launch 0 extents=[8] operands(p1+0[1], o0+8[1]) numbers=[]
}
END
reduce 0 --command='grep -q tanh {} && grep -q "extents=.[2-9]" {}' halves.flir
grep -q '^  output f32\[2\]$' out || fail "another output"
[[ $(grep -c '^  launch 0 extents=\[2\]' out) == 1 ]] || fail "another launch"

# Bad input.
says() {
  grep -qF -- "$1" err || fail "no \"$1\""
}
reduce 1 --command='false {}' long.flir
says 'fl: --command: the failure does not show for the input itself'
for command in 'no_such_command {}' './nowhere.sh {}' './long.flir {}' 'true {} | no_such_command'; do
  reduce 1 --command="$command" long.flir
  diff - err <<<'fl: --command: the shell finds no such command, or may not run it' ||
    fail "\"$command\" is there"
done
reduce 1 --command='false' long.flir
says 'fl: --command: expected a command with {} in it'
reduce 1 long.flir
says 'fl: --command: expected a command with {} in it'
reduce 1 --command='true {}'
says 'fl: reduce: expected one file'
reduce 1 --command='true {}' nowhere.flir
says 'fl: nowhere.flir: cannot be read'
sed 's/extents=\[800\]/extents=[801]/' schedule.flir >bad.flir
reduce 1 --command='true {}' bad.flir
says 'fl: bad.flir:52:3: not valid: operand 0 of step 4 touches elements 0 to 800 of temporary 2, which'
echo 'graph @g(%x: f32[2]) { %0 = exq %x : f32[2] }' >bad.flir
reduce 1 --command='true {}' bad.flir
says 'fl: bad.flir:1:29: "exq" is no op'

# Interrupted, it prints how far it came; no scratch file stays.
mkdir scratch
cat >impatient.sh <<'END'
#!/usr/bin/env bash
echo x >>runs
(($(wc -l <runs) > 5)) && exit 130
grep -q tanh "$1"
END
chmod +x impatient.sh
TMPDIR=$PWD/scratch reduce 0 --command='./impatient.sh {}' long.flir
grep -q ' after 6 candidates: interrupted$' err || fail "goes on"
grep -q tanh out || fail "the failure is lost"
[[ -z $(ls scratch) ]] || fail "scratch files stay: $(ls scratch)"
