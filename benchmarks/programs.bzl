"""All programs of a package, for tests of every one of them."""

def programs(name, **kwargs):
    """Stands behind the programs."""
    native.filegroup(
        name = name,
        srcs = [rule for rule, facts in native.existing_rules().items() if facts["kind"] == "cc_binary"],
        **kwargs
    )
