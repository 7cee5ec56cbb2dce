#!/bin/sh
# run_on_backend.sh backend device program [arguments]: a test program with its own store.
export FL_BACKEND="$1" FL_DEVICE="$2" XDG_CACHE_HOME="${TEST_TMPDIR:-/tmp}"
shift 2
exec "$@"
