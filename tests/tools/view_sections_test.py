#!/usr/bin/python3
"""view_sections_test.py FL: how the page of `fl view` shows graphs of many nodes, and what passes change in
them, in a headless Chromium."""

import os
import pathlib
import re
import sys
import tempfile

from browser import Browser
from viewer_page import Page, expect, plans_of, run, stage_number

FL = os.path.abspath(sys.argv[1])
MOST_UNITS = 100
MOST_SECONDS = 2  # that a page of 5,000 nodes takes to open


def far_changes():
    """A chain of which cse changes two places, both below what is in sight at first."""
    lines = []

    def node(text):
        lines.append(f"  %{len(lines)} = {text} : f32[4,8]\n")
        return f"%{len(lines) - 1}"

    last = "%x"
    for i in range(80):
        last = node(f"{('exp', 'tanh')[i % 2]} {last}")
        if i in (40, 70):
            last = node("add {}, {}".format(*(node(f"mul {last}, {last}") for _ in range(2))))
    return f"graph @f(%x: f32[4,8]) {{\n{''.join(lines)}  return {last}\n}}\n"


def test_changes_in_sight(browser):
    """One that changed is in sight, how many are not is said, and a click goes to them in turn."""
    pathlib.Path("far.flir").write_text(far_changes())
    run(FL, "view", "--page=far.html", "far.flir")
    (plan,) = plans_of("far.html")
    page = Page(browser, "far.html")
    page.go_to(stage_number(plan, "cse"))
    for pane, kind in (("#before", "gone"), ("#after", "changed")):
        units = f"{pane} g.unit.{kind}"
        expect(page.count(units), 2)
        (first,) = page.in_sight(pane, units)
        expect(page.text(f"{pane} button.outside"), "1 marked outside")
        page.browser.click(f"{pane} button.outside")
        (second,) = page.in_sight(pane, units)
        assert first != second, (first, second)
        page.browser.click(f"{pane} button.outside")
        expect(page.in_sight(pane, units), [first])
    page.browser.turn_wheel("#after svg", 2000)
    expect(len(page.in_sight("#after", "#after g.unit.changed")), 2)
    shown = "getComputedStyle(document.querySelector('#after button.outside')).display"
    expect(page.browser.run(shown), "none")


LINES = ["net.cpp:5 (in Linear (4->8))", "src/net.cpp:6 (in ReLU)", "net.cpp:9"]


