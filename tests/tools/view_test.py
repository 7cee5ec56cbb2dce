#!/usr/bin/python3
"""view_test.py FL TRAIN STEP: the page of `fl view`, in a headless Chromium; that of FL_VIEW; DOT."""

import json
import os
import pathlib
import re
import sys
import tempfile

from browser import Browser
from viewer_page import Page, expect, plans_of, run, stage_number, whole_stage

FL, TRAIN, STEP = (os.path.abspath(path) for path in sys.argv[1:4])

GRAPH = """graph @f(%x: f32[4,8], %w: f32[3,4]) {
  %0 = matmul %w, %x : f32[3,8]
  %1 = exp %0 : f32[3,8]
  %2 = sum %1 {axes=[0]} : f32[8]
  return %2
}
"""
EQUAL = """graph @f(%x: f32[4,8]) {
  %0 = mul %x, %x : f32[4,8]
  %1 = mul %x, %x : f32[4,8]
  %2 = add %0, %1 : f32[4,8]
  %3 = exp %2 : f32[4,8]
  return %3
}
"""
LOOKUP = """graph @f(%x: f32[4], %i: s64[64]) {
  %0 = add %i, %i : s64[64]
  %1 = add %0, %0 : s64[64]
  %2 = gather %x, %1 {axis=0} : f32[64]
  return %2
}
"""
KERNEL = """kernel @k rank=1 reduced=[] {
  operand input f32 [1]
  operand output f32 [1]
  %0 = load 0 : f32
  %1 = exp %0 : f32
  stage { store 1 %1 }
}
"""


def closed_units(plan, index):
    """How many units a stage is drawn as if nothing is open."""
    stage = whole_stage(plan, index)
    alone = [item for item in stage["items"] if "parameter" not in item and "group" not in item]
    units = len(alone) + len(stage.get("groups", []))
    assert units <= 100, units  # beyond, sections are drawn (view_sections_test.py)
    return units


def check_stages(page, plan):
    """Steps through all stages and compares what is shown with the JSON: those of every pass, over the
    graph, fusion and the schedule."""
    listed = re.findall(r"^\w+ (\w+): ", run(FL, "opt", "--list").stdout, re.MULTILINE)
    expect([stage["name"][3:] for stage in plan["stages"]], ["recorded", *listed])
    expect([page.text(f"#passes button:nth-of-type({i + 1})") for i in range(len(listed) + 1)],
           ["recorded", *listed])
    page.go_to(1)
    for index in range(1, len(plan["stages"])):
        stage = whole_stage(plan, index)
        expect(page.count("#before g.unit"), closed_units(plan, index - 1))
        expect(page.count("#after g.unit"), closed_units(plan, index))
        assert plan["stages"][index]["name"] in page.text("#after h2"), page.text("#after h2")
        if "same" in plan["stages"][index]:
            assert "no change" in page.text("#after h2"), page.text("#after h2")
            expect(page.count("#before g.unit.gone"), 0)
        elif not stage.get("groups"):
            if index > 1 and stage["compares"]:
                kept = {item.get("before") for item in stage["items"]}
                before = whole_stage(plan, index - 1)["items"]
                expect(page.count("#before g.unit.gone"), len(set(range(len(before))) - kept))
            for kind in ("new", "changed"):
                wanted = [item for item in stage["items"] if item.get("change") == kind]
                expect(page.count(f"#after g.unit.{kind}"), len(wanted))
        page.browser.press("ArrowRight")
    page.browser.press("ArrowLeft")
    expect(page.text("#passes button.shown"), plan["stages"][-2]["name"].split("_")[1])


def check_sides(page, plan):
    """Beside a change that is far below lies what it was made of."""
    index = stage_number(plan, "layout")
    page.go_to(index)
    items = whole_stage(plan, index)["items"]
    number = lambda key: int(key.split()[-1])
    changed = [number(key) for key in page.in_sight("#after", "#after g.unit.changed")]
    beside = [number(key) for key in page.in_sight("#before", "#before g.unit")]
    assert {items[i]["before"] for i in changed} & set(beside), (changed, beside)


