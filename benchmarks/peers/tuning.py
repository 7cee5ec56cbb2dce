"""What makes PyTorch and MLX fastest on a CPU; Debian's PyTorch 1.13 gains most."""
import os
import pathlib
import sys

OPENBLAS = "/usr/lib/x86_64-linux-gnu/openblas-openmp"


def has_avx512():
    return " avx512f " in pathlib.Path("/proc/cpuinfo").read_text()


def tuned_environment(name, threads):
    # Debian's OpenBLAS knows few processors of today by name.
    core, capability = ("SKYLAKEX", "avx512") if has_avx512() else ("HASWELL", "avx2")
    environment = {
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": str(threads),
        "OPENBLAS_CORETYPE": core,
        # Freed memory is kept for the next step.
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
        "MALLOC_TOP_PAD_": str(64 << 20),
    }
    if name == "mlx":
        # Its package brings the BLAS that is written for reference, not for speed.
        environment["LD_PRELOAD"] = OPENBLAS + "/libopenblas.so.0"
    else:
        # By default AVX2 kernels, even on a processor with AVX-512.
        environment["ATEN_CPU_CAPABILITY"] = capability
        # OpenBLAS on OpenMP shares PyTorch's thread pool.
        environment["LD_LIBRARY_PATH"] = OPENBLAS
    return environment


def restart_tuned(name, threads):
    """Starts the script again: these variables are read when a process starts."""
    wanted = tuned_environment(name, threads)
    if any(os.environ.get(variable) != value for variable, value in wanted.items()):
        os.execve(sys.executable, [sys.executable] + sys.argv, {**os.environ, **wanted})
