// y = W x + b along the first dimension.
#pragma once

#include "fl/nn/modules/Module.h"

namespace fl {

// W x + b along the first dimension. Parameters: the weight W (outputSize, inputSize), drawn by
// kaimingUniform, and the bias b (outputSize), uniform within sqrt(1 / inputSize).
// Shapes: (inputSize, ...) to (outputSize, ...)
class Linear : public CloneableUnaryModule<Linear> {
 public:
  Linear(int inputSize, int outputSize, bool bias = true);
  // Around given parameters. Throws std::invalid_argument if they do not fit each other.
  explicit Linear(const Variable& w);
  Linear(const Variable& w, const Variable& b);
  FL_UNARY_MODULE(nIn_, nOut_, bias_)
  Linear() = default;
  void takeSizes(const Variable& w);

  int nIn_ = 0;
  int nOut_ = 0;
  bool bias_ = false;
};

}  // namespace fl
