"""Answers for parts of tensors: reading them, writing to them, and their gradients."""

import numpy as np

from answers import DTYPES, divide, flatten

def positions(index):
    """The elements of one dimension that an index tensor or mask names."""
    flat = flatten(index)
    return np.flatnonzero(flat) if flat.dtype == np.bool_ else flat.astype(np.int64)


def select_once(x, at, inputs):
    """x(at): "2;-1" literals, "1:-1:2" a range, ":" span, "@name" an index tensor or a mask."""
    items = at.split(";")
    if len(items) == 1 and items[0][0] == "@" and inputs[items[0][1:]].size == x.size:
        return flatten(x)[positions(inputs[items[0][1:]])]
    axis = 0
    for item in items:
        if item[0] == "@":
            x = np.take(x, positions(inputs[item[1:]]), axis=axis)
            axis += 1
        elif ":" in item:
            parts = [int(part) if part else None for part in item.split(":")]
            x = x[(slice(None),) * axis + (slice(*parts),)]
            axis += 1
        else:
            x = np.take(x, int(item), axis=axis)
    return np.reshape(x, (1,)) if x.ndim == 0 else x


def select(x, where, inputs):
    """`where` is "at=A|B" for x(A)(B), or "flat=A"."""
    kind, levels = where.split("=")
    if kind == "flat":
        return select_once(flatten(x), levels, inputs)
    for at in levels.split("|"):
        x = select_once(x, at, inputs)
    return x


def written(x, where, operation, y, inputs):
    """x after x(where) OPERATION y: every duplicate counts in add and sub, the last in others."""
    places = np.arange(x.size).reshape(x.shape, order="F")
    at = flatten(select(places, where, inputs))
    flat = flatten(x)
    y = np.broadcast_to(flatten(np.asarray(y).astype(x.dtype)), at.shape)
    if operation == "set":
        flat[at] = y
    elif operation == "add":
        np.add.at(flat, at, y)
    elif operation == "sub":
        np.subtract.at(flat, at, y)
    elif operation == "mul":
        flat[at] = flat[at] * y
    else:
        flat[at] = divide(flat[at], y)
    return flat.reshape(x.shape, order="F")


def index_inputs(file):
    """Indices of a tensor of shape (6, 5, 4)."""
    for dtype in ("s32", "s64", "u8", "u32", "f32"):
        file.input(f"i_{dtype}", [4, 0, 5], dtype)
    file.input("j", [3, 3, 0, 1, 3], "s32")
    file.input("k", [2, 0], "s64")
    file.input("matrix", [[5, 0], [1, 1], [2, 5]], "s32")
    file.input("one", [3], "s32")
    file.input("mask6", [1, 0, 0, 1, 1, 0], "b8")
    file.input("mask5", [0, 1, 0, 0, 1], "b8")
    file.input("mask4", [1, 1, 0, 1], "b8")
    file.input("none6", np.zeros(6), "b8")
    file.input("all6", np.ones(6), "b8")
    file.input("mask654", file.random.randint(0, 3, size=(6, 5, 4)) == 0, "b8")
    file.input("mask120", file.random.randint(0, 2, size=120), "b8")
    file.input("whole", file.random.randint(0, 120, size=(10, 12)), "s32")
    file.input("places", [[119, 0, 7], [7, 64, 7]], "s64")


PARTS = [
    "at=1:5", "at=1:6:2", "at=0:-1", "at=0:-1:2", "at=-3:", "at=2:3", "at=::5", "at=2",
    "at=:;3", "at=:;:;-1", "at=2;3;1", "at=-1;-5;0", "at=-6;:;3", "at=:;0:4:3;1:-1",
    "at=2:3;1:2;0:1", "at=@i_s32", "at=@i_s64;@j", "at=@i_s32;2", "at=2;@j", "at=:;@j",
    "at=:;:;@k", "at=@i_s32;:;@k", "at=@i_s32;1:4:2;@k", "at=@i_s32;@j;@k", "at=-1;@j;0:-1",
    "at=@matrix", "at=@matrix;-1;@k", "at=@one", "at=3;@one", "at=@mask6", "at=:;@mask5",
    "at=@mask6;@mask5", "at=1;@mask5;@k", "at=@mask6;2;::3", "at=:;:;@mask4", "at=@all6",
    "at=@mask654", "at=@whole", "at=@j;@mask5;@k", "at=1:5|2", "at=1:5|1:3", "at=::2|@k",
    "at=@j|1;@mask5", "at=:;2|@mask6", "at=1:;:;2|0:-1;1:4|-1", "at=@matrix|@matrix;0",
    "at=@mask6|@k;@j", "at=@mask654|0:-1:3", "at=2|@j;@mask4", "flat=7", "flat=-1",
    "flat=3:50:7", "flat=0:-1", "flat=@places", "flat=@mask120", "flat=@mask654",
]


OPERATIONS = ("set", "add", "sub", "mul", "div")


