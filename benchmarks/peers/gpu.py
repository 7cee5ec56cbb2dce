#!/usr/bin/env python3
"""Times the cases of //benchmarks:gpu on the GPU, in PyTorch or JAX: those of workloads.py, and larger
ones in PyTorch.

usage: gpu.py {torch,torch compile,jax} THREADS
       gpu.py --has {torch,torch compile,jax}: fails if that is not there, or has no GPU

PyTorch's calls are timed by CUDA events, JAX's by the clock, as each waits. Products in f32 are not
cut to TF32 but in the case that says so. What torch.compile makes is replayed as CUDA graphs (its mode "reduce-overhead").
"""
import sys

ROWS, ROW_LENGTH, ELEMENTS, SIZE = 16384, 4096, 1 << 26, 8192


def has_gpu(name):
    try:
        if name.startswith("torch"):
            import torch

            return torch.cuda.is_available()
        import jax

        return jax.default_backend() == "gpu"
    except ImportError:
        return False


class Timed:
    """A call that serving.py times by events."""

    def __init__(self, call):
        self.call = call

    def __call__(self):
        return self.call()

    def seconds(self, calls):
        import torch

        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(calls):
            self.call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3


def large_cases(compiled):
    import torch

    def call(function, *shapes, dtype=torch.float32):
        made = torch.compile(function) if compiled else function
        values = [torch.rand(shape, dtype=dtype) - 0.5 for shape in shapes]
        return lambda: made(*values)

    matrix, square = (ROWS, ROW_LENGTH), (SIZE, SIZE)
    gated = lambda x: torch.tanh(1.1 * x + 0.3) * torch.sigmoid(0.7 * x)
    product = lambda x, y: x @ y

    def attention(is_causal, has_gradients):
        shape, length = (8, 16, 2048, 64), 2048
        q, k, v = (
            (torch.rand(shape, dtype=torch.bfloat16) - 0.5).requires_grad_(has_gradients)
            for _ in range(3)
        )
        mask = torch.full((length, length), -1e4, dtype=torch.bfloat16).triu(1)
        function = lambda: torch.nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask if is_causal else None
        )
        made = torch.compile(function) if compiled else function

        def step():
            y = made()
            return torch.autograd.grad(y, (q, k, v), y.detach()) if has_gradients else y

        return step

    def layer(module, *shape):
        made = torch.compile(module) if compiled else module
        x = (torch.rand(shape) - 0.5).requires_grad_()

        def step():
            y = made(x)
            y = y[0] if isinstance(y, tuple) else y
            return torch.autograd.grad(y, (x, *module.parameters()), y.detach())

        return step

    def in_tf32(call):
        def step():
            torch.backends.cuda.matmul.allow_tf32 = True
            result = call()
            torch.backends.cuda.matmul.allow_tf32 = False
            return result

        return step

    images = (32, 64, 112, 112)
    layers = {
        "max pool 3x3 of 32x64x112x112, and gradient": lambda: layer(
            torch.nn.MaxPool2d(3, 2, 1), *images
        ),
        "batch norm of 32x64x112x112, and gradients": lambda: layer(
            torch.nn.BatchNorm2d(64), *images
        ),
        "LSTM of 64 steps, 2 x 512, and gradients": lambda: layer(
            torch.nn.LSTM(512, 512, 2), 64, 32, 512
        ),
    }
    attentions = {
        "attention, bf16, 2048" + causal + gradients: lambda c=causal, g=gradients: attention(
            bool(c), bool(g)
        )
        for causal in ("", ", causal")
        for gradients in ("", ", and its gradients")
    }
    return attentions | layers | {
        "tanh(ax+b) sigmoid(cx), 2^26": lambda: call(gated, (ELEMENTS,)),
        "softmax, 16384x4096": lambda: call(lambda x: torch.softmax(x, 1), matrix),
        "sum of 16384x4096 over columns": lambda: call(lambda x: x.sum(1), matrix),
        "sum of 16384x4096 over rows": lambda: call(lambda x: x.sum(0), matrix),
        "sum of 16384x4096": lambda: call(lambda x: x.sum(), matrix),
        "matmul 8192x8192x8192": lambda: call(product, square, square),
        "matmul 8192x8192x8192, f16": lambda: call(
            product, square, square, dtype=torch.float16
        ),
        "matmul 8192x8192x8192, TF32": lambda: in_tf32(call(product, square, square)),
    }


def make_peer(name, threads):
    import workloads

    if not name.startswith("torch"):
        import jax

        jax.config.update("jax_default_matmul_precision", "highest")
        return workloads.make_peer(name, threads)
    import torch
    from torch._inductor import config

    torch.set_default_device("cuda")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    config.triton.cudagraphs = True
    of_cpu = workloads.make_peer(name, threads)
    large = large_cases(name.endswith("compile"))

    def make_call(case, elements):
        call = large[case]() if case in large else of_cpu(case, elements)
        return call and Timed(call)

    return make_call


if __name__ == "__main__":
    if sys.argv[1:2] == ["--has"]:
        sys.exit(not has_gpu(sys.argv[2]))
    from serving import serve

    serve(__doc__, make_peer)
