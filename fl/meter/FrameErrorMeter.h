// The share of predictions that differ from their targets.
#pragma once

#include <cstdint>

#include "fl/meter/RecordedSum.h"

namespace fl {

// Comparisons are only recorded; value() waits for them.
class FrameErrorMeter {
 public:
  // With `accuracy`, value() is the share of equal ones.
  explicit FrameErrorMeter(bool accuracy = false) : accuracy_(accuracy) {}

  // Two 1-D tensors of one shape, of any dtypes; else std::invalid_argument.
  void add(const Tensor& output, const Tensor& target);
  // In percent; without any sample the error is 0.
  double value() const;
  void reset();

 private:
  bool accuracy_;
  int64_t count_ = 0;
  detail::RecordedSum errors_;
};

}  // namespace fl
