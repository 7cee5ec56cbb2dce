#!/usr/bin/env python3
"""Writes docs/modules.md, a table of the modules of fl/nn and fl/contrib, from the comments above
their classes.

usage: tools/modules.py [--check]

A module is a class that derives from another one and is registered for loading. The comment above
it begins with a sentence that says what it does, and ends in a line "Shapes: ...". With --check
nothing is written: it fails if the file is not what would be written.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).absolute().parent.parent
MODULES = ("fl/nn/modules", "fl/contrib/modules")
TABLE = "docs/modules.md"
BASES = {"UnaryModule", "BinaryModule", "Cloneable", "Container", "Block", "AttentionBlock",
         "Augmentation"}
HEADING = """# Modules

Written by `tools/modules.py` from the comments in the headers, which say more. Shapes are in the
API's order: features or width first, the batch last.

| module | header | what it gives | shapes |
|---|---|---|---|
"""


def sources(files):
    return [path for folder in MODULES for path in (ROOT / folder).glob(files)]


def found(pattern, files):
    text = "".join(path.read_text() for path in sources(files))
    return set(re.findall(pattern, text, re.MULTILINE))


def documented():
    """Of each class with shapes above it: its header, its first sentence and its shapes."""
    modules = {}
    pattern = re.compile(r"((?://.*\n)+)// Shapes: (.*)\nclass (\w+)")
    for path in sources("*.h"):
        for comment, shapes, name in pattern.findall(path.read_text()):
            text = " ".join(line.removeprefix("//").strip() for line in comment.splitlines())
            modules[name] = path, re.split(r"\.(?= +[A-Z]|$)", text)[0], shapes
    return modules


def table():
    modules = documented()
    registered = found(r"^CEREAL_REGISTER_TYPE\(fl::(\w+)\)", "*.cpp")
    derived = found(r"^class (\w+) : public", "*.h") - BASES
    wrong = (modules.keys() | registered | derived) - (modules.keys() & registered & derived)
    if wrong:
        sys.exit(f"{', '.join(sorted(wrong))}: a module is registered and has its shapes above it")
    rows = ((f"`{name}`", f"[{header.name}](../{header.relative_to(ROOT)})", text, shapes)
            for name, (header, text, shapes) in sorted(modules.items()))
    return HEADING + "".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows
    )


def main():
    if sys.argv[1:] == ["--check"]:
        if (ROOT / TABLE).read_text() != table():
            sys.exit(f"{TABLE} is stale: run tools/modules.py")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        (ROOT / TABLE).write_text(table())


if __name__ == "__main__":
    main()
