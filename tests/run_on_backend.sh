#!/bin/sh
# run_on_backend.sh backend device program [arguments]: a test program with its own store, the IR
# verified after every pass. The device tier0 is the CPU without a compiler.
export FL_BACKEND="$1" FL_DEVICE="$2" FL_CHECK=verify FL_JIT=sync XDG_CACHE_HOME="${TEST_TMPDIR:-/tmp}"
if [ "$FL_DEVICE" = tier0 ]; then
  export FL_DEVICE=cpu FL_JIT=off
fi
shift 2
exec "$@"
