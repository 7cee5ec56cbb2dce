#!/usr/bin/python3
"""commands_test.py PAGES...: the commands of docs/performance.md and docs/cuda.md, each run for less long
than there, where they take hours; and that no block of a page is run by nobody.

What a page says are flags that the program takes, and the program runs with them but for what SHORTER and
NOT_HERE name.
"""

import collections
import pathlib
import re
import shlex
import subprocess
import sys

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUN = re.compile(r"bazel run (?:-c opt )?//benchmarks:(\w+)(?: -- (.*))?")

# Which test runs the blocks of which page: the number of its blocks of commands and of programs.
PAGES = {
    "README.md": ("readme_test", 5, 1),
    "adding.md": ("adding_test", 1, 0),
    "architecture.md": ("blocks_test", 5, 0),
    "compile.md": ("compile_test", 0, 1),
    "composite.md": ("composite_test", 0, 1),
    "cuda.md": ("commands_test", 1, 0),
    "debugging.md": ("blocks_test", 2, 0),
    "memory.md": ("memory_test", 1, 2),
    "mlir.md": ("blocks_test", 5, 0),
    "performance.md": ("commands_test", 17, 0),
    "researching.md": ("researching_test", 1, 1),
    "text.md": ("blocks_test", 2, 0),
    "training.md": ("training_test", 0, 1),
    "viewer.md": ("viewer_test", 4, 0),
}
# One block of one case, and less of it where that takes long; Debian has not all of the peers.
SHORTER = {
    "attention": "--rounds=1 --times=64",
    "compile_time": "--rounds=1 --filter=one",
    "gemm": "--rounds=1 --filter=^matmul.1",
    "kernels": "--rounds=1 --filter=softmax",
    "memory": "--rounds=1 --filter=MLP --nogrowth --noalone --nobudgets",
    "mnist_step": "--rounds=1 --filter=digits",
    "ops": "--rounds=1 --filter=^exp --sizes=1024",
    "overhead": "--rounds=1",
    "profile": "--rounds=1 --filter=digits",
    "train_step": "--rounds=1 --filter=MLP",
}
NOT_HERE = {
    "./setup.sh --peers": "it installs 6 GB",
    "benchmarks/performance.py run --peers && benchmarks/performance.py draw":
        "its commands are those of the rest of the page; performance_test draws",
    "bazel test //tests:gpu --test_output=all": "its tests are among all tests",
}
GPU = "fl is built for CUDA "  # what is said where there is none


def blocks(page):
    return BLOCK.findall(pathlib.Path(page).read_text(encoding="utf-8"))


def commands(page):
    return [
        line for language, text in blocks(page) if language in ("bash", "sh")
        for line in text.splitlines()
    ]


def check_counts(pages):
    """Whoever adds a block says here what runs it."""
    found = {}
    for page in pages:
        languages = collections.Counter(language for language, _ in blocks(page))
        count = (languages["bash"] + languages["sh"], languages["cpp"])
        assert languages["python"] == 0, page
        if count == (0, 0):
            continue
        name = pathlib.Path(page).name
        assert name in PAGES, f"{page}: which test runs its blocks?"
        found[name] = count
        # Behind a text blocks_test runs all commands.
        language = next(each for each, _ in blocks(page) if each != "cpp") if count[0] else ""
        assert PAGES[name][0] != "blocks_test" or language == "flir", page
    wanted = {name: (shell, cpp) for name, (_, shell, cpp) in PAGES.items()}
    assert found == wanted, (found, wanted)


def run(name, flags):
    done = subprocess.run(
        [f"benchmarks/{name}", *flags], capture_output=True, text=True, check=False
    )
    print(f"+ {name} {shlex.join(flags)}\n{done.stdout}{done.stderr}", flush=True)
    return done


def check_command(command):
    """True if it runs."""
    if command in NOT_HERE:
        print(f"not here, as {NOT_HERE[command]}: {command}")
        return False
    match = RUN.fullmatch(command)
    assert match, command
    name, flags = match[1], shlex.split(match[2] or "")
    # Help ends with an exit code of 1, and one for a flag that there is not with other words.
    assert run(name, [*flags, "--help"]).stdout.startswith(f"{name}: "), command
    if name == "gpu":
        done = run(name, [])
        assert done.returncode == 0 or GPU in done.stderr, done
        return True
    kept = [flag for flag in flags if flag != "--peers" and not flag.startswith("--json=")]
    done = run(name, [*kept, *SHORTER[name].split()])
    assert done.returncode == 0 and done.stdout, done
    return True


def main():
    pages = sys.argv[1:]
    check_counts(pages)
    own = [page for page in pages if PAGES.get(pathlib.Path(page).name, ("",))[0] == "commands_test"]
    lines = [line for page in own for line in commands(page)]
    ran = sum(check_command(line) for line in lines)
    assert ran == len(lines) - len(NOT_HERE) and ran >= 12, (ran, lines)


if __name__ == "__main__":
    main()