def stage_of_lines(merged):
    """A chain of 60 steps of each line, of which each line but the first computes values twice, as before
    cse, or once."""
    lines, last = [], "%x"

    def node(text, line):
        lines.append(f"  %{len(lines)} = {text} : f32[4,8]  // {line}\n")
        return f"%{len(lines) - 1}"

    for i in range(180):
        line = LINES[i // 60]
        last = node(f"exp {last}", line)
        if i in (70, 100, 150):
            first = node(f"mul {last}, {last}", line)
            second = first if merged else node(f"mul {last}, {last}", line)
            last = node(f"add {first}, {second}", line)
    return f"graph @f(%x: f32[4,8]) {{\n{''.join(lines)}  return {last}\n}}\n"


def sections(page, pane):
    """The titles of those that are closed, with how much changed in them."""
    return page.browser.run(
        f"[...document.querySelectorAll('{pane} g.unit.section:not(.open)')].map("
        "e => [...e.querySelectorAll('text')].map(each => each.textContent.split(';')[0]))")


def marked_outside(page, pane):
    shown = f"getComputedStyle(document.querySelector('{pane} button.outside')).display"
    if page.browser.run(shown) == "none":
        return 0
    return int(page.text(f"{pane} button.outside").split()[0])


def toggle(page, key):
    page.browser.run(f"document.querySelector('#after g.unit[data-key=\"{key}\"]')"
                     ".dispatchEvent(new MouseEvent('click', {bubbles: true}))")


def test_sections_of_lines(browser):
    """Sections are of modules and lines; those in which something changed are open, until a user closes
    them: then their boxes and the button say how much."""
    os.makedirs("lined/plan0000")
    for name, merged in (("00_recorded", False), ("01_cse", True)):
        pathlib.Path(f"lined/plan0000/{name}.flir").write_text(stage_of_lines(merged))
    run(FL, "view", "--page=lined.html", "lined")
    page = Page(browser, "lined.html")
    page.go_to(0)
    titles = ["60 nodes in Linear (4->8)", "66 nodes in ReLU", "63 nodes at net.cpp:9"]
    places = ["%0 … %59, net.cpp:5", "%60 … %125, net.cpp:6", "%126 … %188, net.cpp:9"]
    expect(sections(page, "#after"), [list(each) for each in zip(titles, places)])
    page.go_to(1)
    for pane, kind, units in (("#before", "gone", 66 + 63), ("#after", "changed", 64 + 62)):
        expect([title for title, _ in sections(page, pane)], titles[:1])
        expect(page.count(f"{pane} g.unit"), 3 + units)
        expect(page.count(f"{pane} g.unit.{kind}"), 3)
        assert page.in_sight(pane, f"{pane} g.unit.{kind}"), pane
    in_sight = len(page.in_sight("#after", "#after g.unit.changed"))
    expect(marked_outside(page, "#after"), 3 - in_sight)
    # What opened by itself is closed in another stage.
    page.go_to(0)
    expect(page.count("#after g.unit"), 3)
    page.go_to(1)
    relu = f"graph all {LINES[1]} 1"
    toggle(page, relu)
    expect(sections(page, "#after")[1], ["64 nodes in ReLU", "2 changed"])
    expect(sections(page, "#before")[1], ["66 nodes in ReLU", "2 gone"])
    expect(page.count("#after g.unit.section.changed"), 1)
    others = page.count("#after g.unit.changed") - 1
    in_sight = len(page.in_sight("#after", "#after g.unit.changed:not(.section)"))
    expect(marked_outside(page, "#after"), 2 + others - in_sight)
    # The button opens it again and goes to what changed in it.
    for _ in range(3):
        page.browser.click("#after button.outside")
    expect(page.count("#after g.unit.section.changed"), 0)
    expect(page.count("#after g.unit.changed"), 3)
    assert page.in_sight("#after", "#after g.unit.changed")
    expect(page.count("#after g.unit.section.open"), 2)


def test_changes_beyond_the_cap(browser):
    """Where more sections hold changes than are opened, the others say how many."""
    steps = "".join(
        f"  %{4 * i} = exp %{4 * i - 1} : f32[4]\n  %{4 * i + 1} = mul %{4 * i}, %{4 * i} : f32[4]\n"
        f"  %{4 * i + 2} = mul %{4 * i}, %{4 * i} : f32[4]\n"
        f"  %{4 * i + 3} = add %{4 * i + 1}, %{4 * i + 2} : f32[4]\n" for i in range(300))
    text = f"graph @f(%x: f32[4]) {{\n{steps}  return %1199\n}}\n".replace("%-1", "%x")
    pathlib.Path("many.flir").write_text(text)
    run(FL, "view", "--page=many.html", "many.flir")
    (plan,) = plans_of("many.html")
    page = Page(browser, "many.html")
    page.go_to(stage_number(plan, "cse"))
    # 300 values are gone, 25 in each of 12 sections, of which a second one would be too many boxes.
    expect([changes for _, changes in sections(page, "#before")], ["25 gone"] * 11)
    expect(page.count("#before g.unit"), 12 + MOST_UNITS)
    expect(page.count("#before g.unit.gone:not(.section)"), 25)
    in_sight = len(page.in_sight("#before", "#before g.unit.gone:not(.section)"))
    assert in_sight > 0
    expect(marked_outside(page, "#before"), 300 - in_sight)


def large_graph(layers):
    """A training step of a perceptron: 11 nodes a layer."""
    lines, results = [], []

    def node(text, shape):
        lines.append(f"  %{len(lines)} = {text} : f32[{shape}]\n")
        return f"%{len(lines) - 1}"

    values = ["%x"]
    for i in range(layers):
        product = node(f"matmul %w{i}, {values[-1]} {{transposeLhs=0, transposeRhs=0}}", "8,4")
        values.append(node(f"tanh {node(f'add {product}, %b{i}', '8,4')}", "8,4"))
    gradient = node(f"sub {values[-1]}, %x", "8,4")
    for i in reversed(range(layers)):
        square = node(f"mul {values[i + 1]}, {values[i + 1]}", "8,4")
        change = node(f"sub {gradient}, {node(f'mul {square}, {gradient}', '8,4')}", "8,4")
        weights = node(f"matmul {change}, {values[i]} {{transposeLhs=0, transposeRhs=1}}", "8,8")
        bias = node(f"sum {change} {{keepDims=1, axes=[1]}}", "8,1")
        results += [node(f"sub %w{i}, {weights}", "8,8"), node(f"sub %b{i}, {bias}", "8,1")]
        gradient = node(f"matmul %w{i}, {change} {{transposeLhs=1, transposeRhs=0}}", "8,4")
    parameters = "".join(f", %w{i}: f32[8,8], %b{i}: f32[8,1]" for i in range(layers))
    head = f"graph @large(%x: f32[8,4]{parameters}) {{\n"
    return head + "".join(lines) + f"  return {', '.join(results)}\n}}\n", len(lines)


def test_large_graph(browser):
    """It opens in time, and draws little more where the first pass changes something everywhere."""
    text, nodes = large_graph(500)
    pathlib.Path("large.flir").write_text(text)
    run(FL, "view", "--page=large.html", "large.flir")
    page = Page(browser, "large.html")
    print(f"{nodes} nodes open in {page.seconds:.2f} s")
    assert nodes >= 5000 and page.seconds < MOST_SECONDS, (nodes, page.seconds)
    closed = -(-nodes // MOST_UNITS)
    expect(page.count("#after g.unit"), closed)
    page.browser.click("#after g.unit.section")
    expect(page.count("#after g.unit"), closed + MOST_UNITS)
    page.search("%2500 ")
    page.browser.press("Enter")
    expect(page.count("#after g.unit"), closed + 2 * MOST_UNITS)
    assert page.off_centre("#after g.unit.selected") < 20

    changed = re.sub(r"tanh (%\d+)", r"absolute \1", text)
    os.makedirs("changed/plan0000")
    for name, each in (("00_recorded", text), ("01_canonicalize", changed)):
        pathlib.Path(f"changed/plan0000/{name}.flir").write_text(each)
    run(FL, "view", "--page=changed.html", "changed")
    page = Page(browser, "changed.html")
    print(f"with {page.text('#after button.outside')}, in {page.seconds:.2f} s")
    # Whatever changed, little is laid out at first.
    expect(page.count("#after g.unit"), closed + MOST_UNITS)
    assert marked_outside(page, "#after") > 450


def main():
    os.chdir(os.environ.get("TEST_TMPDIR") or tempfile.mkdtemp())
    os.environ.pop("BUILD_WORKING_DIRECTORY", None)  # to which the tool would go
    with Browser() as browser:
        test_changes_in_sight(browser)
        test_sections_of_lines(browser)
        test_changes_beyond_the_cap(browser)
        test_large_graph(browser)
        expect(browser.errors, [])


if __name__ == "__main__":
    main()
