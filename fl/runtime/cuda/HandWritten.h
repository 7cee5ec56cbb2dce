// Kernels that are written by hand, compiled once in a process for each GPU and dtype.
#pragma once

#include <string>

#include "fl/runtime/cuda/Context.h"

namespace fl::runtime::cuda {

// Of an operator (ir::cuda::handWrittenCompiler); null where there is no code. Why it cannot be
// made is told once, behind `instead`, what happens then.
CUfunction handWritten(Context& context, ir::Op op, dtype type, const std::string& instead);

}  // namespace fl::runtime::cuda
