// RMSProp: Hinton, "Neural networks for machine learning", lecture 6, 2012; with the first moment:
// Graves, "Generating sequences with recurrent neural networks", 2013.
#pragma once

#include "fl/optim/PerParameterOptimizer.h"

namespace fl {

// With gradient g, parameter w, moments m and v (from zero):
//   w = w - weightDecay w
//   v = rho v + (1 - rho) g^2;  d = v, or with use_first:  m = rho m + (1 - rho) g;  d = v - m^2
//   w = w - learningRate g / (sqrt(d) + epsilon)
class RMSPropOptimizer : public PerParameterOptimizer {
 public:
  RMSPropOptimizer(const std::vector<Variable>& parameters, double learningRate, double rho = 0.99,
                   double epsilon = 1e-8, double weightDecay = 0, bool use_first = false);
  std::string prettyString() const override;

 protected:
  void update(Tensor& data, const Tensor& grad, std::vector<Tensor>& state) override;

 private:
  FL_SAVE_LOAD_WITH_BASE(PerParameterOptimizer, rho_, epsilon_, useFirst_)
  RMSPropOptimizer() = default;

  double rho_ = 0;
  double epsilon_ = 0;
  bool useFirst_ = false;
};

}  // namespace fl
