// The mean over samples of the squared distance between output and target.
#pragma once

#include <cstdint>

#include "fl/meter/RecordedSum.h"

namespace fl {

// A sample is what one add() is given. Distances are only recorded; value() waits for them.
class MSEMeter {
 public:
  // Adds sum((output - target)^2). Tensors of one shape; else std::invalid_argument.
  void add(const Tensor& output, const Tensor& target);
  // 0 without any sample.
  double value() const;
  void reset();

 private:
  detail::RecordedSum squares_;
  int64_t samples_ = 0;
};

}  // namespace fl
