"""The text of docs/performance.md."""

import collections

from figures.bounds import BOUNDS
from figures.rows import NAMES, amount, geometric_mean, ratio, table
from figures.suite import MEMORY, SUITE

TIMES = ("us", "ms", "x")
# Below, what recording takes is most of an operator's time, and stands under Overhead.
LARGE_OP = 2**16
# What one run in turns tells apart.
LONG_TABLE = 40  # lines
SLOWER_THAN_EAGER = 1.05

INTRODUCTION = """# Performance

Made by `benchmarks/performance.py` from `benchmarks/results/`; do not edit. To measure again:

```bash
./setup.sh --peers
benchmarks/performance.py run --peers && benchmarks/performance.py draw
```

These commands take hours: tests run those of `bazel run` for one case each.

Times are medians of blocks of calls that alternate between all columns of a row, in one run. `lazy`
is the compiler, `eager` the same program call by call, interpreted. Ratios are lazy over the other:
below 1 lazy is faster. `best peer` is the fastest of the others in that row, each at its best
settings.
"""


def times_of(rows):
    return [row for row in rows if row.unit in TIMES]


def is_counted(row):
    """Whether being slower than eager mode says something of kernels."""
    return row.bench != "ops" or int(row.case.rsplit(", ", 1)[1]) >= LARGE_OP


# ---- what all benchmarks say together ----


def summary_row(benchmark, rows):
    rows = [row for row in times_of(rows) if is_counted(row)]
    to_eager = [row.over("eager") for row in rows if row.eager]
    to_peers = [row.over_best_peer() for row in rows if row.peers]
    ahead = sum(each <= 1 for each in to_peers)
    return [
        f"[{benchmark.title}](#{anchor(benchmark)})",
        str(len(rows)),
        ratio(geometric_mean(to_eager)),
        ratio(geometric_mean(to_peers)),
        f"{ahead} of {len(to_peers)}" if to_peers else "",
    ]


def summary(results):
    header = ["", "cases", "lazy / eager", "lazy / best peer", "ahead of the best peer"]
    rows = [summary_row(each, results[each.name]) for each in SUITE if results[each.name]]
    return "\n## Summary\n\nGeometric means of the ratios.\n\n" + table(header, rows)


def bound_row(bound, results):
    figures = bound.measured(results)
    must_and_aim = bound.must_and_aim(results)
    if not figures:
        return [bound.measure, *must_and_aim, "", "", "not measured"]
    worst = max(figures, key=figures.get)
    missed = len(bound.missed(results))
    verdict = "met" if not missed else "**missed**"
    if len(figures) > 1 and missed:
        verdict += f" in {missed} of {len(figures)}"
    return [bound.measure, *must_and_aim, bound.text(figures[worst]), worst, verdict]


def bounds(results):
    header = ["measure", "must", "aim", "worst figure", "of", "must"]
    rows = [bound_row(bound, results) for bound in BOUNDS]
    return "\n## What must hold\n\n" + table(header, rows)


# ---- where ours is behind ----


def missed_bounds(results, of_operators):
    return [
        [bound.measure, case, bound.cause(case), bound.text(figure), bound.text(must)]
        for bound in BOUNDS
        if bound.of_operators == of_operators
        for case, figure, must in bound.missed(results)
    ]


def behind(results, other):
    """Rows in which `other`, a function of a row, names what is faster, the worst first."""
    found = []
    for benchmark in SUITE:
        rows = [row for row in times_of(results[benchmark.name]) if other(row)]
        for row in sorted(rows, key=lambda row: -row.over(other(row))):
            theirs = row.times()[other(row)]
            found.append([benchmark.title, row.case, amount(row.ours, row.unit),
                          f"{NAMES[other(row)]} {amount(theirs, row.unit)}",
                          ratio(row.over(other(row)))])
    return found


def faster_peer(row):
    return row.best_peer() if row.peers and row.over_best_peer() > 1 else None


def faster_eager(row):
    slower = row.eager and is_counted(row) and row.over("eager") > SLOWER_THAN_EAGER
    return "eager" if slower else None


def losses(results):
    header = ["benchmark", "case", "lazy", "other", "lazy / other"]
    missed = ["measure", "case", "cause", "figure", "must"]
    parts = (
        ("Bounds that are missed", missed, missed_bounds(results, False)),
        ("Bounds of operators that are missed", missed, missed_bounds(results, True)),
        ("Behind the best peer", header, behind(results, faster_peer)),
        (f"More than {SLOWER_THAN_EAGER} of eager mode", header, behind(results, faster_eager)),
    )
    text = "\n## Where we lose\n"
    for title, columns, rows in parts:
        lines = table(columns, rows, columns.index("figure") if "figure" in columns else 2)
        if len(rows) > LONG_TABLE:
            lines = f"<details><summary>{len(rows)} cases</summary>\n\n{lines}\n</details>\n"
        text += f"\n### {title}\n\n" + (lines if rows else "Nowhere.\n")
    return text


# ---- a benchmark ----


def anchor(benchmark):
    return benchmark.title.lower().replace(" ", "-").replace("/", "")


