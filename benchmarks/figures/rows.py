"""Results as the benchmarks write them, an object a line (benchmarks/Report.h), and how their
numbers are written."""

import dataclasses
import json
import math
import re

# By the names that benchmarks give them; "limit" and "eager" stand beside the peers in charts.
NAMES = {
    "eager": "eager",
    "torch 1.13": "PyTorch 1.13",
    "torch": "PyTorch",
    "torch compile": "torch.compile",
    "jax": "JAX",
    "mlx": "MLX",
    "std::mt19937": "std::mt19937",
    "plain": "matmul, softmax",
    "plain eager": "matmul, softmax, eager",
    "limit": "limit",
}
MICROSECONDS = {"us": 1.0, "ms": 1e3}
SCALES = ((1e6, "s"), (1e3, "ms"), (1.0, "us"), (1e-3, "ns"))


@dataclasses.dataclass(frozen=True)
class Row:
    bench: str
    case: str
    unit: str
    threads: int
    ours: float | None  # None of what was refused
    eager: float | None
    limit: float | None
    peers: dict
    kernel: float | None = None  # of an operator: lazy, without recording
    unchecked: float | None = None  # the same kernel for indices that nobody checks
    single: float | None = None  # the same on f32, timed in turns
    spread: float | None = None  # of ours, the middle half of the blocks over the median
    made: int = 0  # kernels and plans while it was timed
    memory_bound: bool = False
    buffers: int | None = None  # of a plan: how many were planned
    # Of a plan: bytes of its arena, the least that any packing of its order takes, that of the
    # recorded order, of all temporaries; and milliseconds of planning. Of a step within a budget the
    # arena is in units of that without one.
    arena: float | None = None
    bound: float | None = None
    recorded: float | None = None
    unplanned: float | None = None
    plan_ms: float | None = None
    # Of a training step, in its unit: recording and running a later one, planning and compiling
    # the first one.
    record: float | None = None
    run: float | None = None
    plan: float | None = None
    compile: float | None = None

    def times(self):
        """What ours is compared with, in the order of NAMES."""
        times = {"eager": self.eager, **self.peers, "limit": self.limit}
        return {name: times[name] for name in NAMES if times.get(name)}

    def over(self, name):
        """Ours over the other's; None if there is none."""
        time = self.times().get(name)
        return self.ours / time if time else None

    def best_peer(self):
        return min(self.peers, key=self.peers.get, default=None)

    def over_best_peer(self):
        return self.over(self.best_peer())


def read(path):
    """The rows of a file; none if there is no such file."""
    if not path.exists():
        return []
    rows = [Row(**json.loads(line)) for line in path.read_text().splitlines()]
    unknown = {name for row in rows for name in row.peers} - NAMES.keys()
    if unknown:
        raise ValueError(f"{path}: figures/rows.py has no name for {', '.join(sorted(unknown))}")
    return rows


def geometric_mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def three_digits(value):
    if value == 0 or value >= 100:
        return f"{value:.0f}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(value)))}f}"


def ratio(value):
    if value is None:
        return ""
    if value >= 99.995 or value == 0:
        return f"{value:.0f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def amount(value, unit):
    """With its unit, of which times choose theirs."""
    if value is None:
        return ""
    if unit in MICROSECONDS:
        time = value * MICROSECONDS[unit]
        scale, name = next((each for each in SCALES if time >= each[0]), SCALES[-1])
        return f"{three_digits(time / scale)} {name}"
    if unit == "bytes":
        return f"{three_digits(value / 1e6)} MB"
    if unit == "x":
        return f"{ratio(value)} x"
    return f"{value:.0f}"


def table(header, rows, texts=1):
    """In Markdown; all columns but the first `texts` are numbers. `rows` are lists of texts."""
    escaped = ([cell.replace("|", "\\|") for cell in row] for row in [header, *rows])
    lines = ["| " + " | ".join(row) + " |" for row in escaped]
    lines.insert(1, "|---" * texts + "|--:" * (len(header) - texts) + "|")
    return re.sub(" +", " ", "\n".join(lines)) + "\n"
