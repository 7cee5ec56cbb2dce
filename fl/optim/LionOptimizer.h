// Lion: Chen et al., "Symbolic discovery of optimization algorithms", 2023.
#pragma once

#include "fl/optim/MomentOptimizer.h"

namespace fl {

// With gradient g, parameter w and moment m (from zero):
//   w = w - weightDecay learningRate w
//   w = w - learningRate sign(beta1 m + (1 - beta1) g)
//   m = beta2 m + (1 - beta2) g
class LionOptimizer : public MomentOptimizer {
 public:
  LionOptimizer(const std::vector<Variable>& parameters, double learningRate, double beta1 = 0.9,
                double beta2 = 0.99, double weightDecay = 0);
  std::string prettyString() const override { return withWeightDecay("Lion"); }

 protected:
  void update(Tensor& data, const Tensor& grad, std::vector<Tensor>& state) override;

 private:
  FL_SAVE_LOAD_WITH_BASE(MomentOptimizer)
  LionOptimizer() = default;
};

}  // namespace fl