def reads(file):
    x = file.input("x", np.arange(120).reshape(6, 5, 4))
    for where in PARTS + ["at=@none6", "at=@i_u8", "at=@i_u32;@j", "at=@i_f32;@j", "at=:"]:
        file.case(f"read x=x {where}", y=select(x, where, file.arrays))
    for dtype in DTYPES:
        if dtype != "f32":
            other = file.eighths(f"x_{dtype}", (6, 5, 4), dtype, low=-100, high=100)
            for where in ("at=@i_s32;1:4:2;-1", "at=:;@mask5;@k"):
                file.case(f"read x=x_{dtype} {where}", y=select(other, where, file.arrays))
    line = file.input("line", file.random.permutation(7))
    file.input("mask7", [0, 1, 1, 0, 1, 0, 1], "b8")
    file.input("order7", [6, 0, 0, 5, 2, 3, 1], "s32")
    for where in ("at=3", "at=-2", "at=1:4", "at=@k", "at=@mask7", "at=@order7", "flat=@order7"):
        file.case(f"read x=line {where}", y=select(line, where, file.arrays))
    deep = file.eighths("deep", (2, 3, 2, 4, 3), "s32")
    file.input("ones", [1, 1, 0], "s32")
    for where in ("at=@ones;:;1;::2;@k", "at=:;-1;@ones;1:3;2", "at=0;@k;1;2;1", "flat=@places"):
        file.case(f"read x=deep {where}", y=select(deep, where, file.arrays))


def writes(file):
    x = file.input("base", file.random.randint(-2, 3, size=(6, 5, 4)))
    powers = np.array([0.5, -1, 2, -4])
    for number, where in enumerate(PARTS):
        part = select(x, where, file.arrays)
        y = "x".join(map(str, part.shape))
        if y not in file.arrays:
            file.input(y, powers[file.random.randint(0, 4, size=part.shape)])
        for operation in OPERATIONS if number % 8 == 0 else ("set", "add", "sub")[number % 3:][:1]:
            result = written(x, where, operation, file.arrays[y], file.arrays)
            file.case(f"write x=base {where} op={operation} y={y}", x=result)
    for where in ("at=@i_s32;1:4;@k", "at=@j;-1", "flat=@places", "at=1:5|@k;2"):
        for operation in ("set", "sub", "div"):
            result = written(x, where, operation, 4, file.arrays)
            file.case(f"write x=base {where} op={operation} value=4", x=result)
    for dtype in DTYPES:
        other = file.eighths(f"small_{dtype}", (6, 5), dtype)
        y = file.eighths(f"y_{dtype}", (5, 5), dtype)
        for operation in ("set",) if dtype == "b8" else ("set", "sub"):
            result = written(other, "at=@j", operation, y, file.arrays)
            file.case(f"write x=small_{dtype} at=@j op={operation} y=y_{dtype}", x=result)
    writes_that_cast(file)


def writes_that_cast(file):
    """The right-hand side takes the dtype of what it is written to; trailing 1s do not count."""
    fractions = file.input("fractions", [[2.75, -2.75], [0.5, 0], [-100.25, 99.875]])
    for dtype in ("b8", "s16", "s32", "s64", "f16", "f64"):
        result = written(file.arrays[f"small_{dtype}"], "at=@i_s32;1:3", "set", fractions,
                         file.arrays)
        file.case(f"write x=small_{dtype} at=@i_s32;1:3 op=set y=fractions", x=result)
    for operation in ("set", "add", "mul"):
        result = written(file.arrays["small_f32"], "at=1:6;:", operation, file.arrays["y_s32"],
                         file.arrays)
        file.case(f"write x=small_f32 at=1:6;: op={operation} y=y_s32", x=result)
    column = file.eighths("column", (6, 1, 1))
    for where in ("at=:;2", "at=:;2:3", "at=:;@one"):
        result = written(file.arrays["small_f32"], where, "add", column, file.arrays)
        file.case(f"write x=small_f32 {where} op=add y=column", x=result)


def indexing(file):
    index_inputs(file)
    reads(file)
    writes(file)


# Name elements more than once.
REPEATS = ["at=@matrix", "at=:;@j", "at=@matrix;@j;@k", "flat=@places", "at=@whole"]


def gradients(file):
    """The gradient of x(where) for an output gradient g, which each element's uses add up."""
    index_inputs(file)
    for dtype, wheres in (("f32", dict.fromkeys(PARTS[1::3] + REPEATS)), ("f64", REPEATS)):
        x = file.input(f"x_{dtype}", np.zeros((6, 5, 4)), dtype)
        for where in wheres:
            shape = select(x, where, file.arrays).shape
            g = f"{dtype}_{'x'.join(map(str, shape))}"
            if g not in file.arrays:
                file.eighths(g, shape, dtype)
            result = written(x, where, "add", file.arrays[g], file.arrays)
            file.case(f"gradient x=x_{dtype} {where} g={g}", x=result)
