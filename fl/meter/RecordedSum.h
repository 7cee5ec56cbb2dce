// What the meters of tensors add up in: nothing waits for a tensor before the sum is asked for.
#pragma once

#include <optional>

#include "fl/tensor/TensorBase.h"

namespace fl::detail {

// In f64, which counts exactly up to 2^53.
class RecordedSum {
 public:
  void add(const Tensor& scalar) {
    const Tensor wide = scalar.astype(dtype::f64);
    sum_ = sum_ ? *sum_ + wide : wide;
  }
  // Waits for what was added; 0 without anything.
  double value() const { return sum_ ? sum_->scalar<double>() : 0; }

 private:
  std::optional<Tensor> sum_;
};

}  // namespace fl::detail
