#include "fl/optim/RMSPropOptimizer.h"

#include "fl/base/CallSite.h"

namespace fl {

RMSPropOptimizer::RMSPropOptimizer(const std::vector<Variable>& parameters, double learningRate,
                                   double rho, double epsilon, double weightDecay, bool use_first)
    : PerParameterOptimizer(parameters, learningRate, weightDecay),
      rho_(rho),
      epsilon_(epsilon),
      useFirst_(use_first) {
  FL_API_CONSTRUCTOR();
  makeState(useFirst_ ? 2 : 1);
}

void RMSPropOptimizer::update(Tensor& data, const Tensor& grad, std::vector<Tensor>& state) {
  decay(data);
  Tensor& second = state[0];
  second = rho_ * second + (1 - rho_) * (grad * grad);
  Tensor moments = second;
  if (useFirst_) {
    Tensor& first = state[1];
    first = rho_ * first + (1 - rho_) * grad;
    // A variance; where the gradient hardly changes, rounding would make it negative.
    moments = maximum(second - first * first, 0.0);
  }
  data = data - learningRate(data.type()) * grad / (sqrt(moments) + epsilon_);
}

std::string RMSPropOptimizer::prettyString() const {
  return withWeightDecay("RMSProp") + (useFirst_ ? " (use first moment)" : "");
}

}  // namespace fl
