// Adagrad: Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning and
// stochastic optimization", 2011.
#pragma once

#include "fl/optim/PerParameterOptimizer.h"

namespace fl {

// With gradient g, parameter w and sum v of squares (from zero):
//   w = w - weightDecay w
//   v = v + g^2
//   w = w - learningRate g / (sqrt(v) + epsilon)
class AdagradOptimizer : public PerParameterOptimizer {
 public:
  explicit AdagradOptimizer(const std::vector<Variable>& parameters, double learningRate = 1.0,
                            double epsilon = 1e-8, double weightDecay = 0);
  // Without the weight decay, as in Flashlight.
  std::string prettyString() const override;

 protected:
  void update(Tensor& data, const Tensor& grad, std::vector<Tensor>& state) override;

 private:
  FL_SAVE_LOAD_WITH_BASE(PerParameterOptimizer, epsilon_)
  AdagradOptimizer() = default;

  double epsilon_ = 0;
};

}  // namespace fl
