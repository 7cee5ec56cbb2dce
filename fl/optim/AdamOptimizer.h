// Adam: Kingma and Ba, "Adam: a method for stochastic optimization", 2015. AdamW: Loshchilov and
// Hutter, "Decoupled weight decay regularization", 2019.
#pragma once

#include <optional>

#include "fl/optim/MomentOptimizer.h"

namespace fl {

// With gradient g, parameter w, moments m and v (from zero), in step t = 1, 2, ...:
//   w = w - weightDecay learningRate w
//   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
//   w = w - learningRate sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + epsilon)
class AdamOptimizer : public MomentOptimizer {
 public:
  AdamOptimizer(const std::vector<Variable>& parameters, double learningRate, double beta1 = 0.9,
                double beta2 = 0.999, double epsilon = 1e-8, double weightDecay = 0);
  std::string prettyString() const override { return withWeightDecay("Adam"); }

 protected:
  AdamOptimizer() = default;
  void beginStep(const Tensor* condition) override;
  void endStep() override { coefficients_.reset(); }
  void update(Tensor& data, const Tensor& grad, std::vector<Tensor>& state) override;

  // Whether epsilon, too, is times sqrt(1 - beta2^t).
  virtual bool correctsEpsilon() const { return false; }

 private:
  FL_SAVE_LOAD_WITH_BASE(MomentOptimizer, count_, skips_, skipped_)

  int count_ = 0;  // of step() and stepIf()
  // Once stepIf() was called, t is known when its condition is: `skipped_`, an f64 scalar, counts
  // the steps that did not happen.
  bool skips_ = false;
  Tensor skipped_;
  // Of the step that is recorded, f64 scalars.
  Tensor correctedLr_;
  Tensor correctedEpsilon_;
  // The same and the rates of decay, in the dtype of the parameters: recorded once for all of them.
  struct Coefficients {
    dtype type;
    Tensor rate, epsilon, keepFirst, takeFirst, keepSecond, takeSecond;
  };
  std::optional<Coefficients> coefficients_;

  const Coefficients& coefficients(dtype type);
};

// As PyTorch has it: v is corrected before epsilon is added,
//   w = w - learningRate / (1 - beta1^t) m / (sqrt(v / (1 - beta2^t)) + epsilon)
// and there is weight decay by default. That is Adam with epsilon sqrt(1 - beta2^t).
class AdamWOptimizer : public AdamOptimizer {
 public:
  AdamWOptimizer(const std::vector<Variable>& parameters, double learningRate, double beta1 = 0.9,
                 double beta2 = 0.999, double epsilon = 1e-8, double weightDecay = 1e-2)
      : AdamOptimizer(parameters, learningRate, beta1, beta2, epsilon, weightDecay) {}
  std::string prettyString() const override { return withWeightDecay("AdamW"); }

 protected:
  bool correctsEpsilon() const override { return true; }

 private:
  FL_SAVE_LOAD_WITH_BASE(AdamOptimizer)
  AdamWOptimizer() = default;
};

}  // namespace fl
