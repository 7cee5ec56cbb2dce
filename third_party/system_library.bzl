"""A repository for a library that is installed on this machine."""

def find_root(ctx, roots, needs):
    """Returns the first of the roots that holds all needed files, and the package that is missing.

    Args:
      ctx: the repository context.
      roots: prefixes to look under.
      needs: file below the prefix -> Debian package that installs it.

    Returns:
      (root, None), or (None, message).
    """
    message = None
    for root in roots:
        lacking = [f for f in needs if not ctx.path(root + "/" + f).exists]
        if not lacking:
            return root, None
        message = message or "%s: %s/%s is missing; run ./setup.sh or `apt-get install %s`" % (
            ctx.name,
            root,
            lacking[0],
            needs[lacking[0]],
        )
    return None, message

def _impl(ctx):
    override = ctx.os.environ.get(ctx.attr.env, "") if ctx.attr.env else ""
    root, message = find_root(ctx, [override] if override else ctx.attr.roots, ctx.attr.needs)
    if not root and not ctx.attr.optional:
        fail(message)
    ctx.file("WORKSPACE", "workspace(name = %r)\n" % ctx.name)
    ctx.file("defs.bzl", "AVAILABLE = %r\n" % (root != None))
    if not root:
        # An empty library, so that labels in a select() still load.
        ctx.file("BUILD.bazel", "# %s\ncc_library(name = %r, visibility = [%r])\n" % (
            message,
            ctx.name,
            "//visibility:public",
        ))
        return
    for link in ctx.attr.links:
        ctx.symlink(root + "/" + link, link)
    archives = []
    if ctx.attr.archives:
        directory, prefix = ctx.attr.archives.rsplit("/", 1)
        archives = sorted([
            f.basename
            for f in ctx.path(root + "/" + directory).readdir()
            if f.basename.startswith(prefix) and f.basename.endswith(".a")
        ])
    ctx.template("BUILD.bazel", ctx.attr.build, {
        "%{root}": root,
        "%{archives}": repr(archives),
    })

system_library = repository_rule(
    doc = """Fails the targets that need the library, and no others, where it is not installed.

The library's target bears the repository's name: `@dnnl` is `@dnnl//:dnnl`.""",
    implementation = _impl,
    attrs = {
        "archives": attr.string(doc = "directory/prefix of static archives; %{archives} in `build`"),
        "build": attr.label(allow_single_file = True, mandatory = True),
        "env": attr.string(doc = "environment variable that overrides `roots`"),
        "links": attr.string_list(doc = "folders and files below the root to link to"),
        "needs": attr.string_dict(doc = "file below the root -> Debian package"),
        "optional": attr.bool(doc = "where missing: AVAILABLE = False in defs.bzl, no failure"),
        "roots": attr.string_list(default = ["/usr"]),
    },
    configure = True,
    environ = ["CUDA_HOME", "GLOO_ROOT", "LLVM_ROOT"],
    local = True,
)
