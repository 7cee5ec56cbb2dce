#!/usr/bin/env python3
"""Draws what `bazel run //benchmarks:ops -- --json=FILE` wrote: for each operator on f32 the time of
eager mode, a copy of the same bytes and the peers over that of lazy mode, on a logarithmic scale.
Points to the right of 1 are slower than lazy mode.

usage: benchmarks/draw_ops.py FILE.json ELEMENTS OUT.svg     (needs gnuplot, see setup.sh)
"""
import json
import subprocess
import sys

SETTINGS = """
set terminal svg size 900,{height} font "sans-serif,11" background rgb "white"
set output "{path}"
set title "{title}"
set logscale x
set grid xtics
set xlabel "time over lazy mode's"
set yrange [-1:{count}]
set key outside top center horizontal
set ytics ({ytics})
set arrow from 1, graph 0 to 1, graph 1 nohead lc rgb "black"
plot {plots}
"""


def read_ratios(path, elements):
    """Ratios by series and case: {series: {case: ratio}}, and the cases in order."""
    series, cases = {}, []
    for line in open(path):
        row = json.loads(line)
        case, size = row["case"].rsplit(", ", 1)
        if int(size) != elements or not case.endswith(" f32"):
            continue
        cases.append(case.removesuffix(" f32"))
        times = {"eager": row["eager"], "copy": row["limit"], **row["peers"]}
        for name, time in times.items():
            series.setdefault(name, {})[cases[-1]] = time / row["ours"]
    return series, cases


def draw(path, title, series, cases):
    height = 120 + 15 * len(cases)
    ytics = ", ".join(f'"{case}" {i}' for i, case in enumerate(reversed(cases)))
    places = {case: i for i, case in enumerate(reversed(cases))}
    plots = ", ".join(f'"-" using 1:2 with points pt 7 ps 0.6 title "{name}"' for name in series)
    settings = SETTINGS.format(
        height=height, path=path, title=title, count=len(cases), ytics=ytics, plots=plots
    )
    blocks = [
        "".join(f"{ratio:.4g} {places[case]}\n" for case, ratio in ratios.items()) + "e\n"
        for ratios in series.values()
    ]
    subprocess.run(["gnuplot"], input=settings + "".join(blocks), text=True, check=True)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    elements = int(sys.argv[2])
    series, cases = read_ratios(sys.argv[1], elements)
    if not cases:
        sys.exit(f"draw_ops.py: {sys.argv[1]} has no f32 rows of {elements} elements")
    draw(sys.argv[3], f"Operators on {elements} elements of f32", series, cases)


if __name__ == "__main__":
    main()
