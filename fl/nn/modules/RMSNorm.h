// Root mean square normalisation: Zhang and Sennrich, 2019 (arXiv 1910.07467).
#pragma once

#include "fl/nn/modules/Module.h"

namespace fl {

// x / sqrt(mean(x^2) + eps) * weight with the mean along the first dimension. With affine, the
// parameter is the weight (size), 1.
// Shapes: (size, ...), kept
class RMSNorm : public CloneableUnaryModule<RMSNorm> {
 public:
  explicit RMSNorm(int size, double eps = 1e-5, bool affine = true);
  FL_UNARY_MODULE(size_, epsilon_, affine_)
  RMSNorm() = default;

  int size_ = 0;
  double epsilon_ = 1e-5;
  bool affine_ = true;
};

}  // namespace fl
