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
    # So many of each.
    (2, 2, 2, 16384),
    (1, 3, 3, 16384),
    (4, 4, 4, 4096),
    (8, 8, 8, 4096),
    (16, 16, 16, 1024),
]


def cases(library):
    """By name, functions that make a call; `library` as in kernels.py."""

    def product(m, n, k, *batch):
        return lambda: library.forward(lambda x, weights: x @ weights,
                                       [(*batch, m, k), (*batch, k, n)])

    def name(m, n, k, batch=None):
        return f"matmul {f'{batch} of ' if batch else ''}{m}x{n}x{k}"

    return {name(*sizes): product(*sizes) for sizes in SIZES}
