"""Tests that run on every backend: one program, linked once, and one test for each backend."""

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

# Also code for AVX2, and every buffer at the edge of its pages or poisoned: what covers the op
# table.
OP_SUITE_BACKENDS = ALL_BACKENDS + [("eager", "poison")] + [
    (backend, setting)
    for backend in ["lazy", "eager"]
    for setting in ["v3", "guard", "guard-begin"]
]

# What tests of the recorder itself run on.
LAZY_BACKENDS = [
    ("lazy", "cpu"),
    ("lazy", "poison"),
]

def fl_backend_test(name, srcs, deps = [], data = [], size = "small", backends = _BACKENDS, **kwargs):
    """A GoogleTest program on //fl, and the tests <name>_<backend>_<device>; <name> is all of them."""
    program = name + "_program"
    native.cc_binary(
        name = program,
        testonly = True,
        srcs = srcs,
        deps = deps + [
            "//fl",
            "@gtest//:gtest_main",
        ],
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
            **kwargs
        )
        tests.append(":" + test)
    native.test_suite(
        name = name,
        tests = tests,
    )
