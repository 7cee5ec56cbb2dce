// Layer normalisation: Ba, Kiros and Hinton, 2016 (arXiv 1607.06450).
#pragma once

#include "fl/nn/modules/Module.h"

namespace fl {

// For an axisSize that is not known before.
constexpr int kLnVariableAxisSize = -1;

// (x - mean) / sqrt(variance + eps) * weight + bias with mean and variance over the dimensions
// `axis`. With affine, the parameters are the weight, 1, and the bias, 0, of axisSize elements, one
// for each index along `axis`, or of one for all if that is kLnVariableAxisSize.
// Shapes: any of at most 4 dimensions, kept
class LayerNorm : public CloneableUnaryModule<LayerNorm> {
 public:
  explicit LayerNorm(int axis, double eps = 1e-5, bool affine = true,
                     int axisSize = kLnVariableAxisSize);
  explicit LayerNorm(const std::vector<int>& axis, double eps = 1e-5, bool affine = true,
                     int axisSize = kLnVariableAxisSize);
  FL_UNARY_MODULE(axisComplement_, epsilon_, affine_, axisSize_)
  LayerNorm() = default;
  // The normalised ones of four axes.
  std::vector<int> axes() const;

  std::vector<int> axisComplement_;
  double epsilon_ = 1e-5;
  bool affine_ = true;
  int axisSize_ = kLnVariableAxisSize;
};

}  // namespace fl
