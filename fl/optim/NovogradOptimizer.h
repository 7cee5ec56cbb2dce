// NovoGrad: Ginsburg et al., "Stochastic gradient methods with layer-wise adaptive moments for
// training of deep networks", 2019.
#pragma once

#include "fl/optim/MomentOptimizer.h"

namespace fl {

// With gradient g, parameter w, moment m of each element and v of the whole parameter (from zero):
//   v = beta2 v + (1 - beta2) sum(g^2)
//   m = beta1 m + (1 - beta1) (g / (sqrt(v) + epsilon) + weightDecay w)
//   w = w - learningRate m
// v stays a tensor, so that nothing waits for it.
class NovogradOptimizer : public MomentOptimizer {
 public:
  NovogradOptimizer(const std::vector<Variable>& parameters, double learningRate,
                    double beta1 = 0.95, double beta2 = 0.98, double epsilon = 1e-8,
                    double weightDecay = 0);
  std::string prettyString() const override { return withWeightDecay("Novograd"); }

 protected:
  void update(Tensor& data, const Tensor& grad, std::vector<Tensor>& state) override;

 private:
  FL_SAVE_LOAD_WITH_BASE(MomentOptimizer)
  NovogradOptimizer() = default;
};

}  // namespace fl
