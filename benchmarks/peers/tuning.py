"""What makes PyTorch fastest on a CPU; Debian's 1.13 gains most."""
import os
import sys


def tuned_environment(threads):
    return {
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": str(threads),
        # By default AVX2 and Haswell kernels, even on a processor with AVX-512.
        "ATEN_CPU_CAPABILITY": "avx512",
        "OPENBLAS_CORETYPE": "SKYLAKEX",
        # OpenBLAS on OpenMP shares PyTorch's thread pool.
        "LD_LIBRARY_PATH": "/usr/lib/x86_64-linux-gnu/openblas-openmp",
        # Freed memory is kept for the next step.
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
        "MALLOC_TOP_PAD_": str(64 << 20),
    }


def restart_tuned(threads):
    """Starts the script again: these variables are read when a process starts."""
    wanted = tuned_environment(threads)
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.execve(sys.executable, [sys.executable] + sys.argv, {**os.environ, **wanted})