def check_search(page, plan):
    """A hit in a fused kernel opens it, is selected in both panes and in the middle."""
    index = stage_number(plan, "fuse")
    page.go_to(index)
    closed = page.count("#after g.unit")
    page.search("exp")
    expect(page.text("#hits"), "1 found")
    page.browser.press("Enter")
    expect(page.text("#hits"), "1 of 1")
    items = whole_stage(plan, index)["items"]
    exp = next(item for item in items if plan["texts"][item["op"]] == "exp")
    members = [item for item in items if item.get("group") == exp["group"]]
    expect(page.count("#after g.unit"), closed + len(members))
    for pane in ("#before", "#after"):
        expect(page.text(f"{pane} g.unit.selected text"), exp["name"] + " exp")
        assert page.off_centre(f"{pane} g.unit.selected") < 20, pane
    assert "apps/mnist/Train.cpp:" in page.text("#details"), page.text("#details")
    page.picture("viewer.png")
    page.search("Train.cpp:101")
    updates = [item for item in items if "Train.cpp:101" in plan["texts"][item.get("line", 0)]]
    assert len(updates) > 1
    expect(page.text("#hits"), f"{len(updates)} found")
    page.search("")
    page.browser.click("#after g.unit.kernel.open")
    expect(page.count("#after g.unit"), closed)


def check_kernel(page, plan):
    """A launch opens to its kernel, whose code is there at each level."""
    page.go_to(len(plan["stages"]) - 1)
    closed = page.count("#after g.unit")
    page.browser.click("#after g.unit.kernel")
    key = page.browser.run("document.querySelector('#after g.unit.kernel.open').dataset.key")
    step = plan["stages"][-1]["items"][int(key.split()[-1])]
    kernel = plan["kernels"][step["kernel"]]
    name = plan["texts"][step["op"]]
    assert re.fullmatch(r"(map|rows|columns) [a-z0-9_+ ]+ [0-9a-f]{8}", name, re.I), name
    inside = " ".join(plan["texts"][item["op"]] for item in kernel["items"]).split()
    assert set(name.split()[1].split("+")) <= {*inside, "copy"}, (name, inside)
    expect(page.text("#details h3"), f"{step['name']} {name}")
    expect(page.count("#after g.unit"), closed + len(kernel["items"]))
    expect(page.text("#details pre.code"), kernel["text"])
    for button, level, word in ((2, "ll", "define "), (3, "s", ".globl")):
        page.browser.click(f"#details button.level:nth-of-type({button})")
        expect(page.text("#details pre.code"), kernel[level])
        assert word in kernel[level], kernel[level]
    assert re.search(r"time[0-9.]+ [um]s", page.text("#details")), page.text("#details")
    page.picture("viewer_kernel.png")


def shown(plan, item):
    """What a box is called."""
    op = plan["texts"][item["op"]]
    if "kernel" in item and len(op) > 40:
        words, id = op.rsplit(" ", 1)
        op = f"{words[:30]}… {id}"
    return f"{item['name']} {op}"


def check_timeline(page, plan):
    expect(page.count("#timeline rect.buffer"), len(plan["memory"]["buffers"]))
    expect(page.count("#timeline line.bound"), 1)
    page.go_to(1)
    buffers = plan["memory"]["buffers"]
    buffer = max(buffers, key=lambda each: each["bytes"])
    page.browser.click(f"#timeline rect.buffer:nth-of-type({buffers.index(buffer) + 1})")
    step = next(s for s in plan["stages"][-1]["items"] if s["name"] == f"s{buffer['first']}")
    expect(page.text("#after g.unit.selected text"), shown(plan, step))
    maker = buffer["name"].removeprefix("scratch memory of ")
    assert maker in plan["texts"][step["op"]], (buffer, step)


