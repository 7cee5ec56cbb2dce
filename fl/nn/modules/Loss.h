// Losses: modules of (prediction, target) that give a scalar, unless a reduction mode says
// otherwise.
#pragma once

#include "fl/nn/modules/Module.h"
#include "fl/tensor/Defines.h"

namespace fl {

// The mean of (input - target)^2 over all elements. Shapes must be equal, else
// std::invalid_argument.
class MeanSquaredError : public CloneableBinaryModule<MeanSquaredError> {
 public:
  using BinaryModule::forward;
  Variable forward(const Variable& inputs, const Variable& targets) override;
  std::string prettyString() const override;

 private:
  FL_SAVE_LOAD_WITH_BASE(BinaryModule)
};
using MSE = MeanSquaredError;

// The mean of |input - target| over all elements. Shapes must be equal, else std::invalid_argument.
class MeanAbsoluteError : public CloneableBinaryModule<MeanAbsoluteError> {
 public:
  using BinaryModule::forward;
  Variable forward(const Variable& inputs, const Variable& targets) override;
  std::string prettyString() const override;

 private:
  FL_SAVE_LOAD_WITH_BASE(BinaryModule)
};
using MAE = MeanAbsoluteError;
using L1Loss = MeanAbsoluteError;

// fl::categoricalCrossEntropy of log-probabilities (C, ...) and integer classes (...).
class CategoricalCrossEntropy : public CloneableBinaryModule<CategoricalCrossEntropy> {
 public:
  explicit CategoricalCrossEntropy(ReduceMode reduction = ReduceMode::MEAN, int ignoreIndex = -1)
      : reduction_(reduction), ignoreIndex_(ignoreIndex) {}
  using BinaryModule::forward;
  Variable forward(const Variable& inputs, const Variable& targets) override;
  std::string prettyString() const override;

 private:
  FL_SAVE_LOAD_WITH_BASE(BinaryModule, reduction_, ignoreIndex_)

  ReduceMode reduction_;
  int ignoreIndex_;
};

}  // namespace fl
