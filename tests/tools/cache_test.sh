#!/usr/bin/env bash
# cache_test.sh FL: what `fl cache` says is on disk, and that it removes it.
set -euo pipefail
fl=$PWD/$1
cd "$(mktemp -d)"
fail() {
  echo "FAIL: $*"
  exit 1
}
export FL_CACHE_DIR=$PWD/kept FL_CACHE_BYTES=1000000

# The lines of `fl cache` without repeated spaces; whether one of them is LINE.
used() { "$fl" cache "$@" | tr -s ' '; }
has() { grep -qxF "$1" <<<"$(used)"; }
nothing=$(printf '%s 0 entries 0 bytes\n' kernels plans fusions calls failures
  echo "all 0 entries 0 bytes of 1000000 in $FL_CACHE_DIR")
[[ $(used) == "$nothing" ]] || fail "$(used)"

echo 'graph @f(%x: f32[8]) { %0 = tanh %x : f32[8] return %0 }' >graph.flir
"$fl" run graph.flir >out
# Files of a kind; those in its folder `locks` are no entries.
files() { find kept -mindepth 2 -maxdepth 2 -type f "$@"; }
bytes=$(files -printf '%s\n' | awk '{ sum += $1 } END { print sum + 0 }')
[[ $bytes -gt 0 ]] || fail "nothing is kept"
has "kernels $(files | wc -l) entries $bytes bytes" || fail "$(used)"
has "all $(files | wc -l) entries $bytes bytes of 1000000 in $FL_CACHE_DIR" || fail "$(used)"

[[ $(used --clear) == "$nothing" ]] || fail "$(used)"
[[ -z $(files) ]] || fail "$(files)"

"$fl" cache file 2>err && fail "it takes no file"
grep -q "cache: expected no file" err || fail "$(<err)"
env -u FL_CACHE_DIR -u XDG_CACHE_HOME -u HOME "$fl" cache 2>err && fail "there is no folder"
grep -q "cache: there is no folder: set FL_CACHE_DIR" err || fail "$(<err)"
