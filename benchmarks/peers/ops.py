#!/usr/bin/env python3
"""Times the cases of //benchmarks:ops in PyTorch, JAX or MLX, one block of calls a request.

usage: ops.py {"torch 1.13",torch,jax,mlx} THREADS

Shapes are those of the benchmark in row-major order. JAX's calls are compiled; PyTorch and MLX run as
users call them. From OUT_OF_CACHE elements on each call finds cold caches, as in the benchmark.
"""
import functools
import math
import time

from serving import serve

LINE = 1024
OUT_OF_CACHE = 1 << 24
MORE_THAN_CACHES_HOLD = 256 << 20  # bytes, as of our own subjects
DTYPES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "s32": "int32",
    "s64": "int64",
    "u8": "uint8",
    "b8": "bool",
}
# Names of a function; a peer has the first that it has.
ELEMENTWISE = {
    "negative": ["negative"],
    "absolute": ["abs"],
    "logicalNot": ["logical_not"],
    "exp": ["exp"],
    "log": ["log"],
    "log1p": ["log1p"],
    "sin": ["sin"],
    "cos": ["cos"],
    "sqrt": ["sqrt"],
    "tanh": ["tanh"],
    "erf": ["erf"],
    "floor": ["floor"],
    "ceil": ["ceil"],
    "rint": ["round"],
    "sign": ["sign"],
    "isnan": ["isnan"],
    "isinf": ["isinf"],
    "sigmoid": ["sigmoid"],
    "add": ["add"],
    "sub": ["subtract"],
    "mul": ["multiply"],
    "div": ["divide"],
    "mod": ["fmod"],
    "minimum": ["minimum"],
    "maximum": ["maximum"],
    "power": ["pow", "power"],
    "eq": ["eq", "equal"],
    "neq": ["not_equal"],
    "lessThan": ["less"],
    "lessThanEqual": ["less_equal"],
    "greaterThan": ["greater"],
    "greaterThanEqual": ["greater_equal"],
    "logicalAnd": ["logical_and"],
    "logicalOr": ["logical_or"],
    "bitwiseAnd": ["bitwise_and"],
    "bitwiseOr": ["bitwise_or"],
    "bitwiseXor": ["bitwise_xor"],
    "lShift": ["bitwise_left_shift", "left_shift"],
    "rShift": ["bitwise_right_shift", "right_shift"],
}
BINARY_FROM = "add"
REDUCTIONS = {"sum": ["sum"], "amax": ["amax", "max"], "amin": ["amin", "min"]}
# Where the functions are interesting; the others take numbers from -4 to 4.
RANGES = {
    "exp": (-80, 80),
    "log": (1e-3, 100),
    "log1p": (-0.9, 100),
    "sin": (-100, 100),
    "cos": (-100, 100),
    "sqrt": (0, 100),
    "tanh": (-10, 10),
    "erf": (-5, 5),
    "power": (0.1, 4),
}


class Torch:
    def __init__(self, threads):
        import torch

        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.modules = [torch]
        self.torch = torch
        self.compile = lambda function: function
        self.wait = lambda result: None

    def array(self, values, dtype):
        return self.torch.from_numpy(values).to(getattr(self.torch, dtype))

    def cast(self, dtype):
        return lambda x: x.to(getattr(self.torch, dtype))

    def conv2d(self):
        return lambda x, w: self.torch.nn.functional.conv2d(x, w, padding=1)

    def pool2d(self):
        return lambda x: self.torch.nn.functional.max_pool2d(x, 2)

    def sort(self):
        return lambda x: self.torch.sort(x, dim=1)[0]

    def copy(self):
        return lambda x: x.clone(memory_format=self.torch.contiguous_format)

    def random(self, name, shape):
        return getattr(self.torch, name), [shape]


class Jax:
    def __init__(self, threads):
        import jax
        import jax.numpy as jnp
        import jax.scipy.special

        jax.config.update("jax_enable_x64", True)
        self.modules = [jnp, jax.nn, jax.scipy.special]
        self.jax, self.jnp = jax, jnp
        self.compile = jax.jit
        self.wait = jax.block_until_ready

    def array(self, values, dtype):
        return self.jnp.asarray(values).astype(dtype)

    def cast(self, dtype):
        return lambda x: x.astype(dtype)

    def conv2d(self):
        return lambda x, w: self.jax.lax.conv(x, w, (1, 1), "SAME")

    def pool2d(self):
        return lambda x: self.jax.lax.reduce_window(
            x, -math.inf, self.jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"
        )

    def sort(self):
        return lambda x: self.jnp.sort(x, axis=1)

    def copy(self):
        return lambda x: x

    def random(self, name, shape):
        draw = {"rand": self.jax.random.uniform, "randn": self.jax.random.normal}[name]
        return (lambda key: draw(key, shape)), [self.jax.random.key(1)]


