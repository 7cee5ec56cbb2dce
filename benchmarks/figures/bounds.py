"""What the figures must keep, and what of it they do: one table."""

import dataclasses
import re
from collections.abc import Callable

from figures.rows import amount, geometric_mean, ratio

MNIST = "MNIST CNN 28x28, batch 64"
MEMORY_BOUND = (
    r"^(layer norm, |softmax, 4096x8192|sum of |(compiled )?Adam, |dropout \+ residual \+ layer norm)"
)
ONE_LAUNCH = r"^(softmax, |layer norm, |bias \+ GELU \+ dropout|cross entropy|Adam, )"


@dataclasses.dataclass(frozen=True)
class Bound:
    measure: str
    must: float | Callable  # or of the results
    aim: float | Callable | None
    figures: Callable | None  # of the results, by case; None: no benchmark writes them
    unit: str = ""  # "": a ratio
    formulas: tuple = ("", "")  # of must and aim, where they are no plain numbers
    causes: tuple = ()  # why cases miss it: (regular expression of cases, cause)
    of_operators: bool = False

    def cause(self, case):
        return next((cause for cases, cause in self.causes if re.search(cases, case)), "")

    def text(self, value):
        return ratio(value) if self.unit == "" else amount(value, self.unit)

    def must_in(self, results):
        return self.must(results) if callable(self.must) else self.must

    def must_and_aim(self, results):
        """As texts."""
        texts = []
        for value, formula in zip((self.must, self.aim), self.formulas):
            if callable(value):
                value = value(results) if self.measured(results) else None
            texts.append(" = ".join(filter(None, [formula, self.text(value)])))
        return texts

    def measured(self, results):
        """By case; empty if there are no results."""
        figures = self.figures(results) if self.figures else {}
        return {case: figure for case, figure in figures.items() if figure is not None}

    def missed(self, results):
        """Cases over `must`, the worst first."""
        figures = self.measured(results)
        must = self.must_in(results) if figures else None
        worst_first = sorted(figures.items(), key=lambda each: -each[1])
        return [(case, figure, must) for case, figure in worst_first if figure > must]


def rows_of(results, bench, unit="us", pattern=""):
    return [
        row for row in results.get(bench, []) if row.unit == unit and re.search(pattern, row.case)
    ]


def tuned_torch(row):
    """PyTorch's own eager mode, the faster of its versions."""
    return min((row.peers[name] for name in ("torch", "torch 1.13") if name in row.peers),
               default=None)


def over(figure, other):
    return figure / other if figure is not None and other else None


def less(figure, other):
    return None if figure is None or other is None else figure - other


def memory_bound(results):
    return {row.case: row.over("limit") for row in rows_of(results, "kernels", "us", MEMORY_BOUND)}


def profiled(results):
    return {row.case: row.over("limit") for row in rows_of(results, "profile")}


def best_peer(bench):
    return lambda results: {row.case: row.over_best_peer() for row in rows_of(results, bench)}


def torch_eager(results):
    return {row.case: over(row.ours, tuned_torch(row)) for row in rows_of(results, "train_step")}


def torch_eager_mean(results):
    ratios = [each for each in torch_eager(results).values() if each is not None]
    return {"geometric mean": geometric_mean(ratios)}


def floor(results):
    return {row.case: row.over("limit") for row in rows_of(results, "train_step")}


def own_eager(results):
    return {row.case: row.over("eager") for row in rows_of(results, "train_step")}


def steps_over_eager(results):
    rows = rows_of(results, "train_step") + rows_of(results, "mnist_step")
    return {row.case: row.over("eager") for row in rows}


def steps_over_eager_mean(results):
    return {"geometric mean": geometric_mean(filter(None, steps_over_eager(results).values()))}


def eager_baseline(results):
    rows = rows_of(results, "kernels") + rows_of(results, "train_step")
    return {row.case: over(row.eager, tuned_torch(row)) for row in rows}


def cell(results, bench, unit, case, field="ours"):
    rows = [row for row in rows_of(results, bench, unit) if row.case == case]
    return getattr(rows[0], field) if rows else None


def copies(results):
    """Of the operators that memory bounds, where no cache holds their operands."""
    rows = rows_of(results, "ops", pattern=", 16777216$")
    return {row.case: row.over("limit") for row in rows if row.memory_bound}


def operators_eager(results):
    """Short ones without their recording."""
    return {row.case: over(row.kernel or row.ours, row.eager) for row in rows_of(results, "ops")}


