"""All programs of a package, for tests of every one of them."""

def programs(name, **kwargs):
    """Stands behind the programs. As data they come with what they need when they run."""
    programs = [rule for rule, facts in native.existing_rules().items() if facts["kind"] == "cc_binary"]
    native.filegroup(
        name = name,
        srcs = programs,
        data = programs,
        **kwargs
    )
