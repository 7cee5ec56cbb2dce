#!/usr/bin/env python3
"""Runs the fenced blocks of documents, or writes their outputs.

usage: tools/doc_blocks.py [--write] FL DOCUMENT...

Every block names its language. One of flir is a file that verifies. One of sh behind it runs with that
file as standard input, its commands named `fl` by FL; what stands in a block of flir or text right
behind it is what it prints. Others are not run here: blocks of bash and cpp have tests of their pages'
own (tests/docs/commands_test.py lists them).
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

LANGUAGES = {"bash", "cpp", "flir", "python", "sh", "text"}
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(command, fl, text):
    """What the command prints; its exit code must be 0."""
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(fl, pathlib.Path(folder) / "fl")
        environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
        environment.pop("BUILD_WORKING_DIRECTORY", None)
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            input=text, capture_output=True, text=True, env=environment, check=False,
        )
    if done.returncode != 0:
        raise ValueError(f"{command.strip()}: exit code {done.returncode}: {done.stderr}")
    return done.stdout if done.stdout.endswith("\n") else done.stdout + "\n"


def outputs(document, fl):
    """(begin, end, text) of the blocks that are outputs, as they are now."""
    source, printed = None, None
    behind = 0
    for block in BLOCK.finditer(document):
        language, text = block.groups()
        if language not in LANGUAGES:
            raise ValueError(f"a block of {language or 'no language'}: {text.splitlines()[0]}")
        is_next = document[behind : block.start()].strip() == ""
        behind = block.end()
        if printed is not None and is_next and language in ("flir", "text"):
            yield block.start(2), block.end(2), printed
            text = printed
        printed = None
        if language == "flir":
            run("fl opt --verify -", fl, text)
            source = text
        elif language == "sh" and source is not None:
            printed = run(text, fl, source)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("fl")
    parser.add_argument("documents", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    stale = []
    for path in arguments.documents:
        document = path.read_text()
        changed = document
        for begin, end, text in reversed(list(outputs(document, os.path.abspath(arguments.fl)))):
            changed = changed[:begin] + text + changed[end:]
        if changed != document:
            stale.append(str(path))
            if arguments.write:
                path.write_text(changed)
    if stale and not arguments.write:
        sys.exit(f"{', '.join(stale)}: outputs are stale; tools/doc_blocks.py --write renews them")


main()