class Mlx:
    def __init__(self, threads):
        import mlx.core as mx

        mx.set_default_device(mx.cpu)
        self.modules = [mx]
        self.mx = mx
        self.compile = lambda function: function
        self.wait = mx.eval

    def array(self, values, dtype):
        return self.mx.array(values).astype(self.dtype(dtype))

    def dtype(self, name):
        return self.mx.bool_ if name == "bool" else getattr(self.mx, name)

    def cast(self, dtype):
        return lambda x: x.astype(self.dtype(dtype))

    def conv2d(self):
        mx = self.mx
        return lambda x, w: mx.conv2d(x.transpose(0, 2, 3, 1), w.transpose(0, 2, 3, 1), padding=1)

    def pool2d(self):
        return None

    def sort(self):
        return lambda x: self.mx.sort(x, axis=1)

    def copy(self):
        return self.mx.contiguous

    def random(self, name, shape):
        draw = {"rand": self.mx.random.uniform, "randn": self.mx.random.normal}[name]
        return lambda: draw(shape=shape), []


def find(peer, names):
    found = (getattr(module, name, None) for module in peer.modules for name in names)
    return next((function for function in found if function), None)


def numbers(peer, shape, dtype, low=-4, high=4):
    """Random numbers; integers between 0 and the larger of high and 1."""
    import numpy

    random = numpy.random.default_rng(1)
    if "float" in dtype:
        values = random.random(shape, "float32") * (high - low) + low
    else:
        values = random.integers(0, max(high, 1), shape, "int32", endpoint=True)
    return peer.array(values, dtype)


def elementwise(peer, stem, dtype, elements):
    function = find(peer, ELEMENTWISE[stem])
    order = list(ELEMENTWISE)
    count = 2 if order.index(stem) >= order.index(BINARY_FROM) else 1
    inputs = [numbers(peer, elements, dtype, *RANGES.get(stem, ())) for _ in range(count)]
    return function, inputs


def reduction(peer, stem, dtype, elements):
    name, _, axis = stem.partition(" axis ")
    side = math.isqrt(elements)
    reduce = find(peer, REDUCTIONS[name])
    # The first dimension of the benchmark's arrays is the last one here.
    function = (lambda x: reduce(x, 1 - int(axis))) if axis else (lambda x: reduce(x))
    if not axis and peer.modules[0].__name__ == "torch":
        function = lambda x: getattr(peer.torch, REDUCTIONS[name][-1])(x)
    return function, [numbers(peer, (side, side), dtype)]


def other(peer, stem, dtype, elements):
    """The function and its inputs, or None."""
    side = math.isqrt(elements)
    square, lines = (side, side), (elements // LINE, LINE)
    images = (elements // 1024, 4, 16, 16)
    one = {
        "transpose": (square, lambda: lambda x: peer.copy()(x.T)),
        "cumsum": (elements, lambda: lambda x: peer.modules[0].cumsum(x, 0)),
        "cumsum axis 1": (square, lambda: lambda x: peer.modules[0].cumsum(x, 0)),
        "sort of lines": (lines, peer.sort),
        "mean": (square, lambda: lambda x: peer.modules[0].mean(x, 1)),
        "var": (lines, lambda: lambda x: peer.modules[0].var(x, 1)),
        "argmax": (lines, lambda: lambda x: peer.modules[0].argmax(x, 1)),
        "pool2d": (images, peer.pool2d),
    }
    two = {
        "matmul": ((64, elements // 64), (64, 64), lambda: lambda x, y: y @ x),
        "conv2d": (images, (4, 4, 3, 3), peer.conv2d),
    }
    if stem in ("rand", "randn") and dtype == "float32":
        return peer.random(stem, (elements,))
    if stem == "gather lines":
        rows = elements // 64
        indices = numbers(peer, (rows,), "int64", 0, rows - 1)
        return (lambda x, i: x[i]), [numbers(peer, (rows, 64), dtype), indices]
    if stem in one:
        shape, make = one[stem]
        return make(), [numbers(peer, shape, dtype)]
    if stem in two:
        x, y, make = two[stem]
        return make(), [numbers(peer, x, dtype), numbers(peer, y, dtype)]
    return None, []


@functools.cache
def much_memory():
    import numpy

    return numpy.ones(MORE_THAN_CACHES_HOLD // 8)


class Cold:
    """A call that serving.py times here: what the caches hold is read out of them before each."""

    def __init__(self, call):
        self.call = call

    def seconds(self, calls):
        return sum(self.once() for _ in range(calls))

    def once(self):
        much_memory().max()
        start = time.perf_counter()
        self.call()
        return time.perf_counter() - start


def make_call(peer, name, elements):
    """A function that runs the case once, or None."""
    stem, suffix = name.rsplit(" ", 1)
    dtype = DTYPES[suffix]
    if stem in ELEMENTWISE:
        function, inputs = elementwise(peer, stem, dtype, elements)
    elif stem.split(" ")[0] in REDUCTIONS:
        function, inputs = reduction(peer, stem, dtype, elements)
    elif stem.startswith("astype from "):
        function = peer.cast(dtype)
        inputs = [numbers(peer, elements, DTYPES[stem.split(" ")[2]])]
    else:
        function, inputs = other(peer, stem, dtype, elements)
    if function is None:
        return None
    compiled = peer.compile(function)
    peer.wait(inputs)

    def call():
        peer.wait(compiled(*inputs))

    return call if elements < OUT_OF_CACHE else Cold(call)


def make_peer(name, threads):
    peer = {"torch": Torch, "jax": Jax, "mlx": Mlx}[name.split()[0]](threads)
    return lambda case, elements: make_call(peer, case, elements)


if __name__ == "__main__":
    serve(__doc__, make_peer)
