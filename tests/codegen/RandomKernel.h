// Draws kernels that cover the kernel form: types, stride classes, stages and reductions of any
// mix. Relies on KernelMaker.h.
#pragma once

#include <random>
#include <vector>

#include "fl/kernel/Kernel.h"

namespace fl::testing {

struct RandomKernelOptions {
  // Leaves out functions that the C library computes with other bits.
  bool exact = true;
};

ir::Kernel drawKernel(std::mt19937_64& random, RandomKernelOptions options);

// Extents for a kernel: at most about 20000 elements.
std::vector<int64_t> drawExtents(const ir::Kernel& kernel, std::mt19937_64& random);

}  // namespace fl::testing
