#!/usr/bin/env python3
"""Writes the .npz files beside it: answers of NumPy that tests hold the tensor API against.

    sudo apt-get install python3-numpy    # the tests themselves do not need it
    /usr/bin/python3 tests/reference/make_tensor_references.py

A file holds inputs ("matrix") and results, whose names say all that the test needs to know:

    sort x=matrix axis=1 mode=down/values

is the result "values" of the case "sort x=matrix axis=1 mode=down" (Answers.write() says how they
lie in the file). Shapes and indices are those of the tensor API. Where it differs from NumPy
(column-major flattening, broadcasting from the first dimension, several index tensors as every
combination of theirs, dtypes), it is spelled out here from the API's rules. Numbers are multiples
of 1/8 where a sum should be exact.
"""

import itertools
import os
import warnings

import numpy as np

from answers import (DTYPES, FLOATS, INF, NAN, Answers, divide, flatten, float_dtype, mean_dtype,
                     name_of, sum_dtype, write_npz)
from indexing_answers import gradients, indexing
from neural_answers import neural
from sparse_answers import sparse


# ---- Order ----


def sorting_order(line, descending):
    """NaN come last in both directions, equal elements keep their order."""
    values = line.tolist()  # Python's numbers: exact for every dtype
    sign = -1 if descending else 1

    def key(i):
        is_nan = values[i] != values[i]
        return is_nan, 0 if is_nan else sign * values[i]

    return sorted(range(len(values)), key=key)


def sort_case(file, x, axis, mode):
    array = file.arrays[x]
    lines = (np.apply_along_axis(sorting_order, axis, array, mode == "down") if array.size
             else np.zeros(array.shape, np.int64))
    indices = lines.astype(np.uint32)
    file.case(f"sort x={x} axis={axis} mode={mode}", indices=indices,
              values=np.take_along_axis(array, lines, axis))


