#!/usr/bin/env bash
# tool_test.sh TOOL FL: the tool that is linked with a wrong pass of one's own lists and runs that pass and
# finds it to be wrong; the tool without it finds nothing.
set -euo pipefail
tool=$PWD/$1 fl=$PWD/$2
cd "$TEST_TMPDIR"
unset BUILD_WORKING_DIRECTORY  # the tool would go there where `bazel run` runs this test
cat >graph.flir <<'END'
graph @f(%x: f32[4,8], %y: f32[4,8]) {
  %0 = mul %x, %y : f32[4,8]
  %1 = negative %0 : f32[4,8]
  %2 = cos %1 : f32[4,8]
  %3 = sin %1 : f32[4,8]
  %4 = add %2, %3 : f32[4,8]
  %5 = sub %4, %y : f32[4,8]
  return %5
}
END
expect() {
  if [[ $1 != "$2" ]]; then
    printf 'not what was expected:\n%s\n' "$1" >&2
    exit 1
  fi
}
expect "$("$tool" opt --list | grep -A1 ' canonicalize: ' | tail -1)" \
  'graph even_sine: ahead of dce, which removes the negations that nobody reads then'
expect "$("$tool" opt --pass=even_sine graph.flir | grep -E ' (sin|cos) ')" \
  $'  %2 = cos %0 : f32[4,8]\n  %3 = sin %0 : f32[4,8]'
expect "$("$tool" opt --stop_after=even_sine graph.flir | grep -c negative)" 1
expect "$("$tool" opt --help | grep -c '^  --')" "$("$fl" opt --help | grep -c '^  --')"

bisect() {
  code=0
  found=$("$1" bisect graph.flir 2>/dev/null) || code=$?
}
bisect "$tool"
expect "$code" 2
expect "$(sed 's/differs by.*/differs/' <<<"$found")" '// pass even_sine: result 0 differs
// first wrong value: %3, sin, which this graph computes alone
graph @g(%p0: f32[4,8], %p1: f32[4,8]) {
  %0 = mul %p0, %p1 : f32[4,8]
  %1 = negative %0 : f32[4,8]
  %2 = sin %1 : f32[4,8]
  return %2
}'
bisect "$fl"
expect "$code $found" '0 // no pass changes a result'
expect "$("$tool" reduce --command="$tool bisect {}; test \$? = 2" graph.flir 2>/dev/null)" \
  'graph @g(%p0: number f32) {
  %0 = negative %p0 : f32[]
  %1 = sin %0 : f32[]
  return %1
}'
