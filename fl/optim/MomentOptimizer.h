// What Adam and its relatives share: two rates at which running means of the gradient decay, and an
// epsilon that keeps a denominator from 0.
#pragma once

#include "fl/optim/PerParameterOptimizer.h"

namespace fl {

class MomentOptimizer : public PerParameterOptimizer {
 protected:
  MomentOptimizer(const std::vector<Variable>& parameters, double learningRate, double beta1,
                  double beta2, double epsilon, double weightDecay)
      : PerParameterOptimizer(parameters, learningRate, weightDecay),
        beta1_(beta1),
        beta2_(beta2),
        epsilon_(epsilon) {}
  MomentOptimizer() = default;

  double beta1_ = 0;
  double beta2_ = 0;
  double epsilon_ = 0;

 private:
  FL_SAVE_LOAD_WITH_BASE(PerParameterOptimizer, beta1_, beta2_, epsilon_)
};

}  // namespace fl
