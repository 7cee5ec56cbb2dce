"""The libraries that fl uses, each with the files it must have and the packages they come from."""

load("//third_party:llvm.bzl", "llvm_repository")
load("//third_party:system_library.bzl", "system_library")

_LIB = "lib/x86_64-linux-gnu/"

def system_repositories():
    """Declares one repository a library; nothing is looked for until a target needs it."""
    llvm_repository(
        name = "llvm",
        build = Label("//third_party:llvm.BUILD"),
        components = [
            "asmprinter",
            "codegen",
            "core",
            "mc",
            # The next three for mlir.
            "orcjit",
            "passes",
            "perfjitevents",
            "support",
            "target",
            "x86asmparser",
            "x86codegen",
            "x86desc",
            "x86info",
        ],
    )
    system_library(
        name = "absl",
        archives = _LIB + "libabsl_",
        build = Label("//third_party:absl.BUILD"),
        needs = {
            "include/absl/base/config.h": "libabsl-dev",
            _LIB + "libabsl_base.a": "libabsl-dev",
        },
    )
    system_library(
        name = "benchmark",
        build = Label("//third_party:benchmark.BUILD"),
        needs = {
            "include/benchmark/benchmark.h": "libbenchmark-dev",
            _LIB + "libbenchmark.so": "libbenchmark-dev",
        },
    )
    system_library(
        name = "cereal",
        build = Label("//third_party:cereal.BUILD"),
        needs = {"include/cereal/cereal.hpp": "libcereal-dev"},
    )
    system_library(
        name = "d3",
        build = Label("//third_party:d3.BUILD"),
        links = [
            "share/doc/node-d3/copyright",
            "share/nodejs/d3/dist/d3.min.js",
        ],
        needs = {
            "share/doc/node-d3/copyright": "node-d3",
            "share/nodejs/d3/dist/d3.min.js": "node-d3",
        },
    )
    system_library(
        name = "dagre",
        build = Label("//third_party:dagre.BUILD"),
        links = [
            "share/doc/node-dagre-layout/copyright",
            "share/nodejs/dagre/dist/dagre.min.js",
        ],
        needs = {
            "share/doc/node-dagre-layout/copyright": "node-dagre-layout",
            "share/nodejs/dagre/dist/dagre.min.js": "node-dagre-layout",
        },
    )
    system_library(
        name = "dnnl",
        build = Label("//third_party:dnnl.BUILD"),
        needs = {
            "include/oneapi/dnnl/dnnl.hpp": "libdnnl-dev",
            _LIB + "libdnnl.so": "libdnnl-dev",
        },
    )
    system_library(
        name = "elfutils",
        build = Label("//third_party:elfutils.BUILD"),
        needs = {
            "include/elfutils/libdwfl.h": "libdw-dev",
            _LIB + "libdw.so": "libdw-dev",
        },
    )
    system_library(
        name = "gnuplot",
        build = Label("//third_party:gnuplot.BUILD"),
        needs = {"bin/gnuplot": "gnuplot-nox"},
    )
    system_library(
        name = "gtest",
        build = Label("//third_party:gtest.BUILD"),
        needs = {
            "include/gmock/gmock.h": "libgmock-dev",
            "include/gtest/gtest.h": "libgtest-dev",
            _LIB + "libgmock.a": "libgmock-dev",
            _LIB + "libgtest.a": "libgtest-dev",
        },
    )
    system_library(
        name = "hwy",
        build = Label("//third_party:hwy.BUILD"),
        needs = {
            "include/hwy/contrib/sort/vqsort.h": "libhwy-dev",
            _LIB + "libhwy.so": "libhwy-dev",
            _LIB + "libhwy_contrib.so": "libhwy-dev",
        },
    )
    system_library(
        name = "libzip",
        build = Label("//third_party:libzip.BUILD"),
        needs = {
            "include/zip.h": "libzip-dev",
            _LIB + "libzip.so": "libzip-dev",
        },
    )
    system_library(
        name = "mlir",
        archives = "lib/libMLIR",
        build = Label("//third_party:mlir.BUILD"),
        env = "LLVM_ROOT",
        needs = {
            "include/mlir/IR/MLIRContext.h": "libmlir-19-dev",
            "lib/libMLIRIR.a": "libmlir-19-dev",
        },
        roots = ["/usr/lib/llvm-19"],
    )
    system_library(
        name = "nlohmann_json",
        build = Label("//third_party:nlohmann_json.BUILD"),
        needs = {"include/nlohmann/json.hpp": "nlohmann-json3-dev"},
    )
    system_library(
        name = "xxhash",
        build = Label("//third_party:xxhash.BUILD"),
        needs = {
            "include/xxhash.h": "libxxhash-dev",
            _LIB + "libxxhash.a": "libxxhash-dev",
        },
    )

    # All headers or none: the CUDA backend opens all libraries.
    system_library(
        name = "cuda",
        build = Label("//third_party:cuda.BUILD"),
        env = "CUDA_HOME",
        links = ["include"],
        needs = {
            "include/cublasLt.h": "cuda-toolkit-13-0",
            "include/cuda.h": "cuda-toolkit-13-0",
            "include/cudnn.h": "libcudnn9-dev-cuda-13",
            "include/nccl.h": "libnccl-dev",
            "include/nvrtc.h": "cuda-toolkit-13-0",
            "include/nvtx3/nvToolsExt.h": "cuda-toolkit-13-0",
        },
        optional = True,
        roots = ["/usr/local/cuda"],
    )
    system_library(
        name = "gloo",
        build = Label("//third_party:gloo.BUILD"),
        env = "GLOO_ROOT",
        links = [
            "include/gloo",
            "lib/libgloo.so",
        ],
        needs = {
            "include/gloo/allreduce.h": "libgloo-dev",
            "lib/libgloo.so": "libgloo-dev",
        },
        optional = True,
    )
