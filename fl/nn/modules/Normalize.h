// Scaling to a given norm.
#pragma once

#include "fl/nn/modules/Module.h"

namespace fl {

// value x / max(norm, eps), with the p-norm over the dimensions `axes`.
// Shapes: any, kept
class Normalize : public CloneableUnaryModule<Normalize> {
 public:
  explicit Normalize(const std::vector<int>& axes, double p = 2, double eps = 1e-12,
                     double value = 1)
      : axes_(axes), p_(p), eps_(eps), value_(value) {}
  FL_UNARY_MODULE(axes_, p_, eps_, value_)
  Normalize() = default;

  std::vector<int> axes_;
  double p_ = 2;
  double eps_ = 1e-12;
  double value_ = 1;
};

}  // namespace fl