def random_numbers(results):
    """Over the C++ library's generator."""
    rows = [row for row in rows_of(results, "ops") if "std::mt19937" in row.peers]
    return {row.case: over(row.ours, row.peers["std::mt19937"]) for row in rows}


def lookups(results):
    rows = [row for row in rows_of(results, "ops") if row.unchecked]
    return {row.case: over(row.kernel, row.unchecked) for row in rows}


def halves(type, pattern):
    """Operators on 16-bit floats over the same on f32."""

    def figures(results):
        single = {row.case: row.ours for row in rows_of(results, "ops")}
        return {
            row.case: over(row.ours,
                           row.single or single.get(row.case.replace(f" {type},", " f32,")))
            for row in rows_of(results, "ops", pattern=f" {type}, ({pattern})$")
        }

    return figures


def each_of(case):
    # A thousand of them, in us a call.
    def figures(results):
        time = cell(results, "overhead", "us", case)
        return {case: None if time is None else time / 1000}

    return figures


def replays(results):
    # A thousand of them, in us a call, and the kernels of all.
    kernels = {row.case: row.ours for row in rows_of(results, "overhead", "kernels")}
    rows = rows_of(results, "overhead", "us", "^1000 replays of ")
    return {row.case: (row.ours - 0.1 * kernels[row.case]) / 1000 for row in rows}


def kernels_replayed(results):
    """A kernel of a replay that has many."""
    rows = rows_of(results, "overhead", "us", r"^1000 replays of \d+ kernels")
    return {row.case: (row.ours / 1000 - 2) / int(row.case.split()[3]) for row in rows}


def sharing_kernels(results):
    """Of a replay whose kernels all threads share: beyond its part of one thread's time, each."""
    case = "100 replays of 4096 operators on 2048 numbers"
    time, alone = (cell(results, "overhead", "us", case + how) for how in ("", ", one thread"))
    threads = cell(results, "overhead", "us", case, "threads")
    kernels = cell(results, "overhead", "kernels", case)
    return {case: over(less(time, over(alone, threads)), kernels)}


def recording_share(results):
    return {row.case: row.ours for row in rows_of(results, "profile", "recording")}


def made_while_timed(results):
    rows = [row for bench in ("kernels", "train_step") for row in rows_of(results, bench)]
    return {row.case: row.made for row in rows}


def first_calls(results):
    """By case, milliseconds of the first call, cold and with kernels on disk, and of later ones."""
    whats = ("first call, cold", "first call, kernels on disk", "later calls")
    cases = [row.case.removesuffix(", later calls")
             for row in rows_of(results, "compile_time", "ms", ", later calls$")]
    return {case: [cell(results, "compile_time", "ms", f"{case}, {what}") for what in whats]
            for case in cases}


def warm_over_cold(results):
    return {case: over(warm, cold) for case, (cold, warm, _) in first_calls(results).items()
            if case.startswith(("MNIST", "transformer"))}


def loading(results):
    return {case: less(warm, later) for case, (_, warm, later) in first_calls(results).items()
            if case.endswith(" kernels")}


def compiling(case, unit="ms"):
    return lambda results: {case: cell(results, "compile_time", unit, case)}


def mnist(what, unit="ms", field="ours"):
    """The figure `what` of the MNIST step."""
    return lambda results: cell(results, "compile_time", unit, f"{MNIST}, {what}", field)


def of_mnist(figure):
    return lambda results: {MNIST: figure(results)}


def steady(factor, milliseconds):
    return lambda results: factor * mnist("later calls")(results) + milliseconds


def cold_over_eager(results):
    what = "first result, cold"
    return {MNIST: over(mnist(what)(results), mnist(what, field="eager")(results))}


def growth(results):
    """Of what the first call takes longer than later ones."""

    def compile_time(nodes):
        first, later = (
            cell(results, "compile_time", "ms", f"graph of {nodes} operators, {what}")
            for what in ("first call, cold", "later calls")
        )
        return less(first, later)

    return {"20000 / 10000 operators": over(compile_time(20000), compile_time(10000))}


def launches(results):
    return {row.case: row.ours for row in rows_of(results, "kernels", "kernels", ONE_LAUNCH)}


def bytes_moved(results):
    return {row.case: row.over("limit") for row in rows_of(results, "kernels", "bytes", ONE_LAUNCH)}


def memory(figure):
    """By case, figure(row) of the steps whose memory is measured."""
    return lambda results: {row.case: figure(row) for row in rows_of(results, "memory", "bytes")}


