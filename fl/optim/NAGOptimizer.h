// Nesterov's accelerated gradient, for learning rates that change: Sutskever et al., "On the
// importance of initialization and momentum in deep learning", 2013.
#pragma once

#include "fl/optim/PerParameterOptimizer.h"

namespace fl {

// With gradient g, parameter w and velocity v (from zero):
//   w = w - weightDecay learningRate w
//   v = momentum v + g
//   w = w - learningRate (g + momentum v)
// Flashlight keeps learningRate v instead, and rescales it by the ratio of learning rates at each
// step: the same parameters, save that a learning rate of 0 makes them NaN there. Throws
// std::runtime_error unless momentum > 0.
class NAGOptimizer : public PerParameterOptimizer {
 public:
  NAGOptimizer(const std::vector<Variable>& parameters, double learningRate, double momentum = 0.99,
               double weightDecay = 0);
  std::string prettyString() const override;

 protected:
  void beginStep(const Tensor*) override { oldLr_ = lr_; }
  void update(Tensor& data, const Tensor& grad, std::vector<Tensor>& state) override;

 private:
  FL_SAVE_LOAD_WITH_BASE(PerParameterOptimizer, momentum_, oldLr_)
  NAGOptimizer() = default;

  double momentum_ = 0;
  double oldLr_ = 0;  // of the latest step
};

}  // namespace fl
