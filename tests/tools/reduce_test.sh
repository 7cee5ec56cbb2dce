#!/usr/bin/env bash
# reduce_test.sh FL: `fl reduce` finds the few nodes that a failure needs, and keeps to what fails.
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
"$fl" opt long.flir >schedule.flir
reduce 1 --command='true {}' schedule.flir
says 'fl: schedule.flir: is a schedule; only graphs are reduced'
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
