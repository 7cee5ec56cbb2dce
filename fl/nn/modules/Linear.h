// y = W x + b along the first dimension.
#pragma once

#include "fl/nn/modules/Module.h"

namespace fl {

// (inputSize, ...) to (outputSize, ...). Parameters: the weight (outputSize, inputSize), drawn by
// kaimingUniform, and the bias (outputSize), uniform within sqrt(1 / inputSize).
class Linear : public CloneableUnaryModule<Linear> {
 public:
  Linear(int inputSize, int outputSize, bool bias = true);
  // Around given parameters. Throws std::invalid_argument if they do not fit each other.
  explicit Linear(const Variable& w);
  Linear(const Variable& w, const Variable& b);

  using UnaryModule::forward;
  Variable forward(const Variable& input) override;
  std::string prettyString() const override;

 private:
  Linear() = default;
  FL_SAVE_LOAD_WITH_BASE(UnaryModule, nIn_, nOut_, bias_)

  int nIn_ = 0;
  int nOut_ = 0;
  bool bias_ = false;
};

}  // namespace fl