def within_half(results):
    rows = rows_of(results, "memory", "x", ", budget 0.50$")
    return {row.case: row.ours for row in rows}


def memory_alone(unit, pattern):
    """By case, what a row of the memory benchmark that is no step says."""
    return lambda results: {row.case: row.ours for row in rows_of(results, "memory", unit, pattern)}


GPU = "gpu-h200"
# More than its caches hold.
GPU_CHAINS = r"2\^2[46]$|^(sum of |softmax, )16384x4096|^softmax.* 4096x8192"
GPU_STEPS = r"^(MLP|MNIST|residual|ResNet|transformer)"


def on_gpu(pattern, name):
    """Over what `name` took, where it was timed."""
    return lambda results: {row.case: row.over(name) for row in rows_of(results, GPU, "us", pattern)}


def replays_on_gpu(results):
    # Two kernels a step.
    rows = rows_of(results, GPU, "us", "^a replay of ")
    return {row.case: (row.ours - 10) / (2 * int(row.case.split()[3])) for row in rows}


# ---- why bounds are missed ----

ON_GPU = (
    (r"^tanh", "arithmetic: 75 instructions an element, with the CPU's bits"),
    (r"^softmax", "a row is added up in the CPU's order: by 32 threads, each 128 elements"),
    (r"^sum of 16384x4096$", "the CPU's order of its parts"),
)

COPIES = (
    (r"^(scatter|gather)", "lines in no order: memory gives lines of 256 bytes at a third of the"
                           " rate of a copy"),
    (r"^add a transpose", "the matrix is read by rows and by columns, which the copy counts once"),
    (r"^transpose", "whole lines are read and written, but in blocks, from one page to the next"),
    (r"rows of (4|32)", "some lanes of a vector each: arithmetic, not memory"),
    (r"^add a row b?f16",
     "32 MB each, a copy of which stays half in the last cache; sums are rounded to 16 bits"),
    (r"^cumsum", "rows lie a power of two apart, in the same sets of the caches"),
    (r"^(sum|amax|amin) axis 1",
     "a few lines of each of several rows at a time, where memory gives whole rows faster"),
    (r"^(negative|absolute|sign) u8", "32 MB in all, a copy of which stays half in the last cache"),
    (r"^sqrt", "arithmetic: as long on f32"),
    (r"^pad (edge|symmetric)", "written once for each padded dimension, of which there are two"),
    (r"^batchnorm", "the images are read three times: for the mean, the variance and the result"),
    (r"^(full|arange|iota|identity|tile|astype from (b8|u8) to f32|astype from b?f16 to [fs]32"
     r"|astype from f32 to [fs]64)",
     "more is written than read: memory takes writes alone at 0.7 of the rate of a copy, and a bare"
     " loop that fills takes 1.4 of it"),
    (r"^arg(max|min) b?f16",
     "two sweeps over each line, that for the place with a widening, two comparisons and a minimum"
     " an element: in the caches they take 1.2 of what reading 32 MB does"),
    (r"^roll b?f16",
     "each element is looked up at a place that is computed, in 64 bits: from the caches that takes"
     " as long as the copy"),
    (r"^(var|std)", "two sweeps over each line: the mean, then the squares"),
    (r"^(clip|power 2|pad|copy of every second) b?f16",
     "32 MB each, a copy of which stays half in the last cache; elements are widened, or move by"
     " two bytes"),
)
HALVES = (
    (r"^power\b.*, 1024$", "to widen is an operator too, recorded in some 70 ns"),
    (r"^sum\b.*, 1024$", "a call of two operators takes 50 ns longer to record than one operator"),
    (r"^scatter-add", "each sum is rounded to 16 bits"),
    (r"^cumsum .*bf16", "rounding to bf16 takes six instructions"),
    (r"^(exp|log|log1p|sin|cos|tanh|erf|sigmoid|power|mod|sqrt|div|add|sub|mul|clip)\b",
     "the arithmetic of f32, with widening before and rounding behind it"),
    (r"^(sum|mean|amax|amin|any|all|countNonzero|norm|var|std|argmax|isnan|isinf|neq|eq)\b",
     "what lies in the first caches saves no time by being short, and is widened: a bare sum of"
     " 4,096 takes 1.2 of that of f32"),
    (r"^(pool2d|conv2d|matmul|attention)",
     "widened block by block, all f16 and what of bf16 the library does not take"),
    (r", 1024$", "as long as its launch"),
)
CHAINS = (
    (r"^softmax", "an exponential an element"),
    (r"dropout",
     "a random number an element: ten rounds of products of 64 bits, which keep the vector units"
     " busy; unrolled, with their keys computed once, they take 0.9 of the time on an Intel Xeon, and"
     " 3.5 times as long to compile"),
    (r"^sum", "16 MB in the last cache: on which pages they lie moves it by a tenth and more"),
    (r"^Adam", "recording a step takes longer than its kernel; compiled, it is not recorded"),
    (r"^compiled Adam|^layer norm, ", "on a machine whose cache holds what the copy moves, 25 MB: it"
     " takes what the cache takes, which is less than a square root or two sums one behind the"
     " other; written by hand, layer norm takes as long, with one, two or four rows at a time"),
)
PEERS = (
    (r"^sum", "16 MB in the last cache, as fast as PyTorch's: on which pages they lie moves either by"
     " a tenth and more"),
)
STEPS = (
    (r"", "the floor itself, library calls alone, is more than 0.75 of PyTorch's time"),
)
EAGER = (
    (r"^Adam", "a launch a parameter; PyTorch has one for all"),
    (r"^layer norm and", "interpreted, one operator or two a sweep of a tile in the first cache; what"
     " the weight's gradient sums up is written and read again"),
    (r"^sum", "16 MB in the last cache: on which pages they lie moves either by a tenth and more"),
    (r"^(bias|softmax|layer norm|cross)",
     "interpreted: its operators, one or two at a time, sweep tiles in the first cache; the"
     " compiler's kernels, which eager mode does without, take 0.3 to 0.7 of the time on an Intel"
     " Xeon"),
    (r"^forces", "interpreted: all pairs are written and read in tiles, an operator at a time"),
    (r"^transformer", "GELU is written in operators there, which eager mode runs one by one"),
)
RESIDENT = (
    (r"^each fifth",
     "beside the 8 kB of a tensor, 1.1 kB of the heap are its objects, and the heap keeps a page"
     " while one on it lives: 0.66 of what is alive"),
)
HELD = (
    (r"", "what the backward pass reads is most of it, in all modes; a budget takes less"),
)
OPERATORS = (
    (r"axis 1",
     "a few lines of each of several rows at a time, in more instructions than eager mode takes for"
     " one of each of four"),
)
WARM = (
    (r"", "a first process waits for no kernel that takes long: it runs code that compiles at once"
     " while others are made, so that most of its first call is planning and the step itself"),
)
OWN = (
    (r"", "library calls, the same in both modes, are most of a step"),
)

