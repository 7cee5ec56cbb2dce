// AMSgrad: Reddi, Kale and Kumar, "On the convergence of Adam and beyond", 2018.
#pragma once

#include "fl/optim/MomentOptimizer.h"

namespace fl {

// With gradient g, parameter w, moments m, v and u (from zero):
//   w = w - weightDecay w
//   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;  u = max(u, v)
//   w = w - learningRate m / (sqrt(u) + epsilon)
class AMSgradOptimizer : public MomentOptimizer {
 public:
  AMSgradOptimizer(const std::vector<Variable>& parameters, double learningRate, double beta1 = 0.9,
                   double beta2 = 0.999, double epsilon = 1e-8, double weightDecay = 0);
  // "AMSgrad from ", as in Flashlight.
  std::string prettyString() const override { return withWeightDecay("AMSgrad from "); }

 protected:
  void update(Tensor& data, const Tensor& grad, std::vector<Tensor>& state) override;

 private:
  FL_SAVE_LOAD_WITH_BASE(MomentOptimizer)
  AMSgradOptimizer() = default;
};

}  // namespace fl
