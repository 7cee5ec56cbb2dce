"""The benchmarks whose results docs/performance.md shows, in its order."""

import dataclasses
import re

COUNTS = {"us": "time", "kernels": "kernels launched", "bytes": "bytes moved"}
TIME = {"us": "time"}
MEMORY = {"bytes": "memory of a step"}


@dataclasses.dataclass(frozen=True)
class Benchmark:
    name: str  # of its results: benchmarks/results/NAME.json
    title: str
    about: str  # what a call is, and what bounds it
    panels: dict  # of the chart: by the unit of rows, or by the end of their cases, a title
    target: str = ""  # where it is not the name
    arguments: tuple = ()
    peers: bool = False  # takes --peers
    needs_peers: bool = False  # tells nothing without them
    limit: str = "limit"  # what the limit is
    drawn: str = ""  # regular expression of the cases in the chart, without what it matches
    folded: bool = False  # the table is long, and opens at a click
    elsewhere: bool = False  # needs another machine than the others
    budgets: str = ""  # regular expression of the cases that are points of a curve, memory and time

    def command(self, *more):
        arguments = " ".join([*self.arguments, *more])
        target = f"bazel run //benchmarks:{self.target or self.name}"
        return f"{target} -- {arguments}" if arguments else target

    def place(self, row):
        """(panel, case) of a row in the chart; None if it has none."""
        for end, title in self.panels.items():
            if row.unit == end:
                return title, row.case
            case = row.case.removesuffix(f", {end}")
            if case != row.case and re.search(self.drawn, case):
                return title, re.sub(self.drawn, "", case)
        return None

    def points(self, rows):
        """The rows of the curve."""
        return [row for row in rows if self.budgets and re.search(self.budgets, row.case)]

    def chart(self, rows):
        """{panel: {case: row}} in the order of `panels`, of those that compare something."""
        chart = {title: {} for title in self.panels.values()}
        for row in rows:
            place = self.place(row)
            if place and row.ours > 0 and row.times():
                chart[place[0]][place[1]] = row
        return {title: cases for title, cases in chart.items() if cases}


SUITE = (
    Benchmark(
        "train_step",
        "Training steps",
        "One step: forward, backward, Adam, reading the loss. The floor is the library calls of its"
        " plan, each timed alone, and a copy of the bytes that its kernels read and write.",
        COUNTS,
        peers=True,
        limit="floor",
    ),
    Benchmark(
        "mnist_step",
        "Training steps of apps/mnist",
        "The same for the digits of `apps/mnist`, 8x8, and for images of 28x28.",
        COUNTS,
        peers=True,
        limit="floor",
    ),
    Benchmark(
        "kernels",
        "Fused chains",
        "Chains of operators that are one kernel each, with gradients of weights two. The limit is"
        " a copy of the bytes that they read and write. Exponentials bind softmax, error functions"
        " GELU, random numbers dropout; the others are bound by memory.",
        COUNTS,
        peers=True,
        limit="copy",
    ),
    Benchmark(
        "memory",
        "Memory of training steps",
        "The most bytes that a step holds beyond those that live between steps: activations,"
        " gradients, results. PyTorch's are the allocations that its profiler counts. The arena holds"
        " the temporaries of the step's plan; the bound is what is alive at once in its order; beside"
        " them the same as recorded, and all temporaries without a plan. The curve is a step within"
        " budgets, in parts of what it takes where nothing is computed again; without a budget as much"
        " is as takes hardly any time.",
        MEMORY,
        peers=True,
        budgets=r", (budget [\d.]+|no budget)$",
    ),
    Benchmark(
        "gemm",
        "Matrix products",
        "Products in f32, rows x columns x what is summed. The limit is the rate of the fastest"
        " 1024x1024 product.",
        TIME,
        peers=True,
    ),
    Benchmark(
        "overhead",
        "Overhead",
        "Operators on 16 elements, a thousand a call: microseconds a call are nanoseconds each.",
        TIME,
        peers=True,
    ),
    Benchmark(
        "profile",
        "Profiling",
        "Training steps under a profile (`FL_PROFILE`), in turns with the same without one.",
        {},
        limit="without",
    ),
    Benchmark(
        "compile_time",
        "First results",
        "Each call in a process of its own: with nothing kept, with the kernels of an earlier"
        " process on disk, and in eager mode. A first result includes making model and data. Then"
        " what kernels take to compile, one at a time: those of four training steps, the chains"
        " above and the operators; and what those of the chains take that are the first of their"
        " process, by our emitter and by MLIR's pass manager (`FL_EMITTER=mlir fl run`). Batch sizes"
        " are 1 to 4096, with primes; those of 1, of up to 16 and larger ones, within the caches and"
        " beyond, are the classes of kernels, of which the first are 1, 2, 17 and 4096. Peers call"
        " in a process of their own, too: JAX and torch.compile compile in their first call, without"
        " a cache of theirs on disk.",
        {
            "first result, cold": "first result, cold",
            "first call, cold": "first call, cold",
            "first call, kernels on disk": "first call, kernels on disk",
            "later calls": "later calls",
        },
        peers=True,
    ),
    Benchmark(
        "attention",
        "Attention",
        "`fl::multiheadAttention`, 8 heads of 64 features, one f32 sequence of so many steps,"
        " beside the same written with `matmul` and `softmax`, which holds all scores.",
        {"forward": "forward", "with backward": "with backward"},
    ),
    Benchmark(
        "ops",
        "Operators",
        "Every operator; the chart has those on f32. The limit is a copy of the bytes of operands"
        " and results. What crosses memory (`transpose`), looks up where neighbours are (`roll`),"
        " scatters or sums along rows is slower than it.",
        {
            "1024": "2^10 elements",
            "65536": "2^16 elements",
            "1048576": "2^20 elements",
            "16777216": "2^24 elements",
        },
        limit="copy",
        drawn="( to)? f32$",
        folded=True,
    ),
    *(
        Benchmark(
            f"{target}_avx2",
            f"{title} on AVX2",
            f"[{title}](#{title.lower().replace(' ', '-')}) on a processor without AVX-512.",
            panels,
            target=target,
            arguments=arguments,
            peers=True,
            limit=limit,
            elsewhere=True,
        )
        for target, title, panels, arguments, limit in (
            ("train_step", "Training steps", TIME, (), "floor"),
            ("kernels", "Fused chains", TIME, (), "copy"),
            ("gemm", "Matrix products", TIME, (), "limit"),
            ("memory", "Memory of training steps", MEMORY,
             ("--noalone", "--nobudgets", "--nogrowth"), "limit"),
        )
    ),
    Benchmark(
        "gpu-h200",
        "On a GPU",
        "Kernels, products and training steps on one H200, f32 without TF32, by CUDA events; packed by"
        " `tools/gpu_bundle.sh` ([GPUs](cuda.md)). The limit is a copy of the bytes that a chain reads"
        " and writes, or the rate of products. Chains of less than 50 MB stay in the GPU's cache, and"
        " a launch takes 2 us. torch.compile replays CUDA graphs.",
        TIME,
        target="gpu",
        peers=True,
        elsewhere=True,
    ),
    Benchmark(
        "ops_peers",
        "Operators beside their peers",
        "Every operator on f32. PyTorch and MLX call theirs, JAX compiles each case; every call is"
        " waited for.",
        {"1048576": "2^20 elements"},
        target="ops",
        arguments=("--sizes=1048576", "--filter=' f32$'"),
        peers=True,
        needs_peers=True,
        limit="copy",
        drawn="( to)? f32$",
        folded=True,
    ),
)
