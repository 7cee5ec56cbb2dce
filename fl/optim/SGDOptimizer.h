// Stochastic gradient descent, with momentum and weight decay.
#pragma once

#include "fl/optim/Optimizers.h"

namespace fl {

// With gradient g, parameter w and velocity v (from zero):
//   g = g + weightDecay w
//   v = momentum v + g;  g = v, or with Nesterov momentum g + momentum v    (if momentum is not 0)
//   w = w - learningRate g
class SGDOptimizer : public FirstOrderOptimizer {
 public:
  SGDOptimizer(const std::vector<Variable>& parameters, double learningRate, double momentum = 0,
               double weightDecay = 0, bool useNesterov = false);
  void step() override;
  std::string prettyString() const override;

 private:
  double momentum_;
  double weightDecay_;
  bool useNesterov_;
  std::vector<Tensor> velocities_;
};

}  // namespace fl