def check_zoom(page, plan):
    """The wheel zooms, and a drag pans, one pane."""
    places = [page.place(pane) for pane in ("#before", "#after")]
    page.browser.turn_wheel("#after svg", -200)
    zoomed = page.place("#after")
    assert zoomed["a"] > places[1]["a"], (zoomed, places)
    page.browser.drag("#after svg", 30, 40)
    moved = page.place("#after")
    expect([round(moved[key] - zoomed[key]) for key in "ef"], [30, 40])
    expect(page.place("#before"), places[0])


def check_inputs(page, plan):
    last = len(plan["stages"]) - 1  # whose steps are few: beyond 100 units sections are drawn
    page.go_to(last)
    without = page.count("#after g.unit")
    page.browser.click("#inputs")
    items = whole_stage(plan, last)["items"]
    inputs = sum("parameter" in item for item in items)
    assert inputs > 0, items
    expect(page.count("#after g.unit"), without + inputs)
    page.browser.click("#inputs")


def test_whole_step(browser):
    """Forward, backward and the update of a training step whose loss is read behind them: one plan, all
    of whose steps are in sight."""
    run(STEP, "--filter=28x28", "--rounds=1", FL_DUMP="step")
    last = max(os.listdir("step"))
    run(FL, "view", "--time=3", "--page=step.html", f"step/{last}")
    (plan,) = plans_of("step.html")
    recorded = [plan["texts"][item["op"]] for item in whole_stage(plan, 0)["items"]]
    for op, count in (("conv2d", 2), ("conv2dBackwardData", 1), ("conv2dBackwardFilter", 2),
                      ("pool2d", 2), ("pool2dBackward", 2), ("matmul", 6)):
        expect((op, recorded.count(op)), (op, count))
    # Of two convolutions and two linear layers weights and biases, two moments of each, and the loss.
    results = whole_stage(plan, 0)["results"]
    assert len(results) >= 8 * 3 + 1, results
    page = Page(browser, "step.html")
    page.go_to(len(plan["stages"]) - 1)
    steps = [item for item in whole_stage(plan, -1)["items"] if "parameter" not in item]
    expect(page.count("#after g.unit"), len(steps))
    assert 25 < len(steps) < 50 < len(recorded), (len(steps), len(recorded))
    assert sum("kernel" in step for step in steps) > 15, steps
    # All of its steps have a time, alone or together.
    expect(sum(time["together"] for time in plan["times"]), len(steps))
    page.picture("viewer_memory.png", "footer")
    # All of it in one window, edges too. What changed since the stage before is no matter of the picture's.
    page.browser.resize(2080, 1500)
    page.style("#before, #details, footer { display: none !important }"
                ".unit > rect { stroke: #aaa !important; stroke-width: 1 !important }")
    page.go_to(len(plan["stages"]) - 1)
    page.picture("viewer_step.png", "#after svg")
    outside = page.browser.run(
        "(seen => [...document.querySelectorAll('#after g.unit, #after path.edge')]"
        ".map(e => e.getBoundingClientRect()).filter(box => box.left < seen.left"
        " || box.right > seen.right || box.top < seen.top || box.bottom > seen.bottom).length)"
        "(document.querySelector('#after svg').getBoundingClientRect())")
    expect(outside, 0)
    page.browser.resize(1280, 760)


