"""Tests that run on every backend: one program, linked once, and one test for each backend."""

load("//third_party/cuda:requirement.bzl", "NEEDS_CUDA")

# Settings that stand together, with commas, run in turn in one test, which compiles kernels once.
_BACKENDS = [
    ("lazy", "cpu,poison"),
    ("eager", "cpu"),
    ("eager", "ref"),
]

# Also the tile interpreter alone, and recording without a compiler.
_NOT_COMPILED = [
    ("lazy", "tier0"),
    ("lazy", "ref"),
]
ALL_BACKENDS = _BACKENDS + _NOT_COMPILED

# Also plans as by default, every buffer poisoned or at the edge of its pages, and code for AVX2: what
# covers the op table.
OP_SUITE_BACKENDS = _NOT_COMPILED + [
    ("lazy", "cpu,repeated,poison,guard"),
    ("lazy", "v3-guard-begin"),
    ("eager", "cpu,poison,guard"),
    ("eager", "v3-guard-begin"),
    ("eager", "ref"),
]

# What tests of the recorder itself run on: each setting begins without kernels.
LAZY_BACKENDS = [
    ("lazy", "cpu"),
    ("lazy", "poison"),
]

# A GPU that is none (tests/runtime/cuda/FakeGpu.h), where there are CUDA's headers: each kernel takes a
# third of a second to compile.
FAKE_GPU = [("lazy", "fake-gpu")]

def fl_backend_test(name, srcs, deps = [], data = [], size = "small", backends = _BACKENDS, **kwargs):
    """A GoogleTest program on //fl, and the tests <name>_<backend>_<devices>; <name> is all of them."""
    program = name + "_program"
    gpu = []
    if FAKE_GPU[0] in backends:
        gpu = select({
            "//third_party/cuda:enabled": ["//tests/runtime/cuda:fake_gpu_at_start"],
            "//conditions:default": [],
        })
    native.cc_binary(
        name = program,
        testonly = True,
        srcs = srcs,
        deps = deps + [
            "//tests:no_fallbacks",
            "//fl",
            "@gtest//:gtest_main",
        ] + gpu,
    )
    tests = []
    for backend, devices in backends:
        test = "_".join([name, backend, devices.replace(",", "-")])
        native.sh_test(
            name = test,
            size = size,
            srcs = ["//tests:run_on_backend.sh"],
            args = [
                backend,
                devices,
                "$(location :%s)" % program,
            ],
            data = data + [":" + program],
            # What --config=poison leaves out: settings of memory and of the processor, what has
            # poison itself or a test with it beside it, and kernels that take long to compile.
            tags = ["poisoned"] if devices != "cpu" or (backend, "poison") in backends else [],
            target_compatible_with = NEEDS_CUDA if devices == "fake-gpu" else [],
            **kwargs
        )
        tests.append(":" + test)
    native.test_suite(
        name = name,
        tests = tests,
    )
