// The elements of a tensor, as numbers that a test compares.
#pragma once

#include <vector>

#include "fl/tensor/TensorBase.h"

namespace fl::test {

inline std::vector<float> valuesOf(const Tensor& tensor) {
  return tensor.astype(dtype::f32).toHostVector<float>();
}

}  // namespace fl::test
