// What a kernel means, computed number by number straight from the words of fl/kernel/Kernel.h and
// fl/ir/Ops.def: slow, and sharing no code with any executor. Values of approximated functions come
// from the C library, so kernels that use them agree only nearly.
#pragma once

#include <vector>

#include "tests/codegen/KernelLaunch.h"

namespace fl::testing {

// Op `op` on numbers, giving one of `type`.
Number applyReference(ir::Op op, dtype type, const std::vector<Number>& args);

// Runs the whole domain in the launch's memory.
void runReference(const KernelLaunch& launch);

}  // namespace fl::testing
