// Library ops in terms of primitives: what the reference device runs, and what stands in where a
// library refuses a dtype or shape. Relies on fl/tensor; backends are the users.
#pragma once

#include <vector>

#include "fl/tensor/tensor.h"

namespace fl {

// The value of an op of kind Library, whose types are inferred already, on this thread's backend.
TensorValue define(ir::Op op, std::vector<TensorValue> operands, const ir::Attrs& attrs);

std::vector<ir::ValueType> typesOf(const std::vector<TensorValue>& operands);

// Whether a backend must define() an op, as its device (fl/runtime/Device.h) has no library for it.
template <class Device>
bool mustDefine(const Device& device, ir::Op op, const std::vector<TensorValue>& operands,
                const ir::Attrs& attrs, const ir::ValueType& type) {
  return ir::opKind(op) == ir::Kind::Library &&
         !device.supportsLibrary(op, typesOf(operands), attrs, type);
}

}  // namespace fl
