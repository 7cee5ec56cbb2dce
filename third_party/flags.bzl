"""A switch for an optional library: on by itself where the library is installed."""

_Value = provider(fields = ["value"])

def _impl(ctx):
    return _Value(value = ctx.build_setting_value)

_bool_flag = rule(
    implementation = _impl,
    build_setting = config.bool(flag = True),
)

def optional_library(available):
    """Declares `:enable`, set on the command line, and `:enabled`, to be read in a select()."""
    _bool_flag(
        name = "enable",
        build_setting_default = available,
        visibility = ["//visibility:public"],
    )
    native.config_setting(
        name = "enabled",
        flag_values = {":enable": "True"},
        visibility = ["//visibility:public"],
    )
