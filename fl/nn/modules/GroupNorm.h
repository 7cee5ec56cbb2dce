// Group normalisation: Wu and He, 2018 (arXiv 1803.08494).
#pragma once

#include "fl/nn/modules/Module.h"

namespace fl {

// (x - mean) / sqrt(variance + eps) * weight + bias with mean and variance over a sample's group of
// numChannels / numGroups neighbouring channels. With affine, the parameters are the weight
// (numChannels), 1, and the bias (numChannels), 0.
// Shapes: (..., numChannels, N), kept
class GroupNorm : public CloneableUnaryModule<GroupNorm> {
 public:
  GroupNorm(int numGroups, int numChannels, double eps = 1e-5, bool affine = true);
  FL_UNARY_MODULE(numGroups_, numChannels_, epsilon_, affine_)
  GroupNorm() = default;

  int numGroups_ = 1;
  int numChannels_ = 0;
  double epsilon_ = 1e-5;
  bool affine_ = true;
};

}  // namespace fl
