#!/usr/bin/env python3
"""Writes compile_commands.json, for clangd and clang-tidy, from Bazel's action graph.

usage: tools/compile_commands.py [bazel options]      for example --config=clang

Analyses the tree without building it. Run it again when a BUILD file changes.
"""

import json
import pathlib
import subprocess
import sys

# Outputs of the compilation, which an editor must not repeat, and what gcc alone knows.
DROPPED = {"-MD", "-fno-canonical-system-headers"}
DROPPED_WITH_VALUE = {"-MF", "-o"}


def bazel(*arguments):
    return subprocess.run(
        ["bazel", *arguments], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()


def clean(arguments, output_base):
    """The arguments, to be read in the workspace: a source is edited where it lies."""
    result = []
    values = iter(arguments)
    for argument in values:
        if argument in DROPPED_WITH_VALUE:
            next(values)
        elif argument.startswith("external/"):
            result.append(f"{output_base}/{argument}")
        elif argument not in DROPPED:
            result.append(argument)
    return result


def main():
    if "--help" in sys.argv:
        print(__doc__)
        return
    root = pathlib.Path(bazel("info", "workspace"))
    output_base = bazel("info", "output_base")
    graph = json.loads(
        bazel(
            "aquery",
            *sys.argv[1:],
            'mnemonic("CppCompile", //...)',
            "--output=jsonproto",
            "--include_artifacts=false",
        )
    )
    commands = {}
    for action in graph.get("actions", []):
        arguments = action["arguments"]
        source = arguments[arguments.index("-c") + 1]
        commands[source] = {
            "directory": str(root),
            "file": str(root / source),
            "arguments": clean(arguments, output_base),
        }
    entries = [commands[source] for source in sorted(commands)]
    (root / "compile_commands.json").write_text(json.dumps(entries, indent=1) + "\n")
    print(f"compile_commands.json: {len(entries)} sources")


if __name__ == "__main__":
    main()
