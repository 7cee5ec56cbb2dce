#!/usr/bin/env bash
# symbols_test.sh PROGRAMS...: none exports a symbol of LLVM, which would clash with another LLVM in
# the process, though each has the code.
set -euo pipefail
status=0
for program in "$@"; do
  if ! nm "$program" | grep ' [Tt] LLVM' >/dev/null; then
    echo "$program has no LLVM inside: the test would show nothing" >&2
    status=1
  fi
  exported=$(nm -D "$program" | grep -iE 'llvm|mlir' || true)
  if [[ -n $exported ]]; then
    echo "$program exports:" >&2
    head -20 <<<"$exported" >&2
    status=1
  fi
done
exit $status
