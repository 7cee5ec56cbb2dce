#!/usr/bin/python3
"""Runs the benchmarks into benchmarks/results/, and draws docs/performance.md from them.

usage: benchmarks/performance.py [draw [--check]]
       benchmarks/performance.py run [--peers] [--rounds=N] [--since=DATE] [NAME...]

`draw` writes docs/performance.md and its charts, docs/performance/*.svg. With --check nothing is
written: it fails if a file is not what would be written. `run` runs all benchmarks, or those named,
one after the other, each into benchmarks/results/NAME.json, and notes in machine.json what they ran
on; those with results of DATE (YYYY-MM-DD, perhaps with HH:MM, UTC) or later are left alone, so
that a run that was ended goes on. With --peers other libraries are timed in turns with ours.
The first line names Debian's python, which has the matplotlib that setup.sh installs.
"""

import argparse
import datetime
import importlib.util
import json
import pathlib
import re
import subprocess
import sys

from figures import machine, page, rows
from figures.suite import SUITE

# Not resolved: a test has links to the files that it declares.
ROOT = pathlib.Path(__file__).absolute().parent.parent
RESULTS = ROOT / "benchmarks/results"
MACHINE = RESULTS / "machine.json"
PAGE = ROOT / "docs/performance.md"
CHARTS = ROOT / "docs/performance"


# ---- draw ----


def read_results():
    return {each.name: rows.read(RESULTS / f"{each.name}.json") for each in SUITE}


def read_machine():
    return json.loads(MACHINE.read_text()) if MACHINE.exists() else {"machines": [], "runs": {}}


def draw_charts(results, charted):
    """{path: bytes}."""
    from figures import charts  # here, as the page alone needs no matplotlib

    drawn = {CHARTS / f"{each.name}.svg": charts.draw(each, results[each.name]) for each in charted}
    for each in charted:
        if curve := charts.draw_curve(each, results[each.name]):
            drawn[CHARTS / f"{each.name}_curve.svg"] = curve
    return drawn


def make_files(with_charts):
    """{path: bytes} of the page and perhaps its charts."""
    results = read_results()
    charted = [each for each in SUITE if each.chart(results[each.name])]
    text = page.page(results, read_machine(), {each.name for each in charted})
    return {PAGE: text.encode(), **(draw_charts(results, charted) if with_charts else {})}


def is_same(path, made):
    """Whether the file holds that; the coordinates of charts each processor rounds in its way."""
    there = path.read_bytes()
    if path.suffix != ".svg":
        return there == made
    number = re.compile(rb"-?\d+\.?\d*")
    pairs = zip(number.findall(there), number.findall(made))
    return number.sub(b"", there) == number.sub(b"", made) and all(
        abs(float(x) - float(y)) < 0.001 for x, y in pairs
    )


def check():
    with_charts = importlib.util.find_spec("matplotlib") is not None
    if not with_charts:
        print("performance.py: matplotlib is not installed, so the charts are not compared")
    files = make_files(with_charts)
    there = [PAGE, *(CHARTS.glob("*.svg") if with_charts else [])]
    stale = [
        str(path.relative_to(ROOT))
        for path in sorted({*files, *there})
        if not path.exists() or path not in files or not is_same(path, files[path])
    ]
    if stale:
        sys.exit(f"stale, run benchmarks/performance.py draw: {', '.join(stale)}")


def draw():
    files = make_files(with_charts=True)
    CHARTS.mkdir(exist_ok=True)
    for path in CHARTS.glob("*.svg"):
        path.unlink()
    for path, content in files.items():
        path.write_bytes(content)


# ---- run ----


def wanted(options):
    """The benchmarks to run, in order."""
    unknown = set(options.names) - {each.name for each in SUITE}
    if unknown:
        sys.exit(f"performance.py: there is no {', '.join(sorted(unknown))}")
    runs = read_machine()["runs"]
    return [
        each
        for each in SUITE
        if (each.name in options.names if options.names else not each.elsewhere)
        and (options.peers or not each.needs_peers)
        and not (options.since and runs.get(each.name, {}).get("date", "") >= options.since)
    ]


def note(name, command):
    """Writes down what a benchmark ran on; machines that no result is of any more go."""
    noted = read_machine()
    runs, machines = noted["runs"], noted["machines"]
    if (here := machine.describe()) not in machines:
        machines.append(here)
    now = datetime.datetime.now(datetime.timezone.utc)
    runs[name] = {"date": now.strftime("%Y-%m-%d %H:%M"), "commit": machine.commit(ROOT),
                  "machine": machines.index(here), "command": command}
    places = {run["machine"] for run in runs.values()}
    used = [machines[place] for place in sorted(places)]
    for run in runs.values():
        run["machine"] = used.index(machines[run["machine"]])
    MACHINE.write_text(json.dumps({"machines": used, "runs": runs}, indent=1) + "\n")


def run_one(benchmark, options):
    """Whether it succeeded."""
    more = ["--peers"] * (options.peers and benchmark.peers)
    more += [f"--rounds={options.rounds}"] * bool(options.rounds)
    command = benchmark.command(*more)
    print(command, flush=True)
    link = " " if " -- " in command else " -- "
    path = RESULTS / f"{benchmark.name}.json"
    if subprocess.run(f"{command}{link}--json='{path}'", shell=True, cwd=ROOT).returncode != 0:
        return False
    note(benchmark.name, command)
    return True


def run(options):
    benchmarks = wanted(options)
    RESULTS.mkdir(exist_ok=True)
    failed = []
    for i, benchmark in enumerate(benchmarks, 1):
        print(f"[{i}/{len(benchmarks)}] ", end="")
        if not run_one(benchmark, options):
            failed.append(benchmark.name)
    if failed:
        sys.exit(f"performance.py: failed: {', '.join(failed)}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    modes = parser.add_subparsers(dest="mode", prog="benchmarks/performance.py")
    modes.add_parser("draw").add_argument("--check", action="store_true")
    parser.set_defaults(check=False)
    running = modes.add_parser("run")
    running.add_argument("names", nargs="*", metavar="NAME")
    running.add_argument("--peers", action="store_true")
    running.add_argument("--rounds", type=int)
    running.add_argument("--since", metavar="DATE")
    options = parser.parse_args()
    if options.mode == "run":
        run(options)
    elif options.check:
        check()
    else:
        draw()


if __name__ == "__main__":
    main()
