"""The inputs and results of one .npz file, and the API's rules that every kind of case needs."""

import io
import os
import zipfile

import numpy as np

DTYPES = {
    "b8": np.bool_, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "s16": np.int16, "s32": np.int32, "s64": np.int64,
    "f16": np.float16, "f32": np.float32, "f64": np.float64,
}
FLOATS = ("f16", "f32", "f64")


def name_of(dtype):
    return next(name for name, known in DTYPES.items() if np.dtype(known) == dtype)


def sum_dtype(dtype):
    """What a sum of these elements is made of."""
    wide = {"b8": "u32", "u8": "u32", "u16": "u32", "s16": "s32", "f16": "f32"}
    return DTYPES[wide.get(name_of(dtype), name_of(dtype))]


def mean_dtype(dtype):
    name = name_of(dtype)
    return dtype if name in FLOATS else np.float64 if name in ("s64", "u64") else np.float32


class Answers:
    """The inputs and results of one file."""

    def __init__(self, seed):
        self.arrays = {}
        self.random = np.random.RandomState(seed)

    def add(self, name, array):
        array = np.asarray(array)
        assert name not in self.arrays, name
        assert array.dtype in [np.dtype(known) for known in DTYPES.values()], (name, array.dtype)
        self.arrays[name] = array

    def input(self, name, values, dtype="f32"):
        with np.errstate(all="ignore"):
            self.add(name, np.asarray(values).astype(DTYPES[dtype]))
        return self.arrays[name]

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

    def case(self, text, **results):
        for name, array in results.items():
            self.add(f"{text}/{name}", array)

    def write(self, path):
        # As np.savez_compressed, without its ZIP64 fields.
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name, array in self.arrays.items():
                member = io.BytesIO()
                np.save(member, array)
                # ZipInfo's time is fixed: the same arrays make the same bytes.
                archive.writestr(zipfile.ZipInfo(name + ".npy"), member.getvalue(),
                                 zipfile.ZIP_DEFLATED, 9)
        cases = {name.split("/")[0] for name in self.arrays if "/" in name}
        print(f"{path}: {len(cases)} cases, {os.path.getsize(path)} bytes")


def flatten(x):
    return x.flatten(order="F")


def divide(x, y):
    """Quotients of integers lose their fraction."""
    if x.dtype.kind == "f":
        return x / y
    quotient = np.abs(x) // np.abs(y)
    return np.where((x < 0) != (y < 0), -quotient, quotient).astype(x.dtype)
