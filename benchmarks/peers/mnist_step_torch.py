#!/usr/bin/python3
"""The training step of apps/mnist in PyTorch, on random data; prints the steps' times in ms as JSON.

The model, batch, optimizer and reads are those of //benchmarks:mnist_step, which runs this script.
It sets the environment that makes PyTorch fastest on a CPU (Debian's 1.13 gains most), and starts
itself again, because these variables are read when a process starts.
"""
import argparse
import json
import os
import sys
import time


def tuned_environment(threads):
    return {
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": str(threads),
        # By default AVX2 and Haswell kernels, even on a processor with AVX-512.
        "ATEN_CPU_CAPABILITY": "avx512",
        "OPENBLAS_CORETYPE": "SKYLAKEX",
        # OpenBLAS on OpenMP shares PyTorch's thread pool.
        "LD_LIBRARY_PATH": "/usr/lib/x86_64-linux-gnu/openblas-openmp",
        # Freed memory is kept for the next step.
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
        "MALLOC_TOP_PAD_": str(64 << 20),
    }


def restart_tuned(threads):
    wanted = tuned_environment(threads)
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.execve(sys.executable, [sys.executable] + sys.argv, {**os.environ, **wanted})


def make_step(size, batch, channels_last):
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear((size // 4) ** 2 * 64, 1024),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(1024, 10),
        nn.LogSoftmax(-1),
    )
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
    x = torch.rand(batch, 1, size, size) - 0.5
    y = torch.randint(10, (batch,))

    def step():
        loss = nn.functional.nll_loss(model(x), y)
        loss.item()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=28, help="width and height of an image")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--warmup", type=int, default=20, help="steps before the timed ones")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--channels_last", action="store_true", help="the model in this layout")
    args = parser.parse_args()
    restart_tuned(args.threads)

    import torch

    torch.set_num_threads(args.threads)
    step = make_step(args.size, args.batch, args.channels_last)
    times = []
    for i in range(args.warmup + args.steps):
        start = time.perf_counter()
        step()
        if i >= args.warmup:
            times.append(1000 * (time.perf_counter() - start))
    print(json.dumps(times))


if __name__ == "__main__":
    main()
