// Losses: modules of (prediction, target) that give a scalar, unless a reduction mode says
// otherwise.
#pragma once

#include "fl/nn/modules/AdaptiveSoftMax.h"
#include "fl/nn/modules/Module.h"
#include "fl/tensor/Defines.h"

namespace fl {

// The mean of (input - target)^2 over all elements. Shapes must be equal, else
// std::invalid_argument.
// Shapes: two equal ones to ()
class MeanSquaredError : public CloneableBinaryModule<MeanSquaredError> {
 public:
  FL_LOSS_MODULE()
};
using MSE = MeanSquaredError;

// The mean of |input - target| over all elements. Shapes must be equal, else std::invalid_argument.
// Shapes: two equal ones to ()
class MeanAbsoluteError : public CloneableBinaryModule<MeanAbsoluteError> {
 public:
  FL_LOSS_MODULE()
};
using MAE = MeanAbsoluteError;
using L1Loss = MeanAbsoluteError;

// The mean of -(y log(x) + (1 - y) log(1 - x)) over all elements, for inputs x and targets y in
// [0, 1]; each may have a weight. Shapes must be equal, else std::invalid_argument.
// Shapes: two equal ones to ()
class BinaryCrossEntropy : public CloneableBinaryModule<BinaryCrossEntropy> {
 public:
  Variable forward(const Variable& inputs, const Variable& targets, const Variable& weights);
  FL_LOSS_MODULE()
};

// -input[target] of log-probabilities and integer classes, reduced as fl::categoricalCrossEntropy.
// Shapes: (C, ...) and (...) to (), or (...) without a reduction
class CategoricalCrossEntropy : public CloneableBinaryModule<CategoricalCrossEntropy> {
 public:
  explicit CategoricalCrossEntropy(ReduceMode reduction = ReduceMode::MEAN, int ignoreIndex = -1)
      : reduction_(reduction), ignoreIndex_(ignoreIndex) {}
  FL_LOSS_MODULE(reduction_, ignoreIndex_)

  ReduceMode reduction_;
  int ignoreIndex_;
};

// CategoricalCrossEntropy of an AdaptiveSoftMax's log-probabilities, whose parameters are its own.
// Every cluster counts for every sample: which ones a batch needs is only known when its targets
// are, and nothing waits for them.
// Shapes: (inputSize, ...) and (...) to (), or (...) without a reduction
class AdaptiveSoftMaxLoss : public CloneableBinaryModule<AdaptiveSoftMaxLoss> {
 public:
  AdaptiveSoftMaxLoss() = default;
  explicit AdaptiveSoftMaxLoss(std::shared_ptr<AdaptiveSoftMax> activation,
                               ReduceMode reduction = ReduceMode::MEAN, int ignoreIndex = -1);
  AdaptiveSoftMaxLoss(const AdaptiveSoftMaxLoss& other);
  AdaptiveSoftMaxLoss& operator=(const AdaptiveSoftMaxLoss& other);
  AdaptiveSoftMaxLoss(AdaptiveSoftMaxLoss&& other) = default;
  AdaptiveSoftMaxLoss& operator=(AdaptiveSoftMaxLoss&& other) = default;

  std::shared_ptr<AdaptiveSoftMax> getActivation() const { return activation_; }
  void setParams(const Variable& var, int position) override;
  FL_LOSS_MODULE(activation_, reduction_, ignoreIndex_)

  std::shared_ptr<AdaptiveSoftMax> activation_;
  ReduceMode reduction_ = ReduceMode::MEAN;
  int ignoreIndex_ = -1;
};

}  // namespace fl
