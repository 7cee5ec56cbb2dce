"""The C++ program that stands in a document, as it stands there."""

def documented_program(name, document):
    native.genrule(
        name = name + "_source",
        srcs = [document],
        outs = [name + ".cpp"],
        cmd = "sed -n '/^```cpp$$/,/^```$$/p' $< | sed '/^```/d' > $@",
    )
    native.cc_binary(
        name = name,
        srcs = [name + ".cpp"],
        deps = ["//fl", "//fl:research"],
    )