def test_training_step(browser):
    run(TRAIN, "--epochs=1", FL_DUMP="dump", FL_VIEW="live.html")
    expect(run(FL, "view", "--time=3", "--page=page.html", "dump").stdout, "page.html\n")
    plans = plans_of("page.html")
    expect([plan["name"] for plan in plans], sorted(os.listdir("dump")))
    page = Page(browser, "page.html")
    expect(page.count("#plan option"), len(plans))
    page.choose_plan(1)
    for check in (check_stages, check_sides, check_search, check_kernel, check_timeline, check_zoom,
                  check_inputs):
        check(page, plans[1])
    page = Page(browser, "page.html")
    page.choose_plan(1)
    page.go_to(stage_number(plans[1], "layout"))
    page.picture("viewer_pass.png", "main")
    # A running program's page is that of its dump.
    run(FL, "view", "dump")
    live = plans_of("live.html")
    # But for the times, which a dump has not.
    times = [plan.pop("times") for plan in live]
    expect([{**plan, "times": []} for plan in live], plans_of("view.html"))
    for plan, measured in zip(live, times):
        steps = [item for item in whole_stage(plan, -1)["items"] if "parameter" not in item]
        expect(sum(time["together"] for time in measured), len(steps))
        assert all(time["us"] > 0 for time in measured), measured
    page = Page(browser, "live.html")
    expect(page.count("#after g.unit"), closed_units(plans[0], 1))
    page.go_to(len(plans[0]["stages"]) - 1)
    first = page.text("#after g.unit text.sub")
    assert re.search(r", [0-9.]+ [um]s$", first), first


def test_cuda():
    """The page of a plan for a GPU has CUDA's text of its kernels, and what NVRTC makes of it where it
    is there, and no code of this machine's."""
    os.makedirs("cuda/plan0000")
    schedule = run(FL, "opt", "graph.flir").stdout
    pathlib.Path("cuda/plan0000/14_pack.flir").write_text(schedule)
    pathlib.Path("cuda/plan0000/k0.cu").write_text(run(FL, "opt", "--emit=cuda", "graph.flir").stdout)
    for architecture in ("sm_90", "sm_80"):
        run(FL, "view", "--page=cuda.html", "cuda")
        (plan,) = plans_of("cuda.html")
        (kernel,) = plan["kernels"]
        assert "__global__" in kernel["cu"] and "k(const k_arguments a)" in kernel["cu"], kernel["cu"]
        assert not {"ll", "s"} & kernel.keys(), kernel.keys()
        if "ptx" in kernel:
            assert f".target {architecture}" in kernel["ptx"], kernel["ptx"]
            assert ".visible .entry k(" in kernel["ptx"], kernel["ptx"]
        pathlib.Path("cuda/plan0000/k0.ptx").write_text(".version 9.0\n.target sm_80\n")


def test_changes():
    """cse merges equal products: the second is gone, and what read it changed."""
    pathlib.Path("equal.flir").write_text(EQUAL)
    run(FL, "view", "--page=equal.html", "equal.flir")
    (plan,) = plans_of("equal.html")
    cse = whole_stage(plan, stage_number(plan, "cse"))["items"]
    shown = [(item["name"], item.get("before"), item.get("change")) for item in cse]
    expect(shown, [("%p0", 0, None), ("%0", 1, None), ("%1", 3, "changed"), ("%2", 4, None)])


def node_data(path, plan, name):
    """Of the last stage of the plan: {node: value}."""
    data = json.loads(pathlib.Path(path).read_text())[f"{plan['name']} {plan['stages'][-1]['name']}"]
    expect(data["name"], name)
    expect([item["stop"] for item in data["gradient"]], [0, 1])
    return {node: result["value"] for node, result in data["results"].items()}


