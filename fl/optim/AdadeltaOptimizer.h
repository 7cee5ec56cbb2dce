// Adadelta: Zeiler, "ADADELTA: an adaptive learning rate method", 2012.
#pragma once

#include "fl/optim/PerParameterOptimizer.h"

namespace fl {

// With gradient g, parameter w, means v and u of squares (from zero):
//   w = w - weightDecay w
//   v = rho v + (1 - rho) g^2
//   d = sqrt(u + epsilon) / sqrt(v + epsilon) g;  w = w - learningRate d
//   u = rho u + (1 - rho) d^2
// The paper has no learning rate.
class AdadeltaOptimizer : public PerParameterOptimizer {
 public:
  explicit AdadeltaOptimizer(const std::vector<Variable>& parameters, double learningRate = 1.0,
                             double rho = 0.9, double epsilon = 1e-8, double weightDecay = 0);
  std::string prettyString() const override;

 protected:
  void update(Tensor& data, const Tensor& grad, std::vector<Tensor>& state) override;

 private:
  FL_SAVE_LOAD_WITH_BASE(PerParameterOptimizer, rho_, epsilon_)
  AdadeltaOptimizer() = default;

  double rho_ = 0;
  double epsilon_ = 0;
};

}  // namespace fl
