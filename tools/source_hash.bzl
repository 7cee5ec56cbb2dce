"""A header that knows the sources that something was made from."""

def source_hash(name, srcs, out):
    """Makes a header with kSourceHash, the SHA-256 of the files in hexadecimal.

    Args:
      name: of the rule.
      srcs: the files.
      out: the header.
    """
    native.genrule(
        name = name,
        srcs = srcs,
        outs = [out],
        cmd = "cat $(SRCS) | sha256sum | " +
              "sed 's/ .*//; s/.*/constexpr char kSourceHash[] = \"&\";/' > $@",
    )