def test_model_explorer():
    """The graphs are the page's stages; launches lead to kernels, and data names nodes that exist."""
    run(FL, "run", "graph.flir", FL_DUMP="explored")
    command = (FL, "view", "--time=2", "--model_explorer=plans.json", "explored")
    expect(run(*command).stdout, "plans.json\nplans.bytes.json\nplans.times.json\n")
    run(FL, "view", "--page=explored.html", "explored")
    (plan,) = plans_of("explored.html")
    collection = json.loads(pathlib.Path("plans.json").read_text())
    expect(collection["label"], "fl")
    graphs = {graph["id"]: graph for graph in collection["graphs"]}
    expect(len(graphs), len(collection["graphs"]))
    last = len(plan["stages"]) - 1
    stages = [i for i, stage in enumerate(plan["stages"]) if "same" not in stage or i == last]
    names = [f"plan0000 {plan['stages'][i]['name']}" for i in stages]
    expect([name for name in graphs if not re.search(r" k\d+$", name)], names)
    for index, name in zip(stages, names):
        items = whole_stage(plan, index)["items"]
        nodes = {node["id"]: node for node in graphs[name]["nodes"]}
        expect(list(nodes), [item["name"] for item in items])
        for item, node in zip(items, nodes.values()):
            sources = [edge["sourceNodeId"] for edge in node["incomingEdges"]]
            expect(sources, [items[operand]["name"] for operand in item.get("in", [])])
            expect(node["namespace"], f"kernel {item['group']}" if "group" in item else "")
            for kernel in node.get("subgraphIds", []):
                bodies = plan["kernels"][item["kernel"]]["items"]
                expect([each["id"] for each in graphs[kernel]["nodes"]],
                       [each["name"] for each in bodies])
    fused = graphs[f"plan0000 {plan['stages'][stage_number(plan, 'fuse')]['name']}"]
    expect(fused["groupNodeAttributes"]["kernel 0"]["space"], "space=(3, 8) reduced=[0]")
    product = next(node for node in fused["nodes"] if node["label"] == "matmul")
    expect(product["outputsMetadata"][0]["attrs"], [{"key": "type", "value": "f32[3,8]"}])
    steps = {item["name"]: item["bytes"] for item in whole_stage(plan, last)["items"]}
    expect(node_data("plans.bytes.json", plan, "bytes"), steps)
    times = node_data("plans.times.json", plan, "microseconds")
    assert times and set(times) <= set(steps) and all(time > 0 for time in times.values()), times
    # Without times there are none.
    expect(run(FL, "view", "--model_explorer=one.json", "graph.flir").stdout,
           "one.json\none.bytes.json\n")


def test_help():
    """Each subcommand tells of its own flags and of no others, and takes no others."""
    for command, flags in (
        ("opt", "budget bytes_a_move emit list pass skip stop_after verify"),
        ("run", "backend check device extents inputs outputs seed time tolerance"),
        ("memory", ""), ("view", "dot model_explorer page time"), ("reduce", "command"),
        ("bisect", "budget inputs seed tolerance"), ("doc", ""),
    ):
        text = run(FL, command, "--help").stdout
        assert text.startswith(f"usage: fl {command} "), text
        expect(re.findall(r"^  --(\w+)=", text, re.MULTILINE), flags.split())
    for command, flag in (("view", "seed=3"), ("bisect", "time=3"), ("memory", "dot"),
                          ("bisect", "emit=llvm"), ("run", "page=x.html")):
        name = flag.split("=")[0]
        words = f"fl: --{name}: is no flag of fl {command}; fl {command} --help lists them"
        expect(run(FL, command, f"--{flag}", "graph.flir", code=1).stderr.strip(), words)


def svg_of(path, dot):
    pathlib.Path(path).write_text(dot)
    return run("dot", "-Tsvg", path).stdout


