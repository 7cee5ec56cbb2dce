"""Tests that run on every backend: one program, linked once, and one test for each backend."""

load("//third_party/cuda:requirement.bzl", "NEEDS_CUDA")

_BACKENDS = [
    ("lazy", "cpu"),
    ("lazy", "poison"),
    ("eager", "cpu"),
    ("eager", "ref"),
]

# Also the tile interpreter alone, and recording without a compiler.
ALL_BACKENDS = _BACKENDS + [
    ("lazy", "tier0"),
    ("lazy", "ref"),
]

# Also every buffer poisoned or at the edge of its pages, and code for AVX2: what covers the op
# table.
OP_SUITE_BACKENDS = ALL_BACKENDS + [("eager", "poison")] + [
    (backend, setting)
    for backend in ["lazy", "eager"]
    for setting in ["guard", "v3-guard-begin"]
]

# What tests of the recorder itself run on.
LAZY_BACKENDS = [
    ("lazy", "cpu"),
    ("lazy", "poison"),
]

# A GPU that is none (tests/runtime/cuda/FakeGpu.h), where there are CUDA's headers: each kernel takes a
# third of a second to compile.
FAKE_GPU = [("lazy", "fake-gpu")]

def fl_backend_test(name, srcs, deps = [], data = [], size = "small", backends = _BACKENDS, **kwargs):
    """A GoogleTest program on //fl, and the tests <name>_<backend>_<device>; <name> is all of them."""
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
            "//fl",
            "@gtest//:gtest_main",
        ] + gpu,
    )
    tests = []
    for backend, device in backends:
        test = "_".join([name, backend, device])
        native.sh_test(
            name = test,
            size = size,
            srcs = ["//tests:run_on_backend.sh"],
            args = [
                backend,
                device,
                "$(location :%s)" % program,
            ],
            data = data + [":" + program],
            # What --config=poison leaves out: settings of memory and of the processor, and what has
            # a test with poison beside it.
            tags = ["poisoned"] if device not in ["cpu", "fake-gpu"] or
                                   (device == "cpu" and (backend, "poison") in backends) else [],
            target_compatible_with = NEEDS_CUDA if device == "fake-gpu" else [],
            **kwargs
        )
        tests.append(":" + test)
    native.test_suite(
        name = name,
        tests = tests,
    )
