"""Golden tests: one test for each .flir file, run by its own RUN line and checked by FileCheck."""

def golden_tests(files):
    """A test for each file. Its first line reads `// RUN: <subcommand> <flags>`.

    Args:
      files: .flir files of this package.
    """
    for file in files:
        native.sh_test(
            name = file.replace(".flir", "").replace("/", "_") + "_golden",
            size = "small",
            srcs = ["//tests:golden.sh"],
            args = ["$(location //tools:fl)", "$(location %s)" % file],
            data = [file, "//tools:fl"],
        )
