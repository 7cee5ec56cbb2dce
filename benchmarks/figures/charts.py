"""Charts of ratios: points on a logarithmic scale, a line a case, a panel a thing measured."""

import io

import matplotlib
from matplotlib import ticker
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures.rows import NAMES, ratio

# Colours that stay apart for the colour-blind, shapes for those who see none, and their sizes.
STYLES = {
    "eager": ("#333333", "o", 5),
    "torch 1.13": ("#E69F00", "v", 6),
    "torch": ("#D55E00", "s", 4.5),
    "torch compile": ("#CC79A7", "D", 4.2),
    "jax": ("#009E73", "^", 6),
    "mlx": ("#0072B2", "X", 6),
    "std::mt19937": ("#56B4E9", "P", 5),
    "plain": ("#D55E00", "s", 4.5),
    "plain eager": ("#E69F00", "v", 6),
    "limit": ("#777777", "|", 8),
}
LOSS = "#B00020"
SETTINGS = {
    # The same file of the same figures, and words that can be searched.
    "svg.hashsalt": "fl",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "ytick.left": False,
}
LINE = 0.2  # inches
PANEL_WIDTH = {1: 6.0, 2: 3.6, 3: 2.6, 4: 2.3}
ABOVE, BELOW = 0.75, 0.6
NOTE = 0.75  # to the right of a panel, for its numbers


def series_of(panels):
    present = {name for cases in panels for row in cases.values() for name in row.times()}
    return [name for name in NAMES if name in present]


def yardstick(cases):
    """What the numbers beside a panel compare with."""
    if any(row.peers for row in cases.values()):
        return "best peer"
    return "eager" if any(row.eager for row in cases.values()) else "limit"


def style(name):
    colour, shape, size = STYLES[name]
    return {"color": colour, "marker": shape, "markersize": size, "linestyle": "",
            "markeredgewidth": 1.6 if shape == "|" else 0}


def set_scale(axes, panels):
    """The same for all panels."""
    ratios = [row.over(name) for cases in panels for row in cases.values() for name in row.times()]
    low, high = min(1, *ratios), max(1, *ratios)
    margin = 1.05 * (high / low) ** 0.05
    axes.set_xscale("log")
    axes.set_xlim(low / margin, high * margin)
    if high / low < 20:
        axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(ticker.NullFormatter())


def write_numbers(axes, cases, places):
    """Ours over the yardstick's, beside the panel; losses stand out."""
    name = yardstick(cases)
    margin = axes.get_yaxis_transform()
    axes.text(1.03, -0.9, f"/ {name}", transform=margin, va="center", fontsize=8, color="#555555")
    for case, row in cases.items():
        value = row.over_best_peer() if name == "best peer" else row.over(name)
        if value is not None:
            lost = value > 1
            axes.text(1.03, places[case], ratio(value), transform=margin, va="center",
                      color=LOSS if lost else "#222222", fontweight="bold" if lost else "normal")


def draw_panel(axes, title, cases, places):
    axes.hlines([places[case] for case in cases], 0, 1, transform=axes.get_yaxis_transform(),
                color="#E4E4E4", linewidth=0.8, zorder=0)
    axes.axvline(1, color="#000000", linewidth=1, zorder=1)
    for name in series_of([cases]):
        points = [(row.over(name), places[case]) for case, row in cases.items()
                  if row.over(name) is not None]
        axes.plot(*zip(*points), clip_on=False, **style(name))
    axes.set_title(title, fontsize=9, fontweight="bold", loc="left", pad=14)
    write_numbers(axes, cases, places)


def write_legend(figure, series, limit):
    handles = [Line2D([], [], label=limit if name == "limit" else NAMES[name], **style(name))
               for name in series]
    figure.legend(handles=handles, loc="upper left", bbox_to_anchor=(0, 1), ncol=len(series),
                  frameon=False, handletextpad=0.1, columnspacing=1.2, borderaxespad=0)


def figure_of(benchmark, panels):
    cases = list(dict.fromkeys(case for panel in panels.values() for case in panel))
    places = {case: i for i, case in enumerate(cases)}
    panel_width = PANEL_WIDTH[len(panels)]
    width = (panel_width + NOTE) * len(panels)
    height = ABOVE + BELOW + LINE * len(cases)
    figure = Figure(figsize=(width, height), facecolor="white")
    grid = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    figure.subplots_adjust(left=0, right=1 - NOTE / width, top=1 - ABOVE / height,
                           bottom=BELOW / height, wspace=NOTE / panel_width)
    for axes, (title, panel) in zip(grid, panels.items()):
        draw_panel(axes, title, panel, places)
    set_scale(grid[0], panels.values())
    grid[0].set_yticks(range(len(cases)), cases)
    grid[0].set_ylim(len(cases) - 0.4, -0.6)
    grid[0].set_xlabel("lazy mode / the other; left of 1 lazy mode needs less", loc="left")
    write_legend(figure, series_of(panels.values()), benchmark.limit)
    return figure


def curve_of(rows):
    figure = Figure(figsize=(5.4, 3.2), facecolor="white")
    axes = figure.subplots()
    axes.grid(color="#E4E4E4", linewidth=0.8)
    axes.plot([row.arena for row in rows], [row.ours for row in rows], "o-", color="#0072B2",
              markersize=5)
    axes.set_xlabel("memory of a step / with nothing computed again")
    axes.set_ylabel("time / with nothing computed again")
    axes.set_ylim(bottom=min(0.95, *(row.ours for row in rows)) - 0.02)
    axes.invert_xaxis()
    return figure


def save(make_figure, form):
    with matplotlib.rc_context(SETTINGS):
        out = io.BytesIO()
        # Without the date of the clock.
        metadata = {"Date": None} if form == "svg" else None
        make_figure().savefig(out, format=form, metadata=metadata, dpi=100, bbox_inches="tight",
                              pad_inches=0.12)
    return out.getvalue()


def draw(benchmark, rows, form="svg"):
    """The bytes of a chart; none if there is nothing to compare."""
    panels = benchmark.chart(rows)
    return save(lambda: figure_of(benchmark, panels), form) if panels else None


def draw_curve(benchmark, rows, form="svg"):
    """The bytes of the curve of time against memory; none if there are no points."""
    points = benchmark.points(rows)
    return save(lambda: curve_of(points), form) if points else None
