#!/bin/sh
# run_on_backend.sh backend devices program [arguments]: a test program with its own store, the IR
# verified after every pass unless FL_CHECK is set, on each of the devices, which commas separate.
# The device tier0 is the CPU without a compiler; repeated plans as by default; guard and
# guard-begin are the CPU with every buffer at an edge of its pages, v3-guard-begin that without
# AVX-512; poison has NaN in all memory that holds no value; fake-gpu is a GPU that is none, for
# programs that it is linked to.
run() {
  export FL_BACKEND="$1" FL_DEVICE="$2" FL_CHECK="${FL_CHECK:-verify}" FL_JIT=sync
  export XDG_CACHE_HOME="${TEST_TMPDIR:-/tmp}"
  case "$FL_DEVICE" in
    tier0) export FL_DEVICE=cpu FL_JIT=off ;;
    fake-gpu)
      export FL_DEVICE=cuda
      # Its stream copies later than the host gives buffers back, which are poisoned by then.
      export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}allow_user_poisoning=0"
      ;;
    repeated) export FL_DEVICE=cpu FL_PLAN=repeated ;;
    guard | guard-begin) export FL_DEVICE=cpu FL_CHECK="$FL_DEVICE" ;;
    v3-guard-begin) export FL_DEVICE=cpu FL_CHECK=guard-begin FL_CPU=x86-64-v3 ;;
    poison) export FL_DEVICE=cpu FL_POISON=1 ;;
  esac
  shift 2
  exec "$@"
}
backend=$1 devices=$2 status=0
shift 2
for device in $(echo "$devices" | tr ',' ' '); do
  echo "on $device:"
  (run "$backend" "$device" "$@") || status=$?
done
exit "$status"
