// Times fused chains of operators, lazy and eager, beside a copy of their bytes.
#include "benchmarks/KernelCases.h"

int main(int argc, char** argv) {
  return fl::bench::compareWorkloads("kernels", "Times fused chains of operators, lazy and eager.",
                                     argc, argv, fl::bench::kernelCases);
}
