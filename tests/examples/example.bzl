"""Examples for researchers: they run, print what they should, and are short."""

def example_test(example, lines, prints):
    """`//examples/EXAMPLE` prints what matches an extended regular expression.

    Args:
      example: the folder below examples/.
      lines: its program has fewer.
      prints: of the whole output.
    """
    program = "//examples/" + example
    native.sh_test(
        name = example + "_test",
        size = "small",
        srcs = ["example_test.sh"],
        args = ["$(location %s)" % program, "$(location %s:Main.cpp)" % program, str(lines), "'%s'" % prints],
        data = [program, program + ":Main.cpp"],
    )
