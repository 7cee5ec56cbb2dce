// Adam: Kingma and Ba, "Adam: a method for stochastic optimization", 2015.
#pragma once

#include "fl/optim/Optimizers.h"

namespace fl {

// With gradient g, parameter w, moments m and v (from zero), in step t = 1, 2, ...:
//   w = w - weightDecay learningRate w
//   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
//   w = w - learningRate sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + epsilon)
class AdamOptimizer : public FirstOrderOptimizer {
 public:
  AdamOptimizer(const std::vector<Variable>& parameters, double learningRate, double beta1 = 0.9,
                double beta2 = 0.999, double epsilon = 1e-8, double weightDecay = 0);
  void step() override;
  std::string prettyString() const override;

 private:
  double beta1_;
  double beta2_;
  double epsilon_;
  double weightDecay_;
  int count_ = 0;
  std::vector<Tensor> biasedFirst_;
  std::vector<Tensor> biasedSecond_;
};

}  // namespace fl
