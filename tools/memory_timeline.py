#!/usr/bin/python3
"""Draws what `fl memory` prints: the buffers of a plan as boxes, a step of time wide and as high as
their bytes, where they lie in the arena; what is alive at each step; and the bound.

usage: tools/memory_timeline.py PLAN.json TIMELINE.svg

The first line names Debian's python, which has the matplotlib that setup.sh installs.
"""
import json
import sys

try:
    import matplotlib
    from matplotlib.collections import PatchCollection
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle
except ImportError as error:
    sys.exit(f"memory_timeline.py: {error}; setup.sh installs what /usr/bin/python3 needs")

UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "bytes"))
COLOURS = ("#0072B2", "#56B4E9", "#009E73", "#E69F00", "#CC79A7", "#D55E00", "#999999")
NAMED = len(COLOURS) - 1  # operators with a colour of their own
SETTINGS = {"svg.hashsalt": "fl", "svg.fonttype": "none", "font.size": 9}


def unit_of(size):
    return next(each for each in UNITS if size >= each[0] or each[0] == 1)


def largest_names(buffers):
    areas = {}
    for buffer in buffers:
        steps = buffer["last"] - buffer["first"] + 1
        areas[buffer["name"]] = areas.get(buffer["name"], 0) + buffer["bytes"] * steps
    return sorted(areas, key=lambda name: (-areas[name], name))[:NAMED]


def draw(plan, path):
    scale, unit = unit_of(plan["arena"])
    names = largest_names(plan["buffers"])
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for name, colour in zip([*names, None], COLOURS):
        boxes = [
            Rectangle(
                (each["first"], each["offset"] / scale),
                each["last"] + 1 - each["first"],
                each["bytes"] / scale,
            )
            for each in plan["buffers"]
            if (each["name"] if each["name"] in names else None) == name
        ]
        if boxes:
            axes.add_collection(
                PatchCollection(boxes, facecolor=colour, edgecolor="white", linewidth=0.4)
            )
            axes.plot([], [], "s", color=colour, label=name or "others")
    alive = [step["alive"] / scale for step in plan["steps"]]
    axes.stairs(alive, color="#222222", linewidth=1, label="alive")
    axes.axhline(plan["bound"] / scale, color="#B00020", linestyle="--", label="bound")
    recorded = f" as recorded {plan['recorded'] / scale:.4g}," if "recorded" in plan else ""
    axes.set(
        xlim=(0, max(len(alive), 1)),
        ylim=(0, max(plan["arena"], 1) * 1.05 / scale),
        xlabel="step",
        ylabel=unit,
        title=f"arena {plan['arena'] / scale:.4g} {unit}, bound {plan['bound'] / scale:.4g}"
        f" (ratio {plan['ratio']:.3f}),{recorded} unplanned {plan['unplanned'] / scale:.4g}",
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    figure.savefig(path, metadata={"Date": None})


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    _, source, drawing = sys.argv
    try:
        with open(source, encoding="utf-8") as file:
            plan = json.load(file)
        with matplotlib.rc_context(SETTINGS):
            draw(plan, drawing)
    except OSError as error:
        sys.exit(f"memory_timeline.py: {error.filename}: {error.strerror}")
    except (AttributeError, KeyError, TypeError, json.JSONDecodeError, UnicodeDecodeError):
        sys.exit(f"memory_timeline.py: {source}: is not what `fl memory` prints")
    except ValueError as error:
        sys.exit(f"memory_timeline.py: {drawing}: {error}")


if __name__ == "__main__":
    main()
