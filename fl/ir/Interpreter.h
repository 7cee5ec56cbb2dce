// The reference interpreter: one primitive op on host memory, floats computed in double by the C
// library and rounded once, integers in their own type. It shares neither vector math nor kernels
// with the compiler, which makes it the oracle of tests; it is slow.
#pragma once

#include <vector>

#include "fl/ir/Graph.h"

namespace fl::ir {

struct HostOperand {
  const ValueType* type;
  const void* data;  // contiguous, column-major
};

// Computes `op` into `result`, contiguous memory of `type`. Library ops are not primitive: their
// definitions are. Throws InternalError for them, and IndexOutOfRange.
void interpret(Op op, const std::vector<HostOperand>& operands, const Attrs& attrs,
               const ValueType& type, void* result);

}  // namespace fl::ir