def test_dot():
    def check(name, clusters, nodes, edges):
        svg = svg_of("stage.dot", run(FL, "view", "--dot", name).stdout)
        counts = [svg.count(f'class="{kind}"') for kind in ("cluster", "node", "edge")]
        expect((name, *counts), (name, clusters, nodes, edges))

    check("graph.flir", 0, 5, 4)
    run(FL, "run", "graph.flir", FL_DUMP="dots")
    (fused,) = map(str, pathlib.Path("dots/plan0000").glob("*_fuse.flir"))
    check(fused, 1, 5, 4)
    # Two parameters, a call, a launch and the three values of its kernel.
    pathlib.Path("schedule.flir").write_text(run(FL, "opt", "graph.flir").stdout)
    check("schedule.flir", 1, 2 + 2 + 3, 3 + 2)
    # Two products make a value in parts, which the third one reads.
    pathlib.Path("parts.flir").write_text(
        "graph @f(%x: f32[4,4], %y: f32[4,4]) {\n  %0 = matmul %x, %y : f32[4,4]\n"
        "  %1 = matmul %y, %x : f32[4,4]\n  %2 = concatenate %0, %1 {axis=1} : f32[4,8]\n"
        "  %3 = matmul %x, %2 : f32[4,8]\n  return %3\n}\n"
    )
    pathlib.Path("parts_schedule.flir").write_text(run(FL, "opt", "parts.flir").stdout)
    check("parts_schedule.flir", 0, 2 + 3, 2 + 2 + 3)
    check("kernel.flir", 0, 2, 1)
    expect(run(FL, "view", "--dot", "kernel.flir").stdout, (
        'digraph {\n  node [shape=box];\n  "%0" [label="%0 load 0\nf32"];\n'
        '  "%1" [label="%1 exp store 1\nf32"];\n  "%0" -> "%1";\n}\n'
    ))


def test_other_forms(browser):
    for name, units in (("kernel.flir", 2), ("schedule.flir", 2)):
        run(FL, "view", "--page=form.html", name)
        expect(Page(browser, "form.html").count("#after g.unit"), units)


def test_errors():
    os.makedirs("empty/plan0000")
    os.makedirs("broken/plan0000")
    broken = pathlib.Path("broken/plan0000/00_recorded.flir")
    broken.write_text("graph @g(%x: f32[2]) {\n  frob\n}\n")
    pathlib.Path("lookup.flir").write_text(LOOKUP)
    pathlib.Path("groups.flir").write_text("// fuse space=(3, 8) reduced=[0]: exp%7\n" + GRAPH)
    for arguments, words in (
        ([], "view: expected one folder or file"),
        (["nowhere"], "nowhere: cannot be read"),
        (["empty"], "empty: no dump: neither it nor a folder in it has .flir files"),
        (["broken"], "broken/plan0000/00_recorded.flir:2:3: "),
        (["--dot", "empty"], "empty: is a folder; --dot is for a file"),
        (["--dot", "groups.flir"], 'groups.flir:1:35: "exp%7" is no node'),
        (["--page=nowhere/page.html", "graph.flir"], "nowhere/page.html: cannot be written: "),
        (["--time=-1", "graph.flir"], "--time: -1 is negative"),
        (["--dot", "--time=1", "graph.flir"], "--dot: takes no other flag"),
        (["--model_explorer=x.json", "--page=x.html", "graph.flir"],
         "--model_explorer: writes no page"),
        (["--model_explorer=x", "graph.flir"], "--model_explorer: x: not a .json"),
        (["--time=1", "kernel.flir"], "--time: kernel.flir has no schedule to run"),
        (["--time=1", "lookup.flir"], "--time: lookup.flir does not run on drawn inputs: a lookup"),
    ):
        error = run(FL, "view", *arguments, code=1).stderr
        assert error.startswith(f"fl: {words}"), (arguments, error)
    # A page that cannot be written stops no program.
    error = run(FL, "run", "graph.flir", FL_VIEW="nowhere/page.html").stderr
    assert "fl: FL_VIEW: nowhere/page.html: cannot be written: " in error, error


def main():
    os.chdir(os.environ.get("TEST_TMPDIR") or tempfile.mkdtemp())
    os.environ.pop("BUILD_WORKING_DIRECTORY", None)  # to which the tool would go
    pathlib.Path("graph.flir").write_text(GRAPH)
    pathlib.Path("kernel.flir").write_text(KERNEL)
    test_dot()
    test_errors()
    test_help()
    test_changes()
    test_cuda()
    test_model_explorer()
    with Browser() as browser:
        test_training_step(browser)
        test_whole_step(browser)
        test_other_forms(browser)
        expect(browser.errors, [])


if __name__ == "__main__":
    main()
