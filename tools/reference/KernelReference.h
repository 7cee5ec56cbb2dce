// The reference interpreter of kernels: what a kernel means, computed number by number straight
// from the words of fl/kernel/Kernel.h and fl/ir/Ops.def. It is slow and shares no code with any
// executor of kernels, which makes it their oracle; fl/ir/Interpreter.h is that of graphs.
//
// Functions that executors approximate come from the C library, in long double, so kernels that use
// them agree only nearly; all others to the bit.
#pragma once

#include "fl/kernel/Kernel.h"

namespace fl::tools {

// Runs kept elements [begin, end) as a KernelFunction does (fl/kernel/Kernel.h). A microsecond for
// each value of the body and element.
int64_t interpretKernel(const ir::Kernel& kernel, const ir::KernelArgs& args, int64_t begin,
                        int64_t end);

}  // namespace fl::tools
