#!/usr/bin/env bash
# run_test.sh FL: `fl run` runs graphs, finds what differs from the reference, words bad input.
set -euo pipefail
fl=$PWD/$1
cd "$TEST_TMPDIR"

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

# The columns of a softmax add up to 1.
for device in cpu ref; do
  expect 0 '^result 0 f32\[40,7\]: sum (7|7\.0000[0-9]*|6\.9999[0-9]*)$' --device=$device --seed=3 \
    softmax.flir
done
expect 0 '^result 1 f32\[40,7\]: difference [0-9.e-]+$' --check=ref softmax.flir
expect 0 '^result 0 .*: difference 0$' --backend=eager --device=ref --check=ref softmax.flir
expect 1 'difference [0-9.e-]+, too large$' --check=ref --tolerance=0 softmax.flir
expect 0 '^time: [0-9.e+]+ us, median of 3 runs' --time=3 softmax.flir
expect 1 '^fl: --check: "cpu" is not ref$' --check=cpu softmax.flir
expect 1 '^fl: nowhere.flir: cannot be read$' nowhere.flir
echo 'graph @g(%x: f32[2]) { %0 = exq %x : f32[2] }' >bad.flir
expect 1 'bad.flir:1:' bad.flir
expect 1 '^fl: \.: cannot be read: it is a directory$' .

# Output that is lost is an error.
if words=$("$fl" run softmax.flir 2>&1 >/dev/full) ||
  [[ $words != "fl: standard output: cannot be written; not all of it is there" ]]; then
  echo "fl run softmax.flir >/dev/full: exit code 0, or $words" >&2
  exit 1
fi
