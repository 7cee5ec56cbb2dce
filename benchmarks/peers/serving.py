"""Times cases in a process of its own, one block of calls a request.

A request is a line "case<TAB>elements" on the standard input; the answer is a line: microseconds a
call, each call waited for, or null if the peer has no such case.
"""
import json
import os
import sys
import time

from tuning import restart_tuned

# As of our own subjects, benchmarks/Subject.cpp.
BLOCK_SECONDS = 1000e-6
WARMUP_SECONDS = 5000e-6
MOST_CALLS = 1000


def seconds(call, calls):
    if hasattr(call, "seconds"):  # it has a clock of its own
        return call.seconds(calls)
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return time.perf_counter() - start


class Subject:
    def __init__(self, call):
        self.call = call
        seconds(call, 2)
        once = seconds(call, 1)
        self.calls, self.warmup = (
            min(max(int(duration / once), 1), MOST_CALLS)
            for duration in (BLOCK_SECONDS, WARMUP_SECONDS)
        )

    def microseconds(self):
        seconds(self.call, self.warmup)
        return seconds(self.call, self.calls) / self.calls * 1e6


def make_subject(make_call, timed, case, elements):
    try:
        call = make_call(case, elements)
        return call and timed(call)
    except Exception as error:  # each peer has its own for what it does not take
        print(f"{sys.argv[0]}: {sys.argv[1]}, {case}: {error!r}", file=sys.stderr)
        return None


def serve(usage, make_peer, timed=Subject):
    """The script's main(): make_peer(name, threads) gives a function make_call(case, elements)."""
    if len(sys.argv) != 3:
        sys.exit(usage)
    name, threads = sys.argv[1], int(sys.argv[2])
    if name != "jax":
        restart_tuned(name, threads)
    # For the peers that take as many threads as there are processors.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    make_call = make_peer(name, threads)
    request, subject = None, None
    for line in sys.stdin:
        if line != request:
            request, subject = line, None  # what the last one held is free before
            case, elements = line.rstrip("\n").split("\t")
            subject = make_subject(make_call, timed, case, int(elements))
        print(json.dumps(subject and subject.microseconds()), flush=True)