def order_inputs(file):
    for dtype in DTYPES:
        ties = file.eighths(f"ties_{dtype}", (5, 4, 3), dtype, low=-4, high=5)
        if dtype in FLOATS:
            special = np.array([NAN, INF, -INF, -0.0, 0.0, NAN], DTYPES[dtype])
            ties.flat[file.random.choice(ties.size, size=24, replace=False)] = np.tile(special, 4)
        file.ends(dtype)
        file.input(f"none_{dtype}", np.zeros((0, 3)), dtype)
    for dtype in ("s16", "s32", "s64", "u8", "u16", "u32", "u64"):
        limits = np.iinfo(DTYPES[dtype])
        values = [limits.max, limits.min, 0, 1, limits.max - 1, limits.max // 2 + 1, limits.min]
        file.add(f"limits_{dtype}", np.array(values, DTYPES[dtype]))
    file.eighths("long_f32", (200,))
    file.eighths("long_s32", (3, 40), "s32")


def first_of_order(file, x, axis, mode, counts):
    array = file.arrays[x]
    for k in counts:
        first = np.take(file.arrays[f"sort x={x} axis={axis} mode={mode}/indices"], range(k), axis)
        file.case(f"topk x={x} k={k} axis={axis} mode={mode}", indices=first,
                  values=np.take_along_axis(array, first.astype(np.int64), axis))


def order(file):
    order_inputs(file)
    inputs = list(file.arrays)
    for x, mode in itertools.product(inputs, ("up", "down")):
        array = file.arrays[x]
        for axis in range(3) if x == "ties_f32" else (array.ndim // 2,):
            sort_case(file, x, axis, mode)
            length = array.shape[axis]
            first_of_order(file, x, axis, mode, {1, length // 2, length} - {0})
        if x.startswith("none"):
            sort_case(file, x, 0, mode)
    cumulative_sums(file)
    medians(file)


def cumulative_sums(file):
    for dtype in DTYPES:
        x = file.eighths(f"sums_{dtype}", (5, 4, 3), dtype, low=-30, high=30)
        wide = x.dtype if dtype in FLOATS else sum_dtype(x.dtype)
        for axis in range(3) if dtype == "f32" else (1,):
            file.case(f"cumsum x=sums_{dtype} axis={axis}",
                      y=np.cumsum(x, axis=axis, dtype=wide).astype(wide))
        for name, axis in ((f"ends_{dtype}", 0), (f"none_{dtype}", 0), (f"none_{dtype}", 1)):
            sums = np.cumsum(file.arrays[name], axis=axis, dtype=wide)
            # A sum of -0 is 0.
            file.case(f"cumsum x={name} axis={axis}", y=(sums + sums.dtype.type(0)).astype(wide))
    special = file.input("specials", [1, INF, 2, -INF, 1, NAN, 3])
    file.case("cumsum x=specials axis=0", y=np.cumsum(special))
    long = file.arrays["long_f32"]
    file.case("cumsum x=long_f32 axis=0", y=np.cumsum(long, dtype=np.float64).astype(np.float32))


def medians(file):
    def median(name, axes):
        x = file.arrays[name]
        # Of float64, whose middle two add up exactly.
        result = np.median(x.astype(np.float64), axis=tuple(axes) or None, keepdims=True)
        file.case(f"median x={name} axes={','.join(map(str, axes))}",
                  y=result.astype(mean_dtype(x.dtype)))

    file.eighths("cube_f32", (4, 3, 5))
    for axes in ([], [0], [1], [2], [0, 1], [2, 0], [1, 2], [0, 1, 2]):
        median("cube_f32", axes)
    for dtype in DTYPES:
        for axes in ([], [0], [2, 1]):
            median(f"sums_{dtype}", axes)
        median(f"ends_{dtype}", [0])
        median(f"none_{dtype}", [1])
    median("specials", [])
    holes = file.input("holes", [[1, NAN, 3, 2], [5, 4, 7, 6], [-INF, INF, 1, INF]])
    assert holes.shape == (3, 4)
    median("holes", [0])
    median("holes", [1])


# ---- Reductions ----


def reduce_case(file, name, x, axes, function, extra=""):
    """`function` keeps the dimensions it reduces; no axes mean all, and their order is free."""
    every = tuple(sorted(axes)) or tuple(range(file.arrays[x].ndim))
    text = f"{name} x={x} axes={','.join(map(str, axes))}{extra}"
    file.case(text, y=function(file.arrays[x], every))


def wide(x):
    return x.astype(np.float64)


REDUCTIONS = {
    "sum": lambda x, axes: np.sum(x, axis=axes, keepdims=True, dtype=sum_dtype(x.dtype), initial=0),
    "amin": lambda x, axes: np.min(x, axis=axes, keepdims=True),
    "amax": lambda x, axes: np.max(x, axis=axes, keepdims=True),
    # A sum of -0 is 0.
    "mean": lambda x, axes: (np.mean(wide(x), axis=axes, keepdims=True) + 0).astype(
        mean_dtype(x.dtype)),
    "std": lambda x, axes: np.std(wide(x), axis=axes, keepdims=True).astype(mean_dtype(x.dtype)),
    "any": lambda x, axes: np.any(x != 0, axis=axes, keepdims=True),
    "all": lambda x, axes: np.all(x != 0, axis=axes, keepdims=True),
    "countNonzero": lambda x, axes: np.sum(x != 0, axis=axes, keepdims=True, dtype=np.uint32),
}


def variance(bias):
    return lambda x, axes: np.var(wide(x), axis=axes, ddof=bias, keepdims=True).astype(
        mean_dtype(x.dtype))


def p_norm(p):
    """Of 16-bit floats it is f32."""
    def norm(x, axes):
        size = np.abs(wide(x))
        if p == "inf":
            result = np.max(size, axis=axes, keepdims=True)
        elif p == "-inf":
            result = np.min(size, axis=axes, keepdims=True)
        elif p == 0:
            result = np.sum(size != 0, axis=axes, keepdims=True)
        else:
            result = np.sum(size ** p, axis=axes, keepdims=True) ** (1 / p)
        return result.astype(sum_dtype(np.dtype(mean_dtype(x.dtype))))
    return norm


def composed_reductions(file, x, axes):
    for name in ("mean", "std", "any", "all", "countNonzero"):
        reduce_case(file, name, x, axes, REDUCTIONS[name])
    for bias in (0, 1):
        reduce_case(file, "var", x, axes, variance(bias), f" bias={bias}")
    for p in (0, 1, 2, 3, "inf", "-inf") if file.arrays[x].size else (0, 1, 2, 3):
        reduce_case(file, "norm", x, axes, p_norm(p), f" p={p}")


def all_reductions(file, x, axes):
    for name in ("sum", "amin", "amax"):
        reduce_case(file, name, x, axes, REDUCTIONS[name])
    composed_reductions(file, x, axes)


def extremes(file, x, axis):
    """The first index of the extreme; a NaN is the extreme of its line."""
    array = file.arrays[x]
    for name, best, value in (("min", np.argmin, np.min), ("max", np.argmax, np.max)):
        file.case(f"{name} x={x} axis={axis}", values=value(array, axis=axis, keepdims=True),
                  indices=best(array, axis=axis, keepdims=True).astype(np.uint32))


def reductions(file):
    every = ([], [0], [1], [2], [0, 1], [1, 2], [2, 0], [0, 1, 2])
    for dtype in DTYPES:
        file.eighths(f"cube_{dtype}", (3, 4, 5), dtype, low=-20, high=20)
        for axes in every if dtype == "f32" else ([], [1], [2, 0]):
            all_reductions(file, f"cube_{dtype}", axes)
        file.ends(dtype)
        all_reductions(file, f"ends_{dtype}", [0])
        file.input(f"none_{dtype}", np.zeros((0, 3)), dtype)
        for axes in ([], [0], [1]):
            composed_reductions(file, f"none_{dtype}", axes)
        tied = file.eighths(f"tied_{dtype}", (6, 4, 3), dtype, low=-3, high=3)
        if dtype in FLOATS:
            tied[2:4, 1, 1] = NAN
            tied[:, 2, 0] = INF
            tied[3, :, 2] = -INF
        for axis in range(3):
            extremes(file, f"tied_{dtype}", axis)
        extremes(file, f"ends_{dtype}", 0)
        extremes(file, f"none_{dtype}", 1)
    holes = file.input("holes", [[1, NAN, 0, -0.0], [0, 0, NAN, 0], [-INF, 2, INF, 0]])
    assert holes.shape == (3, 4)
    for name, axes in itertools.product(("amin", "amax", "any", "all", "countNonzero"),
                                        ([], [0], [1])):
        reduce_case(file, name, "holes", axes, REDUCTIONS[name])
    file.input("large_s16", [[32767, 32767], [-32768, 1]], "s16")
    file.input("large_u8", np.full((40, 3), 255), "u8")
    file.input("large_s32", [2**31 - 1, 1, 5], "s32")
    for x in ("large_s16", "large_u8", "large_s32"):
        reduce_case(file, "sum", x, [0], REDUCTIONS["sum"])
    file.input("positive", file.random.randint(512, 1024, size=(31, 7)) / 7)
    for axes in ([], [0], [1]):
        for name in ("sum", "mean"):
            function = (lambda x, axes: np.sum(wide(x), axis=axes, keepdims=True).astype(x.dtype)
                        ) if name == "sum" else REDUCTIONS[name]
            reduce_case(file, name, "positive", axes, function)
        reduce_case(file, "var", "positive", axes, variance(1), " bias=1")
        reduce_case(file, "norm", "positive", axes, p_norm(3), " p=3")


# ---- Shapes and selection ----


def planes():
    """The names of inputs that every function which moves or chooses elements is tried on."""
    return ["line_f32", "cube_s32"] + [f"{name}_{dtype}" for name in ("plane", "none")
                                       for dtype in DTYPES]


def plane_inputs(file):
    file.eighths("line_f32", (5,))
    file.eighths("cube_s32", (3, 2, 4), "s32")
    for dtype in DTYPES:
        plane = file.eighths(f"plane_{dtype}", (4, 3), dtype)
        if dtype in FLOATS:
            plane[0, 1], plane[2, 0], plane[3, 2], plane[3, 1] = NAN, INF, -INF, -0.0
        file.input(f"none_{dtype}", np.zeros((0, 3)), dtype)
        file.ends(dtype)


def padding(file):
    widths = {"line": ["2:0", "0:3", "5:5"], "cube": ["1:0;2:1;0:3", "0:1;0:0;4:2"],
              "none": ["0:0;2:1"], "plane": ["1:2;0:3"]}
    every = {x: widths[x.split("_")[0]] for x in planes()}
    every["plane_f32"] = ["1:2;0:3", "4:4;3:3", "0:0;2:1"]
    for x, mode in itertools.product(every, ("constant", "edge", "symmetric")):
        array = file.arrays[x]
        for text in every[x]:
            pairs = [tuple(map(int, pair.split(":"))) for pair in text.split(";")]
            if array.size == 0:
                text, pairs = ("1:2;2:0", [(1, 2), (2, 0)]) if mode == "constant" else (text, pairs)
            pairs += [(0, 0)] * (array.ndim - len(pairs))
            file.case(f"pad x={x} widths={text} mode={mode}",
                      y=np.pad(array, pairs, mode=mode))


def moves(file):
    for x in planes():
        array = file.arrays[x]
        for axis in range(array.ndim):
            file.case(f"flip x={x} axis={axis}", y=np.flip(array, axis))
            for shift in (0, 1, -1, -7, 1001, -100001) if x == "line_f32" else (-100001, 1):
                file.case(f"roll x={x} shift={shift} axis={axis}", y=np.roll(array, shift, axis))
    for x, reps in itertools.product(planes(), ("2,3", "1,1,2", "3,1,2,2", "2,0")):
        array, counts = file.arrays[x], list(map(int, reps.split(",")))
        rank = max(array.ndim, len(counts))
        padded = array.reshape(array.shape + (1,) * (rank - array.ndim))
        counts += [1] * (rank - len(counts))
        file.case(f"tile x={x} shape={reps}", y=np.tile(padded, counts))


def triangles(file):
    for name, shape, dtype in (("wide", (4, 6), "f32"), ("tall", (6, 4), "s32"),
                               ("batch", (3, 3, 2), "f64"), ("batches", (2, 5, 2, 2), "b8"),
                               ("row", (1, 4), "f16")):
        x = file.eighths(name, shape, dtype)
        if name == "wide":
            x[0, 4], x[3, 0], x[2, 2] = NAN, INF, NAN
    matrices = [name for name in planes() if file.arrays[name].ndim > 1]
    for name in ["wide", "tall", "batch", "batches", "row"] + matrices:
        x = file.arrays[name]
        row = np.arange(x.shape[0]).reshape((-1, 1) + (1,) * (x.ndim - 2))
        column = np.arange(x.shape[1]).reshape((1, -1) + (1,) * (x.ndim - 2))
        file.case(f"tril x={name}", y=np.where(row >= column, x, np.zeros((), x.dtype)))
        file.case(f"triu x={name}", y=np.where(row <= column, x, np.zeros((), x.dtype)))


def join(file, names, axis):
    arrays = [file.arrays[name] for name in names.split(",")]
    rank = max([axis + 1] + [array.ndim for array in arrays])
    padded = [array.reshape(array.shape + (1,) * (rank - array.ndim)) for array in arrays]
    file.case(f"concatenate x={names} axis={axis}", y=np.concatenate(padded, axis))


def joins(file):
    for name, shape in (("a", (2, 3)), ("b", (4, 3)), ("c", (2, 1)), ("d", (2, 3, 2)), ("e", (2,)),
                        ("nothing", (0, 3))):
        file.eighths(name, shape)
    for names, axis in (("a,b", 0), ("b,a,b", 0), ("a,c", 1), ("c,a,c", 1), ("a,a", 2), ("a,d", 2),
                        ("d,a", 2), ("e,c", 1), ("e,a,e", 1), ("e,e", 3), ("nothing,a", 0),
                        ("a,nothing,b", 0), ("a", 1)):
        join(file, names, axis)
    for dtype in DTYPES:
        join(file, f"plane_{dtype},none_{dtype},plane_{dtype}", 0)
        join(file, f"none_{dtype},none_{dtype}", 1)
    file.input("zeros", np.zeros((3, 2)))
    file.input("few", [[0, 1, -0.0], [NAN, 0, INF], [0, 0, 1e-30]])
    for x in planes() + ["zeros", "few", "batches"] + [f"ends_{dtype}" for dtype in DTYPES]:
        file.case(f"nonzero x={x}", y=np.flatnonzero(flatten(file.arrays[x])).astype(np.uint32))


def left_aligned(*arrays):
    """Broadcasting matches dimensions from the first: missing ones are appended."""
    rank = max(array.ndim for array in arrays)
    return [array.reshape(array.shape + (1,) * (rank - array.ndim)) for array in arrays]


def selection(file):
    for dtype in DTYPES:
        x, y = file.eighths(f"x_{dtype}", (4, 3), dtype), file.arrays[f"plane_{dtype}"]
        for condition in ("where_b8", "column_b8", "row_b8"):
            if condition not in file.arrays:
                shape = {"where_b8": (4, 3), "column_b8": (4,), "row_b8": (1, 3)}[condition]
                file.eighths(condition, shape, "b8")
            c, x2, y2 = left_aligned(file.arrays[condition], x, y)
            file.case(f"where c={condition} x=x_{dtype} y=plane_{dtype}", y=np.where(c, x2, y2))
        # A number becomes of the tensor's dtype.
        file.case(f"where c=column_b8 x=x_{dtype} value=1.5",
                  y=np.where(left_aligned(file.arrays["column_b8"], x)[0], x,
                             np.array(1.5).astype(x.dtype)))
    limits(file)


def f32_first(x, number):
    """Both as they meet: a number is an f32 before it meets the tensor."""
    kind = np.float64 if x.dtype == np.float64 else np.float32
    return x.astype(kind), np.float32(number).astype(kind)


def limits(file):
    bumps = file.input("bumps", [-INF, -2, -0.0, 0.1, 0.3, NAN, 5, INF])
    file.input("bumps_f64", bumps.astype(np.float64), "f64")
    file.input("bumps_f16", bumps, "f16")
    names = ["bumps", "bumps_f64", "bumps_f16"] + [
        f"{name}_{dtype}" for name in ("x", "ends", "none") for dtype in DTYPES]
    for x, (low, high) in itertools.product(names, ((-1.5, 0.1), (0.25, 4), (3, -3))):
        (array, below), (_, above) = (f32_first(file.arrays[x], number) for number in (low, high))
        y = np.minimum(np.maximum(array, below), above)
        file.case(f"clip x={x} low={low} high={high}", y=y)
    for x, number in itertools.product(names, (0.1, -3)):
        operands = f32_first(file.arrays[x], number)
        file.case(f"minimum x={x} number={number}", y=np.minimum(*operands))
        file.case(f"maximum x={x} number={number}", y=np.maximum(*operands))
    for dtype in DTYPES:
        low = file.eighths(f"low_{dtype}", (4,), dtype, low=-20, high=3)
        high = file.eighths(f"high_{dtype}", (1, 3), dtype, low=1)
        for name in ("x", "plane"):
            x, below, above = left_aligned(file.arrays[f"{name}_{dtype}"], low, high)
            file.case(f"clip x={name}_{dtype} lowTensor=low_{dtype} highTensor=high_{dtype}",
                      y=np.minimum(np.maximum(x, below), above))


def functions_of_floats(file):
    for dtype in DTYPES:
        file.input(f"bent_{dtype}", [0, 1, 0.25, 3, 5, 11, 80] if dtype[0] in "ub" else
                   [0, -0.0, 1, -1, 0.25, -4, 11, -80, 80] + [NAN, INF, -INF] * (dtype in FLOATS),
                   dtype)
        for name in (f"bent_{dtype}", f"x_{dtype}", f"ends_{dtype}", f"none_{dtype}"):
            x = file.arrays[name]
            file.case(f"sigmoid x={name}",
                      y=(1 / (1 + np.exp(-x.astype(np.float64)))).astype(float_dtype(x.dtype)))
            file.case(f"isInvalidArray x={name}", y=np.any(~np.isfinite(x.astype(np.float64))))
        x = file.arrays[f"bent_{dtype}"]
        for p in (0, 1, 2, 3, 0.5, -1, -2, 1.5):
            base, exponent = f32_first(x, p)
            file.case(f"power x=bent_{dtype} exponent={p}",
                      y=np.power(wide(base), exponent).astype(base.dtype))
        exponents, base = f32_first(x, 0.75)
        file.case(f"power x=bent_{dtype} base=0.75",
                  y=np.power(np.float64(base), wide(exponents)).astype(base.dtype))
        file.eighths(f"exponents_{dtype}", x.shape, dtype, low=-20, high=20)
        file.case(f"power x=bent_{dtype} y=exponents_{dtype}",
                  y=np.power(wide(x), wide(file.arrays[f"exponents_{dtype}"])).astype(
                      float_dtype(x.dtype)))


def creation(file):
    for name, dtype in DTYPES.items():
        for size in (0, 1, 3):
            file.case(f"identity type={name} dim={size}", y=np.eye(size).astype(dtype))
        for shape, times in (((3, 2), (1,)), ((2, 2), (2, 3)), ((2,), (1, 2, 2)), ((300,), (1,)),
                             ((2500,), (1,)), ((0, 3), (2, 2)), ((), (2,))):
            counting = np.arange(np.prod(shape, dtype=int)).astype(dtype)
            more = (1,) * (len(times) - len(shape))
            counting = counting.reshape(shape + more, order="F")
            file.case(f"iota type={name} dims={','.join(map(str, shape))} "
                      f"tile={','.join(map(str, times))}",
                      y=np.tile(counting, times + (1,) * (len(shape) - len(times))))


def arithmetic(file):
    """Remainders have the sign of the dividend, quotients of integers lose their fraction."""
    signs = np.array([(x, y) for x in (-9, -8, -1, 0, 1, 7, 100) for y in (-8, -3, -1, 1, 2, 5)])
    for dtype in ("s16", "s32", "s64", "u8", "u32", "u64", "f16", "f32", "f64"):
        values = np.abs(signs) if dtype.startswith("u") else signs
        x = file.input(f"left_{dtype}", values[:, 0], dtype)
        y = file.input(f"right_{dtype}", values[:, 1], dtype)
        operands = f"x=left_{dtype} y=right_{dtype}"
        file.case(f"mod {operands}", y=np.fmod(x, y))
        file.case(f"div {operands}", y=divide(x, y))
    x = file.input("left", [5.5, -5.5, INF, 3, NAN, -0.0, 1e30, 0.3, -7.25])
    y = file.input("right", [2, 2, 3, -INF, 1, 5, 7, 0.1, -2.5])
    file.case("mod x=left y=right", y=np.fmod(x, y))
    for name, shape in (("m34", (3, 4)), ("m3", (3,)), ("m14", (1, 4)), ("m312", (3, 1, 2)),
                        ("m142", (1, 4, 2)), ("m1", (1,)), ("m0", ())):
        file.input(name, file.random.randint(-9, 9, size=shape) * 2 + 1, "s32")
    for x, y in (("m34", "m3"), ("m3", "m34"), ("m34", "m14"), ("m312", "m14"), ("m34", "m312"),
                 ("m34", "m142"), ("m0", "m312"), ("m34", "m0"), ("m1", "m34"), ("m3", "m14")):
        left, right = left_aligned(file.arrays[x], file.arrays[y])
        file.case(f"sub x={x} y={y}", y=left - right)


def shapes(file):
    plane_inputs(file)
    padding(file)
    moves(file)
    triangles(file)
    joins(file)
    selection(file)
    functions_of_floats(file)
    creation(file)
    arithmetic(file)


# ---- Matrix products ----


def product(x, y, transpose_x, transpose_y):
    """Matrices in the first two dimensions, a batch in the others or on one side alone."""
    row, column = x.ndim == 1, y.ndim == 1
    x = x[np.newaxis] if row else np.swapaxes(x, 0, 1) if transpose_x else x
    y = y[:, np.newaxis] if column else np.swapaxes(y, 0, 1) if transpose_y else y
    batch = "abc"[:max(x.ndim, y.ndim) - 2]
    result = np.einsum(f"mk{batch[:x.ndim - 2]},kn{batch[:y.ndim - 2]}->mn{batch}", x, y)
    if row and column:
        return result.reshape(1)
    return result[0] if row else result[:, 0] if column else result


def matmul(file):
    cases = [
        ((3, 4), (4, 5)), ((1, 4), (4, 1)), ((3, 1), (1, 5)), ((17, 19), (19, 3)), ((4,), (4,)),
        ((4,), (4, 5)), ((3, 4), (4,)), ((1,), (1,)), ((3, 4, 2), (4, 5, 2)), ((3, 4), (4, 5, 2)),
        ((3, 4, 2), (4, 5)), ((3, 4, 2, 3), (4, 5, 2, 3)), ((3, 4), (4, 5, 2, 3)),
        ((3, 4, 2, 3), (4, 5)), ((3, 4, 2), (4,)), ((4,), (4, 5, 2)),
    ]

    def add(dtype, shapes, transpose):
        names = []
        for shape, flipped in zip(shapes, transpose):
            if flipped and len(shape) > 1:
                shape = (shape[1], shape[0]) + shape[2:]
            name = f"{dtype}_{'x'.join(map(str, shape))}"
            if name not in file.arrays:
                file.eighths(name, shape, dtype, low=-8, high=8)
            names.append(name)
        multiply(names, transpose)

    def multiply(names, transpose):
        x, y = (file.arrays[name] for name in names)
        wide_x, wide_y = (wide(x), wide(y)) if name_of(x.dtype) in FLOATS else (x, y)
        file.case(f"matmul x={names[0]} y={names[1]} tx={transpose[0]} ty={transpose[1]}",
                  y=product(wide_x, wide_y, *transpose).astype(x.dtype))

    for shape_pair, transpose in itertools.product(cases[:4], [(0, 1), (1, 0)]):
        add("f32", shape_pair, transpose)
    for shape_pair, transpose in itertools.product(cases, [(0, 0), (1, 1)]):
        add("f32", shape_pair, transpose)
    empty = [((3, 0), (0, 5)), ((0, 4), (4, 5)), ((0,), (0,)), ((0,), (0, 5)), ((3, 4, 0), (4, 5))]
    # NumPy's sums of b8 are no numbers: those of one element are.
    of_one = [((3, 1), (1, 5)), ((1,), (1,)), ((2, 1, 3), (1, 4, 3))]
    for dtype in DTYPES:
        chosen = [] if dtype == "f32" else of_one if dtype == "b8" else [
            cases[number] for number in (0, 4, 5, 6, 8, 9, 14)]
        for number, shape_pair in enumerate(chosen + empty):
            add(dtype, shape_pair, (number % 2, 1))
        if dtype != "b8":
            file.ends(dtype)
            multiply([f"ends_{dtype}"] * 2, (1, 0))


# ---- The format itself ----


def arrays():
    """Element (i, j, k) is 100 i + 10 j + k, in both orders."""
    values = np.fromfunction(lambda i, j, k: 100 * i + 10 * j + k, (2, 3, 4), dtype=int)
    result = {}
    for dtype, kind in DTYPES.items():
        if dtype != "bf16":
            array = (values % 3 == 0) if dtype == "b8" else values.astype(kind)
            result[f"{dtype} C"] = np.ascontiguousarray(array)
            result[f"{dtype} F"] = np.asfortranarray(array)
    return {**result, "scalar": np.float64(2.5), "empty": np.zeros((2, 0, 3), np.int16)}


def main():
    folder = os.path.dirname(os.path.abspath(__file__))
    # Special values and empty axes are what the cases are about.
    warnings.simplefilter("ignore", RuntimeWarning)
    write_npz(os.path.join(folder, "arrays.npz"), arrays())
    makers = (indexing, gradients, order, reductions, shapes, matmul, neural, sparse)
    for seed, make in enumerate(makers):
        file = Answers(seed)
        make(file)
        file.write(os.path.join(folder, make.__name__ + ".npz"))


if __name__ == "__main__":
    main()
