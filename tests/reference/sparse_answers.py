"""Sparse matrices in the storages of the tensor API: the dense matrix each stands for, and products.

The parts of one are the values "x" and "rows" and "columns"; CSR has where each row begins in place
of rows, and CSC where each column does.
"""

import itertools

import numpy as np

from answers import DTYPES, FLOATS, name_of

INDEX_DTYPES = {"CSR": "s32", "CSC": "s64", "COO": "u32"}
# Shape, rows and columns of elements.
PATTERNS = {
    "gaps": ((6, 5), [4, 1, 4, 2, 1, 4, 2], [3, 0, 0, 4, 3, 1, 1]),  # rows 0, 3, 5 and column 2
    "repeats": ((3, 4), [2, 0, 2, 0, 2, 1], [1, 3, 1, 3, 1, 0]),
    "filled": ((2, 3), [1, 0, 0, 1, 0, 1], [2, 0, 1, 0, 2, 1]),
    "row": ((1, 4), [0, 0], [3, 1]),
    "column": ((4, 1), [2, 0], [0, 0]),
    "once": ((4, 3), [2, 0, 1], [0, 2, 1]),  # none in the row or column of another
    "nothing": ((3, 2), [], []),
    "flat": ((0, 3), [], []),
}


def begins(lines, count):
    """Where each of `count` lines begins among the sorted line numbers, and the end."""
    return np.searchsorted(lines, np.arange(count + 1))


def add_parts(file, pattern, storage, dtype):
    """The matrix as a case names it, and as NumPy has it. Values at one place are added."""
    shape, rows, columns = PATTERNS[pattern]
    key = {"CSR": rows, "CSC": columns, "COO": range(len(rows))}[storage]
    order = np.argsort(key, kind="stable")
    rows, columns = (np.array(places, np.int64)[order] for places in (rows, columns))
    name = f"{pattern}_{storage}"
    if f"{name}_rows" not in file.arrays:
        index = INDEX_DTYPES[storage]
        file.input(f"{name}_rows", begins(rows, shape[0]) if storage == "CSR" else rows, index)
        file.input(f"{name}_columns", begins(columns, shape[1]) if storage == "CSC" else columns,
                   index)
    values = file.eighths(f"{name}_{dtype}", rows.shape, dtype, low=-8, high=8)
    dense = np.zeros(shape, values.dtype)
    np.add.at(dense, (rows, columns), values)
    return (f"x={name}_{dtype} rows={name}_rows columns={name}_columns storage={storage} "
            f"shape={shape[0]},{shape[1]}", dense)


def multiply(file, text, dense, transpose, sizes):
    """By an operand of so many columns, or by a vector."""
    dtype = name_of(dense.dtype)
    left = dense.T if transpose[0] else dense
    shape = (left.shape[1],) + sizes
    if transpose[1]:
        shape = shape[::-1]
    name = f"{dtype}_{'x'.join(map(str, shape))}"
    if name not in file.arrays:
        file.eighths(name, shape, dtype, low=-8, high=8)
    right = file.arrays[name].T if transpose[1] else file.arrays[name]
    if dtype in FLOATS:
        # A sum of -0 is 0.
        product = left.astype(np.float64) @ right.astype(np.float64) + 0
    else:
        product = left @ right
    file.case(f"matmul {text} y={name} tx={transpose[0]} ty={transpose[1]}",
              y=product.astype(dense.dtype))


def sparse(file):
    for dtype in DTYPES:
        # NumPy's sums of b8 are no numbers: those of one element are.
        chosen = PATTERNS if dtype == "f32" else ["once"] if dtype == "b8" else ["gaps", "repeats"]
        for pattern, storage in itertools.product(chosen, INDEX_DTYPES):
            text, dense = add_parts(file, pattern, storage, dtype)
            file.case(f"dense {text}", y=dense)
            multiply(file, text, dense, (0, 0), (2,))
            multiply(file, text, dense, (1, 1), (3,))
            if dtype == "f32":
                multiply(file, text, dense, (0, 1), (3,))
                multiply(file, text, dense, (0, 0), ())
                multiply(file, text, dense, (1, 0), ())
