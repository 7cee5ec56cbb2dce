#!/usr/bin/python3
"""bisect_test.py FL [SEED]: all rules of passes and all meanings of operators are made wrong by
FL_FAULT, one by one; `fl bisect` names the pass, or the operator and the fused region of the plan that it
is in, in graphs of some dozens of operators that the seed draws, and `fl reduce` leaves little around it.
Then all passes that decide or place, each of which is made to mistake one value for another, and dce and
layout.

An operator without a meaning in the op table (views, sorts, random numbers, casts, calls of libraries ...)
has no cell to make wrong.
"""

import os
import random
import re
import subprocess
import sys
import tempfile

FL = os.path.abspath(sys.argv[1])
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 7
RANDOM = random.Random(SEED)
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
    "moveJoin": [
        "concatenate %x, %x {axis=1} : f32[6,8]",
        "exp %0 : f32[6,8]",
    ],
}

# The same of passes with one rule.
PASSES = {
    "cse": ["exp %x : f32[6,4]", "exp %x : f32[6,4]", "sub %1, %0 : f32[6,4]"],
    "library": [
        "transpose %x {axes=[1,0]} : f32[4,6]",
        "matmul %0, %y : f32[4,4]",
    ],
}
# The other passes have graphs of their own, or decide or place: what these leave is wrong wherever two
# values may be mistaken.
WITH_GRAPHS = {"canonicalize", "layout", "dce", *PASSES}
CONVOLUTION = "strideX=1, strideY=1, padX=1, padY=1, dilationX=1, dilationY=1, groups=1"
LAYOUT = f"""graph @f(%x: f32[8,8,4,2], %w: f32[3,3,4,16], %v: f32[3,3,16,16], %u: f32[3,3,16,4], %n: number f32) {{
  %0 = conv2d %x, %w {{{CONVOLUTION}}} : f32[8,8,16,2]
  %1 = absolute %0 : f32[8,8,16,2]
  %2 = sub %1, %n : f32[8,8,16,2]
  %3 = conv2d %2, %v {{{CONVOLUTION}}} : f32[8,8,16,2]
  %4 = add %3, %0 : f32[8,8,16,2]
  %5 = absolute %4 : f32[8,8,16,2]
  %6 = conv2d %5, %u {{{CONVOLUTION}}} : f32[8,8,4,2]
  return %6
}}
"""
# A rule that is wrong by less than a result of 16 bits is rounded by, which is another one.
SMALL = """graph @f(%x: f32[6,4], %h: f16[6,4]) {
  %0 = iota {dtype=f32, axis=0, shape=[6,4]} : f32[6,4]
  %1 = add %0, %0 : f32[6,4]
  %2 = exp %1 : f32[6,4]
  %3 = negative %x : f32[6,4]
  %4 = negative %3 : f32[6,4]
  %5 = add %2, %4 : f32[6,4]
  %6 = sum %h {axes=[0]} : f16[4]
  return %5, %6
}
"""
# The same of a sum that the pass adds up in another order: only wider results tell.
ROUNDED = """graph @f(%h: f16[6,4]) {
  %0 = reshape %h {shape=[3,2,4]} : f16[3,2,4]
  %1 = sum %0 {axes=[0,1]} : f16[4]
  %2 = iota {dtype=f16, axis=0, shape=[4]} : f16[4]
  %3 = add %2, %2 : f16[4]
  %4 = add %3, %2 : f16[4]
  %5 = exp %4 : f16[4]
  %6 = negative %1 : f16[4]
  %7 = negative %6 : f16[4]
  %8 = add %5, %7 : f16[4]
  return %8
}
"""
# What cse merges is both wanted, by results that are right alone.
SHARED = """graph @f(%x: f32[6,4], %y: f32[6,4]) {
  %0 = exp %x : f32[6,4]
  %1 = exp %x : f32[6,4]
  %2 = sub %1, %y : f32[6,4]
  return %0, %2
}
"""
# A call of a library among kernels.
CALLED = """graph @f(%x: f32[6,4], %y: f32[4,6]) {
  %0 = exp %x : f32[6,4]
  %1 = sub %0, %x : f32[6,4]
  %2 = matmul %1, %y : f32[6,6]
  %3 = add %2, %2 : f32[6,6]
  %4 = negative %3 : f32[6,6]
  return %4, %1
}
"""
# Maps around them, which hide no value that is wrong.
AROUND = ["sub {}, %y", "negative {}", "add {}, %x"]


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

    def around(self, last):
        for _ in range(RANDOM.randint(16, 32)):
            last = self.add(f"{RANDOM.choice(AROUND).format(last)} : {self.dtype}[6,4]")
        return last

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
    last = graph.around(f"%{len(graph.nodes) - 1}") if kind != "Reduce" else last
    return graph.text(last, graph.around(other))


def graph_of_rule(nodes):
    graph = Graph("f32")
    for node in nodes:
        last = graph.add(node)
    return graph.text(last, graph.around(graph.around("%y")))


