#!/usr/bin/env python3
"""Writes the .npz files beside it: answers of NumPy that tests hold the tensor API against.

    sudo apt-get install python3-numpy    # the tests themselves do not need it
    /usr/bin/python3 tests/reference/make_tensor_references.py

A file holds inputs ("matrix") and results, whose names say all that the test needs to know:

    sort x=matrix axis=1 mode=down/values

is the result "values" of the case "sort x=matrix axis=1 mode=down". Shapes and indices are
those of the tensor API. Where it differs from NumPy (column-major flattening, broadcasting from the
first dimension, several index tensors as every combination of theirs, dtypes), it is spelled out
here from the API's rules. Numbers are multiples of 1/8 where a sum should be exact.
"""

import itertools
import os

import numpy as np

from answers import DTYPES, FLOATS, Answers, divide, flatten, mean_dtype, sum_dtype
from indexing_answers import gradients, indexing
from neural_answers import neural

NAN, INF = float("nan"), float("inf")


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
    lines = np.apply_along_axis(sorting_order, axis, array, mode == "down")
    indices = lines.astype(np.uint32)
    file.case(f"sort x={x} axis={axis} mode={mode}", indices=indices,
              values=np.take_along_axis(array, lines, axis))
    return indices


def order_inputs(file):
    shape = (5, 4, 3)
    for dtype in ("b8", "u8", "s32", "f16", "f32", "f64"):
        ties = file.eighths(f"ties_{dtype}", shape, dtype, low=-4, high=5)
        if dtype in FLOATS:
            special = np.array([NAN, INF, -INF, -0.0, 0.0, NAN], DTYPES[dtype])
            ties.flat[file.random.choice(ties.size, size=24, replace=False)] = np.tile(special, 4)
    for dtype in ("s16", "s32", "s64", "u8", "u16", "u32", "u64"):
        limits = np.iinfo(DTYPES[dtype])
        values = [limits.max, limits.min, 0, 1, limits.max - 1, limits.max // 2 + 1, limits.min]
        file.add(f"limits_{dtype}", np.array(values, DTYPES[dtype]))
    file.eighths("long_f32", (200,))
    file.eighths("long_s32", (3, 40), "s32")


def order(file):
    order_inputs(file)
    inputs = list(file.arrays)
    for x, mode in itertools.product(inputs, ("up", "down")):
        array = file.arrays[x]
        for axis in range(3) if x == "ties_f32" else (array.ndim // 2,):
            sort_case(file, x, axis, mode)
            for k in {"ties_f32": (1, 2, array.shape[axis]), "ties_s32": (2,), "ties_f16": (2,),
                      "long_f32": (100,)}.get(x, ()):
                indices = file.arrays[f"sort x={x} axis={axis} mode={mode}/indices"]
                first = np.take(indices, range(k), axis)
                file.case(f"topk x={x} k={k} axis={axis} mode={mode}", indices=first,
                          values=np.take_along_axis(array, first.astype(np.int64), axis))
    cumulative_sums(file)
    medians(file)


def cumulative_sums(file):
    for dtype in DTYPES:
        x = file.eighths(f"sums_{dtype}", (5, 4, 3), dtype, low=-30, high=30)
        wide = x.dtype if dtype in FLOATS else sum_dtype(x.dtype)
        for axis in range(3) if dtype == "f32" else (1,):
            file.case(f"cumsum x=sums_{dtype} axis={axis}",
                      y=np.cumsum(x, axis=axis, dtype=wide).astype(wide))
    with np.errstate(invalid="ignore"):
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
        median(f"sums_{dtype}", [0])
    with np.errstate(invalid="ignore"):
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
    "sum": lambda x, axes: np.sum(x, axis=axes, keepdims=True, dtype=sum_dtype(x.dtype)),
    "amin": lambda x, axes: np.min(x, axis=axes, keepdims=True),
    "amax": lambda x, axes: np.max(x, axis=axes, keepdims=True),
    "mean": lambda x, axes: np.mean(wide(x), axis=axes, keepdims=True).astype(mean_dtype(x.dtype)),
    "std": lambda x, axes: np.std(wide(x), axis=axes, keepdims=True).astype(mean_dtype(x.dtype)),
    "any": lambda x, axes: np.any(x != 0, axis=axes, keepdims=True),
    "all": lambda x, axes: np.all(x != 0, axis=axes, keepdims=True),
    "countNonzero": lambda x, axes: np.sum(x != 0, axis=axes, keepdims=True, dtype=np.uint32),
}


def variance(bias):
    return lambda x, axes: np.var(wide(x), axis=axes, ddof=bias, keepdims=True).astype(
        mean_dtype(x.dtype))


def p_norm(p):
    def norm(x, axes):
        size = np.abs(wide(x))
        if p == "inf":
            result = np.max(size, axis=axes, keepdims=True)
        else:
            result = np.sum(size ** p, axis=axes, keepdims=True) ** (1 / p)
        return result.astype(mean_dtype(x.dtype))
    return norm


def all_reductions(file, x, axes):
    for name, function in REDUCTIONS.items():
        reduce_case(file, name, x, axes, function)
    for bias in (0, 1):
        reduce_case(file, "var", x, axes, variance(bias), f" bias={bias}")
    for p in (1, 2, 3, "inf") if len(axes) == 1 else (2,):
        reduce_case(file, "norm", x, axes, p_norm(p), f" p={p}")


def extremes(file, x, axis):
    """The first index of the extreme; a NaN is the extreme of its line."""
    array = file.arrays[x]
    for name, best, value in (("min", np.argmin, np.min), ("max", np.argmax, np.max)):
        file.case(f"{name} x={x} axis={axis}", values=value(array, axis=axis, keepdims=True),
                  indices=best(array, axis=axis, keepdims=True).astype(np.uint32))


def reductions(file):
    file.eighths("cube", (3, 4, 5))
    for axes in ([], [0], [1], [2], [0, 1], [1, 2], [2, 0], [0, 1, 2]):
        all_reductions(file, "cube", axes)
    for dtype in DTYPES:
        if dtype != "f32":
            file.eighths(f"cube_{dtype}", (3, 4, 5), dtype, low=-20, high=20)
            for name in ("sum", "amin", "amax", "mean", "countNonzero"):
                reduce_case(file, name, f"cube_{dtype}", [1], REDUCTIONS[name])
            reduce_case(file, "var", f"cube_{dtype}", [1], variance(1), " bias=1")
        if dtype in ("s16", "s64", "u16", "u32", "f64"):
            continue
        tied = file.eighths(f"tied_{dtype}", (6, 4, 3), dtype, low=-3, high=3)
        if dtype in FLOATS:
            tied[2:4, 1, 1] = NAN
            tied[:, 2, 0] = INF
            tied[3, :, 2] = -INF
        for axis in range(3) if dtype == "f32" else (0,):
            extremes(file, f"tied_{dtype}", axis)
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


def padding(file):
    line, plane, cube = "line_f32", "plane_f32", "cube_s32"
    file.eighths(line, (5,))
    file.eighths(plane, (4, 3))
    file.eighths(cube, (3, 2, 4), "s32")
    file.eighths("plane_b8", (4, 3), "b8")
    file.eighths("plane_f16", (4, 3), "f16")
    widths = {
        line: ["2:0", "0:3", "5:5"],
        plane: ["1:2;0:3", "4:4;3:3", "0:0;2:1"],
        cube: ["1:0;2:1;0:3", "0:1;0:0;4:2"],
        "plane_b8": ["1:2;2:1"], "plane_f16": ["1:2;2:1"],
    }
    for x, mode in itertools.product(widths, ("constant", "edge", "symmetric")):
        array = file.arrays[x]
        for text in widths[x]:
            pairs = [tuple(map(int, pair.split(":"))) for pair in text.split(";")]
            pairs += [(0, 0)] * (array.ndim - len(pairs))
            file.case(f"pad x={x} widths={text} mode={mode}",
                      y=np.pad(array, pairs, mode=mode))


def moves(file):
    for x in ("line_f32", "plane_f32", "cube_s32", "plane_b8", "plane_f16"):
        array = file.arrays[x]
        for axis in range(array.ndim):
            file.case(f"flip x={x} axis={axis}", y=np.flip(array, axis))
            for shift in (0, 1, -1, -7, 1001, -100001) if x == "line_f32" else (-100001, 1):
                file.case(f"roll x={x} shift={shift} axis={axis}", y=np.roll(array, shift, axis))
    for x, reps in itertools.product(("line_f32", "plane_f32", "cube_s32", "plane_b8"),
                                     ("2,3", "1,1,2", "3,1,2,2")):
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
        row = np.arange(shape[0]).reshape((-1, 1) + (1,) * (len(shape) - 2))
        column = np.arange(shape[1]).reshape((1, -1) + (1,) * (len(shape) - 2))
        file.case(f"tril x={name}", y=np.where(row >= column, x, np.zeros((), x.dtype)))
        file.case(f"triu x={name}", y=np.where(row <= column, x, np.zeros((), x.dtype)))


def joins(file):
    for name, shape in (("a", (2, 3)), ("b", (4, 3)), ("c", (2, 1)), ("d", (2, 3, 2)), ("e", (2,)),
                        ("nothing", (0, 3))):
        file.eighths(name, shape)
    for names, axis in (("a,b", 0), ("b,a,b", 0), ("a,c", 1), ("c,a,c", 1), ("a,a", 2), ("a,d", 2),
                        ("d,a", 2), ("e,c", 1), ("e,a,e", 1), ("e,e", 3), ("nothing,a", 0),
                        ("a,nothing,b", 0), ("a", 1)):
        arrays = [file.arrays[name] for name in names.split(",")]
        rank = max([axis + 1] + [array.ndim for array in arrays])
        padded = [array.reshape(array.shape + (1,) * (rank - array.ndim)) for array in arrays]
        file.case(f"concatenate x={names} axis={axis}", y=np.concatenate(padded, axis))
    file.input("zeros", np.zeros((3, 2)))
    file.input("few", [[0, 1, -0.0], [NAN, 0, INF], [0, 0, 1e-30]])
    for x in ("plane_f32", "cube_s32", "plane_b8", "plane_f16", "zeros", "few", "batches"):
        file.case(f"nonzero x={x}", y=np.flatnonzero(flatten(file.arrays[x])).astype(np.uint32))


def left_aligned(*arrays):
    """Broadcasting matches dimensions from the first: missing ones are appended."""
    rank = max(array.ndim for array in arrays)
    return [array.reshape(array.shape + (1,) * (rank - array.ndim)) for array in arrays]


def selection(file):
    for dtype in ("f32", "s32", "b8"):
        x, y = file.eighths(f"x_{dtype}", (4, 3), dtype), file.eighths(f"y_{dtype}", (4, 3), dtype)
        for condition in ("plane_b8", "column_b8", "row_b8"):
            if condition not in file.arrays:
                file.eighths(condition, (4,) if condition == "column_b8" else (1, 3), "b8")
            c, x2, y2 = left_aligned(file.arrays[condition], x, y)
            file.case(f"where c={condition} x=x_{dtype} y=y_{dtype}", y=np.where(c, x2, y2))
    bumps = file.input("bumps", [-INF, -2, -0.0, 0.1, 0.3, NAN, 5, INF])
    file.input("bumps_f64", bumps.astype(np.float64), "f64")
    file.input("bumps_f16", bumps, "f16")
    file.input("steps_s32", [-7, -2, 0, 1, 3, 9], "s32")
    # A number is an f32 before it meets the tensor.
    for x, (low, high) in itertools.product(("bumps", "bumps_f64", "bumps_f16", "steps_s32"),
                                            ((-1.5, 0.1), (0.25, 4), (3, -3))):
        array = file.arrays[x]
        kind = np.float64 if array.dtype == np.float64 else np.float32
        limits = np.float32(low).astype(kind), np.float32(high).astype(kind)
        y = np.minimum(np.maximum(array.astype(kind), limits[0]), limits[1])
        file.case(f"clip x={x} low={low} high={high}", y=y)
    low, high = file.eighths("low", (4,), low=-20, high=0), file.eighths("high", (1, 3), low=1)
    x, low, high = left_aligned(file.arrays["x_f32"], low, high)
    file.case("clip x=x_f32 lowTensor=low highTensor=high", y=np.clip(x, low, high))


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
    with np.errstate(invalid="ignore"):
        file.case("mod x=left y=right", y=np.fmod(x, y))
    for name, shape in (("m34", (3, 4)), ("m3", (3,)), ("m14", (1, 4)), ("m312", (3, 1, 2)),
                        ("m142", (1, 4, 2)), ("m1", (1,)), ("m0", ())):
        file.input(name, file.random.randint(-9, 9, size=shape) * 2 + 1, "s32")
    for x, y in (("m34", "m3"), ("m3", "m34"), ("m34", "m14"), ("m312", "m14"), ("m34", "m312"),
                 ("m34", "m142"), ("m0", "m312"), ("m34", "m0"), ("m1", "m34"), ("m3", "m14")):
        left, right = left_aligned(file.arrays[x], file.arrays[y])
        file.case(f"sub x={x} y={y}", y=left - right)


def shapes(file):
    padding(file)
    moves(file)
    triangles(file)
    joins(file)
    selection(file)
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
        x, y = (file.arrays[name].astype(np.float64) for name in names)
        file.case(f"matmul x={names[0]} y={names[1]} tx={transpose[0]} ty={transpose[1]}",
                  y=product(x, y, *transpose).astype(DTYPES[dtype]))

    for shape_pair, transpose in itertools.product(cases[:4], [(0, 1), (1, 0)]):
        add("f32", shape_pair, transpose)
    for shape_pair, transpose in itertools.product(cases, [(0, 0), (1, 1)]):
        add("f32", shape_pair, transpose)
    for dtype, number in itertools.product(("f64", "f16"), (0, 4, 5, 8, 9)):
        add(dtype, cases[number], (number % 2, 1))


# ---- The format itself ----


def arrays(file):
    """Element (i, j, k) is 100 i + 10 j + k, in both orders."""
    values = np.fromfunction(lambda i, j, k: 100 * i + 10 * j + k, (2, 3, 4), dtype=int)
    for dtype, kind in DTYPES.items():
        array = (values % 3 == 0) if dtype == "b8" else values.astype(kind)
        file.add(f"{dtype} C", np.ascontiguousarray(array))
        file.add(f"{dtype} F", np.asfortranarray(array))
    file.add("scalar", np.float64(2.5))
    file.add("empty", np.zeros((2, 0, 3), np.int16))


def main():
    folder = os.path.dirname(os.path.abspath(__file__))
    for seed, make in enumerate((arrays, indexing, gradients, order, reductions, shapes, matmul,
                                  neural)):
        file = Answers(seed)
        make(file)
        file.write(os.path.join(folder, make.__name__ + ".npz"))


if __name__ == "__main__":
    main()
