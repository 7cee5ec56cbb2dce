#!/usr/bin/env python3
"""Counts what must stay small, and fails when a bound is exceeded: rows of the op table, lines of
code a room, the files in which an elementwise operator appears, and files that only pages know of.

usage: tools/counts.py

Lines of code are those of .h, .cpp and .def files that hold more than a comment.
"""

import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PRIMITIVE_ROWS = 60
COMPOSITE_AND_LIBRARY_ROWS = 40
ROOM_LINES = {
    ("base", "device"): 2000,
    ("ir",): 3013,
    ("kernel",): 2130,
    ("tensor",): 3116,
    ("definitions",): 580,
    ("planner",): 1800,
    ("codegen",): 5743,
    ("codegen/cuda",): 2025,
    ("codegen/mlir",): 1400,
    ("host", "runtime"): 4035,
    ("kernel/cuda",): 400,
    ("runtime/cuda",): 3090,
    ("library",): 3856,
    ("tile",): 2160,
    ("check",): 920,
    ("plans",): 600,
    ("profile",): 300,
    ("view",): 800,
    ("lazy", "eager"): 2454,
    ("autograd",): 3000,
    ("nn", "optim", "data", "meter"): 5000,
    ("contrib",): 1200,
    ("custom",): 400,
}
# The row; its gradient and the gradient's declaration. Binary operators are also what passes and
# definitions build with, so their median counts.
FILES_OF_UNARY_OP = 3
FILES_OF_BINARY_OP = 3


def sources(folder):
    return sorted(
        path for path in folder.rglob("*") if path.suffix in {".h", ".cpp", ".def"}
    )


def lines_of_code(room):
    """Of a folder, without the folders in it that have a bound of their own."""
    rooms = [each for group in ROOM_LINES for each in group]
    within = {ROOT / "fl" / each for each in rooms if each.startswith(room + "/")}
    return sum(
        not re.fullmatch(r"\s*(//.*)?", line)
        for path in sources(ROOT / "fl" / room)
        if not within.intersection(path.parents)
        for line in path.read_text().splitlines()
    )


def missing_files():
    """What the pages call a file of ours."""
    rooms, kinds = "apps|examples|fl|tests|tools", "bzl|cpp|def|h|py|sh"
    named = re.compile(rf"(?<![\w./])(?:\.\./)?((?:{rooms})/[\w./]+\.(?:{kinds}))\b")
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    names = {name for page in pages for name in named.findall(page.read_text())}
    return sorted(name for name in names if not (ROOT / name).exists())


def op_rows():
    table = (ROOT / "fl/ir/Ops.def").read_text()
    return re.findall(r"^FL_OP\((\w+), (\w+), (\w+),", table, re.MULTILINE)


def composites():
    functions = (ROOT / "fl/tensor/Functions.def").read_text()
    return re.findall(r"^FL_FUNCTION\(Composite, \w+, (\w+),", functions, re.MULTILINE)


def files_of_op(enumerator, name):
    """Files that name the operator in its row, in a rule of its own or in its gradient; those of
    fl/library compute other operators with it."""
    mention = re.compile(
        rf"^FL_OP\({enumerator},|\bOp::{enumerator}\b|^Variable {name}\(", re.MULTILINE
    )
    return sum(
        bool(mention.search(path.read_text()))
        for path in sources(ROOT / "fl")
        if path.parent != ROOT / "fl/library"
    )


def counts():
    """(what, count, bound) of everything that is counted."""
    rows = op_rows()
    library = [row for row in rows if row[2] == "Library"]
    yield "primitive rows", len(rows) - len(library), PRIMITIVE_ROWS
    yield (
        "Composite and Library rows",
        len(composites()) + len(library),
        COMPOSITE_AND_LIBRARY_ROWS,
    )
    rooms_counted = {room for rooms in ROOM_LINES for room in rooms}
    rooms_there = {path.name for path in (ROOT / "fl").iterdir() if path.is_dir()}
    yield "files that pages name and that are not there", len(missing_files()), 0
    yield "rooms without a bound", len(rooms_there - rooms_counted), 0
    for rooms, bound in ROOM_LINES.items():
        yield f"lines of {' + '.join(rooms)}", sum(map(lines_of_code, rooms)), bound
    files = {
        kind: [files_of_op(*row[:2]) for row in rows if row[2] == kind]
        for kind in ("Unary", "Binary")
    }
    yield "files of a unary operator, at most", max(files["Unary"]), FILES_OF_UNARY_OP
    yield (
        "files of a binary operator, median",
        statistics.median_high(files["Binary"]),
        FILES_OF_BINARY_OP,
    )


def main():
    exceeded = False
    for what, count, bound in counts():
        exceeded |= count > bound
        print(f"{what:<48}{count:>6} of {bound:>5}{'  EXCEEDED' if count > bound else ''}")
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
