// Stochastic gradient descent, with momentum (Sutskever et al., "On the importance of
// initialization and momentum in deep learning", 2013) and weight decay.
#pragma once

#include "fl/optim/PerParameterOptimizer.h"

namespace fl {

// With gradient g, parameter w and velocity v (from zero):
//   g = g + weightDecay w
//   v = momentum v + g;  g = v, or with Nesterov momentum g + momentum v    (if momentum is not 0)
//   w = w - learningRate g
class SGDOptimizer : public PerParameterOptimizer {
 public:
  SGDOptimizer(const std::vector<Variable>& parameters, double learningRate, double momentum = 0,
               double weightDecay = 0, bool useNesterov = false);
  std::string prettyString() const override;

 protected:
  void update(Tensor& data, const Tensor& grad, std::vector<Tensor>& state) override;

 private:
  FL_SAVE_LOAD_WITH_BASE(PerParameterOptimizer, momentum_, useNesterov_)
  SGDOptimizer() = default;

  double momentum_ = 0;
  bool useNesterov_ = false;
};

}  // namespace fl
