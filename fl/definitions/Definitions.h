// Library ops in terms of primitives: what the reference device runs, and what stands in where a
// library refuses a dtype or shape. Relies on fl/tensor; backends are the users.
#pragma once

#include <vector>

#include "fl/tensor/tensor.h"

namespace fl {

// The value of an op of kind Library, whose types are inferred already, on this thread's backend.
TensorValue define(ir::Op op, std::vector<TensorValue> operands, const ir::Attrs& attrs);

std::vector<ir::ValueType> typesOf(const std::vector<TensorValue>& operands);

}  // namespace fl
