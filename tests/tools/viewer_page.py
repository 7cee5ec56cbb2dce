"""A page of `fl view` in a browser, as a user sees and handles it, and the plans that it holds.

Pictures go to the folder of Bazel's undeclared outputs, or to FL_PICTURES.
"""

import json
import os
import pathlib
import re
import subprocess

PICTURES = os.environ.pop("FL_PICTURES", None) or os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR")
PICTURES = PICTURES and os.path.abspath(PICTURES)


def run(*command, code=0, **environment):
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert done.returncode == code, (command, done.returncode, done.stdout, done.stderr)
    return done


def expect(actual, wanted):
    assert actual == wanted, f"{actual!r} is not {wanted!r}"


def plans_of(page):
    text = pathlib.Path(page).read_text()
    plans = re.findall(r'<script type="application/json" class="plan">(.*)</script>', text)
    return [json.loads(plan) for plan in plans]


def whole_stage(plan, index):
    while "same" in plan["stages"][index]:
        index -= 1
    return plan["stages"][index]


def stage_number(plan, name):
    return [stage["name"].split("_")[1] for stage in plan["stages"]].index(name)


class Page:
    """What a user sees and does."""

    def __init__(self, browser, path):
        self.browser = browser
        self.seconds = browser.open(path)

    def count(self, selector):
        return self.browser.run(f"document.querySelectorAll({json.dumps(selector)}).length")

    def text(self, selector):
        return self.browser.run(f"document.querySelector({json.dumps(selector)})?.textContent")

    def choose_plan(self, number):
        self.browser.run(
            f"(e => {{ e.value = {number}; e.dispatchEvent(new Event('change')); }})"
            "(document.querySelector('#plan'))"
        )

    def go_to(self, number):
        self.browser.run(f"document.querySelectorAll('#passes button')[{number}].click()")

    def search(self, text):
        self.browser.run(
            "(e => { e.focus(); e.value = %s; e.dispatchEvent(new Event('input')); })"
            "(document.querySelector('#search'))" % json.dumps(text)
        )

    def picture(self, name, selector="body"):
        if PICTURES:
            self.browser.screenshot(os.path.join(PICTURES, name), selector)

    def place(self, pane):
        """How the pane's drawing is scaled (a) and moved (e, f)."""
        return self.browser.run(
            "(m => ({a: m.a, e: m.e, f: m.f}))"
            f"(document.querySelector({json.dumps(pane + ' svg > g')}).getCTM())"
        )

    def in_sight(self, pane, selector):
        """The keys of the elements that lie, in part at least, in the pane."""
        return self.browser.run(
            "((a, b) => [...document.querySelectorAll(b)].filter(e => {"
            " const r = e.getBoundingClientRect(), s = document.querySelector(a + ' svg')"
            ".getBoundingClientRect(); return r.bottom > s.top && r.top < s.bottom"
            " && r.right > s.left && r.left < s.right; }).map(e => e.dataset.key))"
            f"({json.dumps(pane)}, {json.dumps(selector)})"
        )

    def off_centre(self, selector):
        """How far, in pixels, the element is from the middle of its pane."""
        return self.browser.run(
            "(e => { const a = e.getBoundingClientRect();"
            " const b = e.closest('svg').getBoundingClientRect();"
            " return Math.hypot(a.x + a.width / 2 - b.x - b.width / 2,"
            " a.y + a.height / 2 - b.y - b.height / 2); })"
            f"(document.querySelector({json.dumps(selector)}))"
        )

    def style(self, rules):
        tag = json.dumps(f"<style>{rules}</style>")
        self.browser.run(f"document.head.insertAdjacentHTML('beforeend', {tag})")