BOUNDS = (
    Bound("memory-bound kernels: lazy / copy of the same bytes", 1.18, 1.05, memory_bound,
          causes=CHAINS),
    Bound("kernels: lazy / best peer, each case", 1.0, 0.8, best_peer("kernels"), causes=PEERS),
    Bound("train_step: lazy / PyTorch eager, tuned", 0.75, 0.6, torch_eager_mean, causes=STEPS),
    Bound("train_step: lazy / PyTorch eager, tuned, any case", 0.95, 0.8, torch_eager),
    Bound("train_step: lazy / best peer, each case", 1.0, 0.8, best_peer("train_step")),
    Bound("train_step: lazy / own eager, each case", 0.8, 0.6, own_eager, causes=OWN),
    Bound("training steps: lazy / own eager", 1 / 1.3, None, steps_over_eager_mean),
    Bound("training steps: lazy / own eager, any case", 1.05, None, steps_over_eager),
    Bound("kernels and train_step: own eager / PyTorch eager, tuned", 1.2, 1.0, eager_baseline,
          causes=EAGER),
    Bound("train_step / its floor: library calls alone + plan bytes / copy", 1.15, 1.08, floor),
    Bound("recording an operator", 0.3, 0.15, each_of("1000 additions that nothing reads"), "us"),
    Bound("recording an operator, finding its plan by hash and equality, and running it", 0.3, None,
          each_of("a chain of 1000 additions, read"), "us"),
    Bound("noting the user's line", 0.02, None, each_of("1000 call sites"), "us"),
    Bound("training step under a profile / without", 1.03, None, profiled),
    Bound("replay of a captured plan, less 100 ns a kernel", 2, 1, replays, "us"),
    Bound("replay of a captured plan: each of many kernels", 0.1, None, kernels_replayed, "us"),
    Bound("replay of a captured plan: each of many kernels that all threads share", 1, None,
          sharing_kernels, "us"),
    Bound("training steps: recording / step", 0.1, None, recording_share),
    Bound("kernels and train_step: made while timed", 0, None, made_while_timed, "count"),
    Bound("compiling a kernel: median", 5, 2.5, compiling("a kernel, median"), "ms"),
    Bound("compiling a kernel: p95", 15, 8, compiling("a kernel, 95th percentile"), "ms"),
    Bound("second process, MNIST step: kernels compiled", 0, 0,
          of_mnist(mnist("kernels compiled, second run", "count")), "count"),
    Bound("second process, MNIST step: LLVM target machines made", 0, 0,
          of_mnist(mnist("LLVM target machines, second run", "count")), "count"),
    Bound("second process, MNIST step: first step", steady(1.3, 100), steady(1.1, 20),
          of_mnist(mnist("first call, kernels on disk")), "ms",
          ("1.3 x steady step + 100 ms", "1.1 x steady step + 20 ms")),
    Bound("second process: first call / first call of the first process", 0.1, None,
          warm_over_cold, causes=WARM),
    Bound("second process: plan and kernels loaded", 50, None, loading, "ms"),
    Bound("first result of a cold MNIST step / a cold eager step", 1.5, 1.1, cold_over_eager),
    Bound("30 batch sizes of 1 to 4,096 with primes: kernels compiled after the first of each"
          " class", 0, 0, compiling("30 batch sizes, kernels compiled", "count"), "count"),
    Bound("1,000 sizes: first call with the last / with the tenth", 1.2, None,
          compiling("1000 sizes, first call with the last / with the tenth", "x")),
    Bound("compile time 20,000 nodes / 10,000 nodes", 2.2, 2.0, growth),
    Bound("softmax, layer norm, bias + GELU + dropout, cross entropy, Adam: launches", 1, None,
          launches, "kernels"),
    Bound("the same: bytes moved / inputs + outputs", 1.05, None, bytes_moved),
    Bound("on an H200, chains beyond its caches: lazy / copy of the same bytes", 1.11, None,
          on_gpu(GPU_CHAINS, "limit"), causes=ON_GPU),
    Bound("on an H200, training steps: lazy / PyTorch eager", 0.8, None,
          on_gpu(GPU_STEPS, "torch")),
    Bound("on an H200, training steps: lazy / torch.compile", 1.0, None,
          on_gpu(GPU_STEPS, "torch compile")),
    Bound("on an H200, a replay less 10 us: each kernel", 2, None, replays_on_gpu, "us"),
    Bound("memory of a step: arena / bound", 1.05, None,
          memory(lambda row: over(row.arena, row.bound))),
    Bound("memory of a step: planning", 50, None, memory(lambda row: row.plan_ms), "ms"),
    Bound("memory: planning of thousands of buffers", 50, None,
          memory_alone("ms", "^planning"), "ms"),
    Bound("memory of a step of an optimizer / parameters, gradients and state", 1.05, None,
          memory_alone("peak / live", "")),
    Bound("memory that is resident / alive, of tensors that grow", 1.25, None,
          memory_alone("resident / live", ""), causes=RESIDENT),
    Bound("memory of a step: lazy / own eager", 0.75, None, memory(lambda row: row.over("eager")),
          causes=HELD),
    Bound("memory of a step: lazy / PyTorch", 0.9, None,
          memory(lambda row: over(row.ours, tuned_torch(row))), causes=HELD),
    Bound("half of a step's memory: time", 1.25, None, within_half),
    Bound("operators that memory bounds, 2^24 elements: lazy / copy of the same bytes", 1.18, None,
          copies, causes=COPIES, of_operators=True),
    Bound("operators: lazy without recording / own eager", 1.05, None, operators_eager,
          causes=OPERATORS, of_operators=True),
    Bound("random numbers: lazy / std::mt19937, one thread", 0.5, None, random_numbers,
          of_operators=True),
    Bound("lookups: kernel / the same without checks of indices", 1.05, None, lookups,
          of_operators=True),
    Bound("operators on f16 / on f32, up to 2^20 elements", 1.2, None,
          halves("f16", "1024|65536|1048576"), causes=HALVES, of_operators=True),
    Bound("operators on f16 / on f32, 2^24 elements", 1.0, None,
          halves("f16", "16777216"), causes=HALVES, of_operators=True),
    Bound("operators on bf16 / on f32", 1.0, None,
          halves("bf16", "1024|65536|1048576|16777216"), causes=HALVES, of_operators=True),
)
