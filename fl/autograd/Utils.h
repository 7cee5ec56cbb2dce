// Small helpers on Variables.
#pragma once

#include <utility>

#include "fl/autograd/Variable.h"

namespace fl {

// Tensors of equal dtype and shape, max |a - b| below the tolerance. Waits for both values.
bool allClose(const Variable& a, const Variable& b, double absTolerance = 1e-5);

namespace detail {

// What is given in `type`: itself if it is that already, else cast, and differentiably a Variable.
inline Tensor toType(Tensor tensor, dtype type) {
  return tensor.type() == type ? std::move(tensor) : tensor.astype(type);
}
inline Variable toType(const Variable& variable, dtype type) {
  return variable.type() == type ? variable : variable.astype(type);
}

}  // namespace detail
}  // namespace fl
