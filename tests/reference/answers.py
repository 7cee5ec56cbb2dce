"""The inputs and results of one .npz file, and the API's rules that every kind of case needs."""

import io
import os
import zipfile

import numpy as np

DTYPES = {
    "b8": np.bool_, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "s16": np.int16, "s32": np.int32, "s64": np.int64,
    "f16": np.float16, "f32": np.float32, "f64": np.float64,
    "bf16": np.longdouble,  # NumPy has none: computed in this, and rounded by Answers.add()
}
FLOATS = ("f16", "f32", "f64", "bf16")
NAN, INF = float("nan"), float("inf")


def name_of(dtype):
    return next(name for name, known in DTYPES.items() if np.dtype(known) == dtype)


def sum_dtype(dtype):
    """What a sum of these elements is made of."""
    wide = {"b8": "u32", "u8": "u32", "u16": "u32", "s16": "s32", "f16": "f32", "bf16": "f32"}
    return np.dtype(DTYPES[wide.get(name_of(dtype), name_of(dtype))])


def mean_dtype(dtype):
    name = name_of(dtype)
    return dtype if name in FLOATS else np.float64 if name in ("s64", "u64") else np.float32


def float_dtype(dtype):
    """Of a function of floats."""
    return dtype if name_of(dtype) in FLOATS else np.float32


def bf16_bits(values):
    """The upper half of an f32, rounded to nearest even."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(values), 0x7FC0, rounded).astype(np.uint16)


class Answers:
    """The inputs and results of one file."""

    def __init__(self, seed):
        self.arrays = {}
        self.random = np.random.RandomState(seed)

    def add(self, name, array):
        array = np.asarray(array)
        assert name not in self.arrays, name
        if name_of(array.dtype) == "bf16":
            array = (bf16_bits(array).astype(np.uint32) << 16).view(np.float32).astype(array.dtype)
        self.arrays[name] = array
        return array

    def input(self, name, values, dtype="f32"):
        return self.add(name, np.asarray(values).astype(DTYPES[dtype]))

    def eighths(self, name, shape, dtype="f32", low=-40, high=40):
        """Multiples of 1/8 (of 1, for integers), many of them equal."""
        values = self.random.randint(low, high, size=shape)
        if dtype in FLOATS:
            values = values / 8
        elif dtype == "b8":
            values = values % 3 == 0
        elif dtype.startswith("u"):
            values = np.abs(values)
        return self.input(name, values, dtype)

    def ends(self, dtype):
        """"ends_<dtype>": lines along axis 0 of what a dtype holds at its ends."""
        if dtype in FLOATS:
            lines = [[1, NAN, 2], [INF, 1, 2], [-INF, 1, -2], [INF, -INF, 1], [NAN, INF, -INF],
                     [-0.0, -0.0, -0.0]]
        else:
            limits = np.iinfo(np.uint8 if dtype == "b8" else DTYPES[dtype])
            low, high = limits.min, 1 if dtype == "b8" else limits.max
            lines = [[high, high, high], [low, low, low], [high, 0, 1], [0, 0, 0],
                     [1, high, low // 2], [0, high, high]]
        return self.add(f"ends_{dtype}", np.array(lines, DTYPES[dtype]).T)

    def case(self, text, **results):
        for name, array in results.items():
            self.add(f"{text}/{name}", array)

    def write(self, path):
        """One member a dtype, which holds the elements of all its arrays one after the other, and
        "names", with a line for each array: "f32[4,3] matrix". Hundreds of small members would
        mostly be headers."""
        members = {}
        names = ""
        for name, array in self.arrays.items():
            dtype = name_of(array.dtype)
            elements = bf16_bits(array) if dtype == "bf16" else array
            members.setdefault(dtype, []).append(flatten(elements))
            names += f"{dtype}[{','.join(map(str, array.shape))}] {name}\n"
        packed = {dtype: np.concatenate(parts) for dtype, parts in members.items()}
        write_npz(path, {"names": np.frombuffer(names.encode(), np.uint8), **packed})
        cases = {name.split("/")[0] for name in self.arrays if "/" in name}
        print(f"{path}: {len(cases)} cases, {os.path.getsize(path)} bytes")


def write_npz(path, arrays):
    """As np.savez_compressed, without its ZIP64 fields and the time."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.save(member, array)
            archive.writestr(zipfile.ZipInfo(name + ".npy"), member.getvalue(),
                             zipfile.ZIP_DEFLATED, 9)


def flatten(x):
    return x.flatten(order="F")


def divide(x, y):
    """Quotients of integers lose their fraction."""
    if x.dtype.kind == "f":
        return x / y
    quotient = np.abs(x) // np.abs(y)
    return np.where((x < 0) != (y < 0), -quotient, quotient).astype(x.dtype)
