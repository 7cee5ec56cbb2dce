#!/usr/bin/env python3
"""Measures the memory of the cases of //benchmarks:memory in PyTorch: for a request as serving.py
takes them, the most bytes that a step holds beyond what lives between steps, as the allocations of
PyTorch's profiler count them.

usage: memory.py {"torch 1.13",torch,...} THREADS
"""
import json
import sys

import torch
from torch.profiler import ProfilerActivity, profile

import workloads_torch

STEPS_UNTIL_STEADY = 3


def start(event):
    return event.start_ns() if hasattr(event, "start_ns") else event.start_us()


def growth(step):
    for _ in range(STEPS_UNTIL_STEADY):
        step()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as trace:
        step()
    alive = most = 0
    for event in sorted(trace.profiler.kineto_results.events(), key=start):
        if event.name() != "[memory]":
            continue
        alive += event.nbytes()
        most = max(most, alive)
    return most


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    is_torch = sys.argv[1].startswith("torch")
    cases = workloads_torch.make_cases(int(sys.argv[2]), False) if is_torch else {}
    for line in sys.stdin:
        case = line.split("\t")[0]
        try:
            answer = growth(cases[case]()) if case in cases else None
        except Exception as error:
            print(f"{sys.argv[0]}: {sys.argv[1]}, {case}: {error!r}", file=sys.stderr)
            answer = None
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