def plain_table(benchmark, rows):
    """A line a row, with all of its times and their ratios."""
    rows = times_of(rows)
    present = {name for row in rows for name in row.times()}
    shown = [name for name in NAMES if name in present]
    names = [benchmark.limit if name == "limit" else NAMES[name] for name in shown]
    ratios = [name for name in ("eager", "limit") if name in shown]
    with_peers = any(row.peers for row in rows)
    header = ["", "lazy", *names]
    header += [f"/ {benchmark.limit if name == 'limit' else name}" for name in ratios]
    header += ["/ best peer"] * with_peers
    lines = [
        [row.case, amount(row.ours, row.unit),
         *(amount(row.times().get(name), row.unit) for name in shown),
         *(ratio(row.over(name)) for name in ratios),
         *[ratio(row.over_best_peer())] * with_peers]
        for row in rows
    ]
    return table(header, lines)


def table_by_size(benchmark, rows):
    """A line a case; for each size the time, and its ratios to eager mode and to the limit."""
    lines = collections.defaultdict(dict)
    for row in rows:
        case, size = row.case.rsplit(", ", 1)
        lines[case][size] = [amount(row.ours, row.unit), ratio(row.over("eager")),
                             ratio(row.over("limit"))]
    sizes = [size for size in benchmark.panels if any(size in each for each in lines.values())]
    header = [""]
    for size in sizes:
        header += [benchmark.panels[size].replace(" elements", ""), "/ eager",
                   f"/ {benchmark.limit}"]
    nothing = [""] * 3
    return table(header, [
        [case, *(cell for size in sizes for cell in by_size.get(size, nothing))]
        for case, by_size in lines.items()
    ])


def memory_tables(benchmark, rows):
    """Steps, then one of them within budgets."""
    steps = [row for row in rows if row.unit == "bytes"]
    present = {name for row in steps for name in row.times()}
    shown = [name for name in NAMES if name in present]
    fields = ("arena", "bound", "recorded", "unplanned")
    header = ["", "lazy", *(NAMES[name] for name in shown), *fields, "arena / bound", "planning"]
    lines = [
        [row.case, amount(row.ours, "bytes"),
         *(amount(row.times().get(name), "bytes") for name in shown),
         *(amount(getattr(row, field), "bytes") for field in fields),
         ratio(row.arena / row.bound), amount(row.plan_ms, "ms")]
        for row in steps
    ]
    budgets = benchmark.points(rows)
    text = table(header, lines)
    if budgets:
        text += f"\n![memory against time](performance/{benchmark.name}_curve.svg)\n\n"
        text += table(["", "memory", "time", "planning"],
                      [[row.case, ratio(row.arena), ratio(row.ours),
                        amount(row.plan_ms, "ms")] for row in budgets])
    return text


def count_table(rows):
    """Kernels launched, or what else is counted, and bytes moved."""
    lines = collections.defaultdict(lambda: [""] * 4)
    for row in rows:
        first = {"kernels": 0, "count": 0, "bytes": 2}.get(row.unit)
        if first is not None:
            lines[row.case][first] = amount(row.ours, row.unit)
            lines[row.case][first + 1] = amount(row.eager, row.unit)
    counted = "kernels, lazy" if any(row.unit == "kernels" for row in rows) else "number"
    header = ["", counted, "eager", "moved, lazy", "eager"]
    used = [i for i in range(4) if any(cells[i] for cells in lines.values())]
    if not used:
        return ""
    return "\n" + table(["", *(header[i + 1] for i in used)],
                        [[case, *(cells[i] for i in used)] for case, cells in lines.items()])


def phase_table(rows):
    """What the time of training steps is spent on."""
    lines = [
        [row.case,
         *(amount(time, row.unit) for time in (row.record, row.run, row.plan, row.compile))]
        for row in rows
        if row.record is not None
    ]
    header = ["", "recording", "running", "planning, at first", "compiling, at first"]
    return "\n" + table(header, lines) if lines else ""


def tables(benchmark, rows):
    if benchmark.panels is MEMORY:
        return memory_tables(benchmark, rows)
    sizes = len(benchmark.panels) > 1 and benchmark.folded
    text = (table_by_size if sizes else plain_table)(benchmark, rows)
    text += phase_table(rows) + count_table(rows)
    if not benchmark.folded:
        return text
    return f"<details><summary>{len(rows)} cases</summary>\n\n{text}\n</details>\n"


def section(benchmark, rows, run, has_chart):
    text = f"\n## {benchmark.title}\n\n{benchmark.about}\n"
    command = run.get("command") or benchmark.command(*["--peers"] * benchmark.peers)
    text += f"\n```bash\n{command}\n```\n"
    if not rows:
        return text + "\nNot measured yet.\n"
    facts = [run["date"], f"{rows[0].threads} threads", f"machine {run['machine'] + 1}"]
    facts += [f"commit {run['commit']}"] if "commit" in run else []
    text += f"\nMeasured {', '.join(facts)}." + (f" {run['note']}" if "note" in run else "") + "\n"
    if has_chart:
        text += f"\n![{benchmark.title}](performance/{benchmark.name}.svg)\n"
    return text + "\n" + tables(benchmark, rows)


# ---- the whole ----


def machine_text(machines):
    text = "\n## Machines\n"
    for number, machine in enumerate(machines, 1):
        text += f"\nMachine {number}\n\n"
        text += "".join(f"- {key}: {value}\n" for key, value in machine.items())
    return text


def page(results, machine, charts):
    """`results` are rows by benchmark, `charts` the names of those that have one."""
    sections = (
        section(each, results[each.name], machine["runs"].get(each.name, {}), each.name in charts)
        for each in SUITE
    )
    return "".join([INTRODUCTION, summary(results), bounds(results), losses(results), *sections,
                    machine_text(machine["machines"])])
