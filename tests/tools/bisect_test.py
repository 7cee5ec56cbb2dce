#!/usr/bin/python3
"""bisect_test.py FL: every rule of canonicalize and every meaning that FL_FAULT makes wrong is found by
`fl bisect` with the operator that shows it, and `fl reduce` leaves little around it.
"""

import os
import re
import subprocess
import sys
import tempfile

FL = os.path.abspath(sys.argv[1])
MOST_NODES = 10
KINDS = ["Unary", "Binary", "Select", "Reduce"]

# By rule: nodes that it rewrites, from %x of f32[6,4].
RULES = {
    "sameType": ["astype %x {dtype=f32} : f32[6,4]"],
    "identityTranspose": ["transpose %x {axes=[0,1]} : f32[6,4]"],
    "doubleReshape": [
        "reshape %x {shape=[4,6]} : f32[4,6]",
        "reshape %0 {shape=[24]} : f32[24]",
    ],
    "doubleTranspose": [
        "transpose %x {axes=[1,0]} : f32[4,6]",
        "transpose %0 {axes=[1,0]} : f32[6,4]",
    ],
    "doubleNegative": ["negative %x : f32[6,4]", "negative %0 : f32[6,4]"],
    "moveReshape": [
        "reshape %x {shape=[3,2,4]} : f32[3,2,4]",
        "exp %0 : f32[3,2,4]",
    ],
    "moveLookup": [
        "exp %x : f32[6,4]",
        "iota {dtype=s64, axis=0, shape=[1,1]} : s64[1,1]",
        "gather %0, %1 {axis=0} : f32[1,4]",
    ],
}


def run(*command, fault="", code=0):
    env = {**os.environ, "FL_FAULT": fault}
    env.pop("BUILD_WORKING_DIRECTORY", None)
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == code, f"{command}: {done.returncode}, not {code}\n{done.stdout}{done.stderr}"
    return done


def operators():
    """(name, kind, dtypes) of the rows with a meaning, of the page that the op table makes."""
    rows = []
    for section in re.split(r"^## ", run(FL, "doc", "ops").stdout, flags=re.M)[1:]:
        kind = section.split(":")[0]
        for name, types in re.findall(r"^\| `(\w+)` \| [^|]* \| ([^|]*) \|", section, re.M):
            if kind in KINDS:
                rows.append((name, kind, types))
    return rows


class Graph:
    """Nodes in a line, with others around that `fl reduce` takes away."""

    def __init__(self, dtype):
        self.dtype, self.nodes = dtype, []

    def add(self, text):
        self.nodes.append(text)
        return f"%{len(self.nodes) - 1}"

    def text(self, *results):
        body = "".join(f"  %{i} = {node}\n" for i, node in enumerate(self.nodes))
        parameters = f"%x: {self.dtype}[6,4], %y: {self.dtype}[6,4]"
        return f"graph @f({parameters}) {{\n{body}  return {', '.join(results)}\n}}\n"


def graph_of_operator(name, kind, types):
    """The text, and the index of the node."""
    dtype = "s32" if types.startswith("integers") else "f32"
    graph, of = Graph(dtype), f"{dtype}[6,4]"
    square = graph.add(f"mul %x, %x : {of}")
    positive = graph.add(f"add {square}, {square} : {of}")
    other = graph.add(f"sub %y, {positive} : {of}")
    result = f"{'b8' if types.endswith('to b8') else dtype}[6,4]"
    if kind == "Reduce":
        last = graph.add(f"{name} {positive} {{keepDims=1, axes=[0]}} : {dtype}[1,4]")
    elif kind == "Select":
        condition = graph.add(f"lessThan %x, %y : b8[6,4]")
        last = graph.add(f"{name} {condition}, {positive}, {other} : {of}")
    elif kind == "Binary":
        last = graph.add(f"{name} {positive}, %y : {result}")
    else:
        last = graph.add(f"{name} {positive} : {result}")
    if result.startswith("b8"):
        graph.add(f"astype {last} {{dtype={dtype}}} : {of}")
    for _ in range(6):
        graph.add(f"sub %{len(graph.nodes) - 1}, {other} : {of}")
    return graph.text(f"%{len(graph.nodes) - 1}", other)


def graph_of_rule(name):
    graph = Graph("f32")
    for node in RULES[name]:
        last = graph.add(node)
    shown = f"%{len(graph.nodes) - 1}"
    other = graph.add("mul %y, %y : f32[6,4]")
    for _ in range(6):
        other = graph.add(f"sub {other}, %y : f32[6,4]")
    return graph.text(shown, other)


def expect(path, fault, stage, operator):
    found = run(FL, "bisect", path, fault=fault, code=2)
    assert f"// pass {stage}: result " in found.stdout, found.stdout + found.stderr
    wrong = re.search(r"^// first wrong value: %\d+, (\w+), which", found.stdout, re.M)
    assert wrong and operator in (None, wrong[1]), found.stdout + found.stderr
    # What it prints is a graph that fails the same way.
    with open("cut.flir", "w") as file:
        file.write(found.stdout)
    run(FL, "bisect", "cut.flir", fault=fault, code=2)
    command = f"{FL} bisect {{}}; test $? = 2"
    reduced = run(FL, "reduce", f"--command={command}", path, fault=fault).stdout
    nodes = len(re.findall(r"^  %\d+ = ", reduced, re.M))
    assert 1 <= nodes <= MOST_NODES, reduced


def main():
    os.chdir(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
    cells = [("canonicalize", name, None, None) for name in RULES]
    cells += [("emit", *row) for row in operators()]
    assert len(cells) > 40, cells
    for stage, name, kind, types in cells:
        print(stage, name, flush=True)
        isRule = stage == "canonicalize"
        text = graph_of_rule(name) if isRule else graph_of_operator(name, kind, types)
        with open("graph.flir", "w") as file:
            file.write(text)
        assert "no pass changes a result" in run(FL, "bisect", "graph.flir").stdout
        expect("graph.flir", f"wrong:{name}", stage, None if isRule else name)

    # A pass that fails is one that changes what is computed.
    found = run(FL, "bisect", "graph.flir", fault="share", code=2)
    assert "// pass share: fails: a fault that FL_FAULT put into share" in found.stdout, found.stdout
    # What it does not take.
    assert "expected one file" in run(FL, "bisect", code=1).stderr
    with open("kernel.flir", "w") as file:
        file.write(run(FL, "opt", "graph.flir").stdout)
    assert "is a schedule; passes start from a graph" in run(FL, "bisect", "kernel.flir", code=1).stderr


main()
