"""An aspect that compiles each header of a library by itself.

It shows that the header includes what it uses, and lets layering_check look into it. Clang checks
the includes of the library that it compiles, so a header that no source file of its own library
includes would go unchecked.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _headers(rule):
    return [
        f
        for target in rule.attr.hdrs + rule.attr.srcs
        for f in target.files.to_list()
        if f.extension == "h"
    ]

def _impl(target, ctx):
    if ctx.rule.kind != "cc_library" or target.label.workspace_name:
        return []
    headers = _headers(ctx.rule)
    sources = []
    for header in headers:
        source = ctx.actions.declare_file("%s.headers/%s.cpp" % (ctx.label.name, header.short_path))
        ctx.actions.write(source, '#include "%s"\n' % header.short_path)
        sources.append(source)
    toolchain = find_cpp_toolchain(ctx)
    _, outputs = cc_common.compile(
        actions = ctx.actions,
        cc_toolchain = toolchain,
        compilation_contexts = [d[CcInfo].compilation_context for d in ctx.rule.attr.deps],
        feature_configuration = cc_common.configure_features(
            ctx = ctx,
            cc_toolchain = toolchain,
            requested_features = ctx.features,
            unsupported_features = ctx.disabled_features,
        ),
        name = ctx.label.name + ".headers",
        # Headers of this module, in layering_check's terms: their includes are what is checked.
        public_hdrs = headers,
        srcs = sources,
        user_compile_flags = ["-O0"],
    )
    return [OutputGroupInfo(headers = depset(outputs.objects))]

check_headers = aspect(
    implementation = _impl,
    attrs = {
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
