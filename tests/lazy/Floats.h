// Tensors of few floats, and back.
#pragma once

#include <vector>

#include "fl/tensor/tensor.h"

namespace fl::test {

using Floats = std::vector<float>;

inline Tensor of(const Floats& values) { return Tensor::fromVector(values); }
inline Floats valuesOf(const Tensor& tensor) { return tensor.toHostVector<float>(); }

}  // namespace fl::test