def expect(path, fault, stage, operator=None, is_planned=False):
    """`operator` is the wrong one, of the plan if it `is_planned`."""
    found = run(FL, "bisect", path, fault=fault, code=2)
    assert f"// pass {stage}: result " in found.stdout, found.stdout + found.stderr
    wrong = re.search(r"^// first wrong value: %\d+, (\w+), which", found.stdout, re.M)
    assert wrong and operator in (None, wrong[1]), found.stdout + found.stderr
    if operator or is_planned:
        # The region is of the plan, with the operators around the wrong one.
        region = found.stdout.split("one kernel computes together:\n")[1].split("// kernel")[0]
        assert re.search(rf"^//   %\d+ = {wrong[1]} ", region, re.M), found.stdout
    # What it prints is a graph that fails the same way.
    with open("cut.flir", "w") as file:
        file.write(found.stdout)
    run(FL, "bisect", "cut.flir", fault=fault, code=2)
    command = f"{FL} bisect {{}}; test $? = 2"
    reduced = run(FL, "reduce", f"--command={command}", path, fault=fault).stdout
    nodes = len(re.findall(r"^  %\d+ = ", reduced, re.M))
    # Parameters that are mistaken for each other are left without any.
    assert (0 if is_planned else 1) <= nodes <= MOST_NODES, reduced


def main():
    os.chdir(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
    rows = {row[0]: row for row in operators()}
    cells = [("canonicalize", name) for name in RULES]
    cells += [(name, name) for name in PASSES] + [("emit", name) for name in rows]
    assert len(cells) > 45, cells
    print(f"seed {SEED}: bisect_test.py FL {SEED} repeats it", flush=True)
    for stage, name in cells:
        print(stage, name, flush=True)
        nodes = {**RULES, **PASSES}.get(name)
        text = graph_of_rule(nodes) if nodes else graph_of_operator(*rows[name])
        assert text.count(" = ") >= 20, text
        with open("graph.flir", "w") as file:
            file.write(text)
        assert "no pass changes a result" in run(FL, "bisect", "graph.flir").stdout, text
        expect("graph.flir", f"wrong:{name}", stage, None if nodes else name)

    with open("graph.flir", "w") as file:
        file.write(graph_of_operator(*rows["tanh"]))
    expect("graph.flir", "wrong:dce", "dce")
    listed = re.findall(r"^\w+ (\w+): ", run(FL, "opt", "--list").stdout, re.M)
    deciding = [name for name in listed if name not in WITH_GRAPHS]
    assert len(deciding) + len(WITH_GRAPHS) == len(listed) and deciding, listed
    for name in deciding:
        print(name, flush=True)
        expect("graph.flir", f"wrong:{name}", name, is_planned=True)
    with open("images.flir", "w") as file:
        file.write(LAYOUT)
    expect("images.flir", "wrong:layout", "layout")

    with open("small.flir", "w") as file:
        file.write(SMALL)
    expect("small.flir", "wrong:doubleNegative", "canonicalize")
    with open("rounded.flir", "w") as file:
        file.write(ROUNDED)
    found = run(FL, "bisect", "rounded.flir", fault="wrong:doubleNegative", code=2).stdout
    assert re.match(r"// pass canonicalize: result 0 differs by .* in f64\n", found), found
    expect("rounded.flir", "wrong:doubleNegative", "canonicalize")
    with open("shared.flir", "w") as file:
        file.write(SHARED)
    found = run(FL, "bisect", "shared.flir", fault="wrong:cse", code=2).stdout
    assert "// first wrong value: %1, exp, which is right alone\ngraph @g" in found, found

    # What the device cpu runs is compared with the reference, too.
    with open("called.flir", "w") as file:
        file.write(CALLED)
    assert "no pass changes a result" in run(FL, "bisect", "called.flir").stdout
    for fault, node, where in [("matmul", "%2, matmul", "a call of its own"),
                               ("interpreter", "%1, sub", "one kernel")]:
        found = run(FL, "bisect", "called.flir", fault=f"wrong:{fault}", code=2).stdout
        assert found.startswith("// no pass, but what the device cpu runs: result "), found
        told = f"// first wrong value: {node}, which this graph computes alone\n// in the plan, {where} computes"
        assert told in found, found
    # The budget is one of the plans that it makes.
    assert "do not fit the budget of 10 bytes" in run(FL, "bisect", "--budget=10", "called.flir", code=1).stderr
    assert "no pass changes a result" in run(FL, "bisect", "--budget=192", "called.flir").stdout

    # A pass that fails is one that changes what is computed.
    found = run(FL, "bisect", "graph.flir", fault="share", code=2)
    assert "// pass share: fails: a fault that FL_FAULT put into share" in found.stdout, found.stdout
    # What it does not take.
    assert "expected one file" in run(FL, "bisect", code=1).stderr
    with open("kernel.flir", "w") as file:
        file.write(run(FL, "opt", "graph.flir").stdout)
    assert "is a schedule; passes start from a graph" in run(FL, "bisect", "kernel.flir", code=1).stderr


main()
