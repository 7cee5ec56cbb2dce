#!/usr/bin/env python3
"""Times the cases of //benchmarks: train_step, mnist_step, kernels, gemm and overhead, in PyTorch,
JAX or MLX.

usage: workloads.py {"torch 1.13",torch,"torch compile",jax,mlx} THREADS

Each peer at its best: PyTorch's convolutions in the faster of its layouts and its update in one call,
JAX and MLX compiled as a whole step. All read the loss, and so wait for it, at the end of a step.
The other cases are in kernels.py, gemm.py and overhead.py.
"""
from serving import serve

# Of //benchmarks:train_steps; the names of the cases are those of its workloads.
MLP = "MLP 784-512-512-10, batch 128"
MNIST = "MNIST CNN 28x28, batch 64"
DIGITS = "MNIST CNN, digits 8x8, batch 32"
RESIDUAL = "residual CNN 32-64-128, 3x32x32, batch 32"
TRANSFORMER = "transformer 4 layers, width 256, 8 x 128"
DEEP_TRANSFORMER = "transformer 12 layers, width 256, 8 x 128"
DEEP_RESIDUAL = "ResNet-50, 3x224x224, batch 4"
LEARNING_RATE = 1e-3
STAGES = (32, 64, 128)
DEEP_STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))
LAYERS, DEEP_LAYERS = 4, 12
WIDTH, HEADS, LENGTH, VOCABULARY, SEQUENCES = 256, 4, 128, 1000, 8


def make_peer(name, threads):
    if name.startswith("torch"):
        import kernels_torch
        import workloads_torch

        compiled = name.endswith("compile")
        cases = {
            **workloads_torch.make_cases(threads, compiled),
            **kernels_torch.make_cases(compiled),
        }
    elif name == "jax":
        import kernels_jax
        import workloads_jax

        cases = {**workloads_jax.make_cases(), **kernels_jax.make_cases()}
    else:
        import kernels_mlx
        import workloads_mlx

        cases = {**workloads_mlx.make_cases(), **kernels_mlx.make_cases()}
    return lambda case, elements: cases[case]() if case in cases else None


if __name__ == "__main__":
    serve(__doc__, make_peer)
