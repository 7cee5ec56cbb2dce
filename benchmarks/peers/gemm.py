"""The cases of //benchmarks:gemm that its peers time."""
SIZES = [
    (1024, 1024, 1024),
    (256, 256, 256),
    (2048, 1024, 1024),
    (1, 512, 512),
    (1, 1024, 1024),
    (4, 1024, 1024),
    (16, 1024, 1024),
    (32, 32, 32),
    (64, 64, 64),
    (128, 128, 128),
]


def cases(library):
    """By name, functions that make a call; `library` as in kernels.py."""

    def product(m, n, k):
        return lambda: library.forward(lambda x, weights: x @ weights, [(m, k), (k, n)])

    return {f"matmul {m}x{n}x{k}": product(m, n, k) for m, n, k in SIZES}
