#!/usr/bin/env python3
"""Times the first call of a case of workloads.py, with all that a peer compiles for it, in a process
that has kept nothing of earlier ones.

usage: first_calls.py {"torch 1.13",torch,"torch compile",jax,mlx} THREADS
"""
import os

import workloads
from serving import seconds, serve


def make_peer(name, threads):
    if name.startswith("torch"):
        import workloads_torch

        # To choose the faster one takes calls before the first.
        workloads_torch.LAYOUTS = workloads_torch.LAYOUTS[:1]
    return workloads.make_peer(name, threads)


class FirstCall:
    def __init__(self, call):
        self.first = seconds(call, 1) * 1e6

    def microseconds(self):
        return self.first


if __name__ == "__main__":
    # torch.compile's, on disk. JAX keeps none there unless it is told to, MLX none.
    os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
    serve(__doc__, make_peer, FirstCall)
