"""LLVM, linked statically: code for this processor, no shared libLLVM to load or to clash with."""

load("//third_party:system_library.bzl", "find_root")

_NEEDS = {
    "bin/ld.lld": "lld-19",
    "bin/llvm-config": "llvm-19",
    "include/llvm/Config/llvm-config.h": "llvm-19-dev",
    "lib/libLLVMCore.a": "llvm-19-dev",
}

def _impl(ctx):
    root, message = find_root(
        ctx,
        [ctx.os.environ.get("LLVM_ROOT", "") or "/usr/lib/llvm-19"],
        _NEEDS,
    )
    if not root:
        fail(message)
    result = ctx.execute([root + "/bin/llvm-config", "--link-static", "--libs"] + ctx.attr.components)
    if result.return_code:
        fail("llvm-config: " + result.stderr)
    ctx.symlink(root + "/include", "include")
    ctx.file("WORKSPACE", "workspace(name = %r)\n" % ctx.name)
    ctx.template("BUILD.bazel", ctx.attr.build, {
        "%{root}": root,
        "%{libs}": repr(result.stdout.strip().split(" ")),
    })

llvm_repository = repository_rule(
    implementation = _impl,
    attrs = {
        "build": attr.label(allow_single_file = True, mandatory = True),
        "components": attr.string_list(mandatory = True),
    },
    configure = True,
    environ = ["LLVM_ROOT"],
    local = True,
)
