"""What is built only where there are CUDA's headers."""

# For target_compatible_with; tests are skipped elsewhere.
NEEDS_CUDA = select({
    "//third_party/cuda:enabled": [],
    "//conditions:default": ["//third_party:incompatible"],
})
