#!/usr/bin/python3
"""debuggers_test.py FL: gdb stops in a kernel and perf counts samples in it, under the names of profiles.

A reader of its own reads the jitdump, too, of which perf makes the names; where the system forbids perf
to record, as containers may, that is all that is looked at of it, and the output says so.
"""

import glob
import os
import re
import struct
import subprocess
import sys
import tempfile

FL = os.path.abspath(sys.argv[1])
GRAPH = """graph @f(%x: f32[4096,64], %y: f32[4096,64]) {
  %0 = mul %x, %y : f32[4096,64]
  %1 = tanh %0 : f32[4096,64]
  %2 = add %1, %y : f32[4096,64]
  return %2
}
"""
NAME = r"map mul\+tanh\+add [0-9a-f]{8}"
GDB = (
    "set confirm off",
    "set debuginfod enabled off",
    # What names code is done with a kernel; functions of other programs are not asked for.
    "break fl::runtime::cpu::NamedCode::NamedCode",
    "run",
    "finish",
    "rbreak ^map mul.tanh",
    "continue",
    "info symbol $pc",
    "backtrace 4",
    "x/3i $pc",
    "kill",
)
NAMED = {"FL_JIT_NAMES": "on", "FL_JIT": "sync", "FL_CACHE": "off", "FL_NUM_THREADS": "1"}


def run(*command):
    environment = {**os.environ, **NAMED, "JITDUMPDIR": os.getcwd(), "HOME": os.getcwd()}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_gdb():
    commands = [word for command in GDB for word in ("-ex", command)]
    done = run("gdb", "-nx", "-batch", *commands, "--args", FL, "run", "graph.flir")
    told = done.stdout
    for wanted in (
        rf"^Breakpoint 2, 0x[0-9a-f]+ in {NAME} \(\)$",  # it stops there
        rf"^{NAME} \+ \d+ in section \.text",  # info symbol
        rf"^#0 +0x[0-9a-f]+ in {NAME} \(\)$",  # the backtrace goes on to who calls it
        r"^#1 .* at fl/runtime/cpu/CpuDevice\.cpp:\d+$",
        rf"^=> 0x[0-9a-f]+ <{NAME}\+\d+>:\s+\w+",  # instructions
    ):
        assert re.search(wanted, told, re.M), (wanted, told, done.stderr)


def functions_of(dump):
    """The names of a jitdump's functions (tools/perf/Documentation/jitdump-specification.txt of Linux)."""
    with open(dump, "rb") as file:
        content = file.read()
    magic, version, size, machine = struct.unpack_from("<4I", content)
    assert (magic, version, machine) == (0x4A695444, 1, 62), (hex(magic), version, machine)
    names, at = [], size
    while at < len(content):
        kind, total = struct.unpack_from("<2I", content, at)
        assert total >= 16 and at + total <= len(content), (at, total, len(content))
        if kind == 0:  # of loaded code: ids, address, size and number, the name, the code
            length = struct.unpack_from("<2I4Q", content, at + 16)[4]
            name = content[at + 56 : at + total].split(b"\0")[0]
            assert 0 < length == total - 56 - len(name) - 1, (name, length, total)
            names.append(name.decode())
        at += total
    return names


def test_perf():
    recorded = run("perf", "record", "-e", "cpu-clock", "-k", "mono", "-o", "perf.data",
                   FL, "run", "--time=2000", "graph.flir")
    is_allowed = os.path.exists("perf.data") and os.path.getsize("perf.data") > 0
    if not is_allowed:
        print(f"perf may not record here: {recorded.stderr.strip()}")
        done = run(FL, "run", "graph.flir")
        assert done.returncode == 0, done.stderr
    (dump,) = glob.glob(".debug/jit/*/jit-*.dump")
    names = functions_of(dump)
    assert len(names) == 1 and re.fullmatch(NAME, names[0]), names
    if not is_allowed:
        return
    assert recorded.returncode == 0, recorded.stderr
    injected = run("perf", "inject", "--jit", "-i", "perf.data", "-o", "named.data")
    assert injected.returncode == 0, injected.stderr
    samples = run("perf", "script", "-i", "named.data", "-F", "ip,sym,dso").stdout.splitlines()
    kernel = [line for line in samples if re.search(rf"{NAME}.* \(.*jitted-\d+-\d+\.so\)", line)]
    assert len(kernel) > len(samples) / 10, (len(kernel), samples[:50])


def main():
    os.environ.pop("BUILD_WORKING_DIRECTORY", None)
    for test in (test_gdb, test_perf):
        os.chdir(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
        with open("graph.flir", "w", encoding="utf-8") as file:
            file.write(GRAPH)
        test()


main()
