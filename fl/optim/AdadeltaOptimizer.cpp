#include "fl/optim/AdadeltaOptimizer.h"

#include <sstream>

#include "fl/base/CallSite.h"

namespace fl {

AdadeltaOptimizer::AdadeltaOptimizer(const std::vector<Variable>& parameters, double learningRate,
                                     double rho, double epsilon, double weightDecay)
    : PerParameterOptimizer(parameters, learningRate, weightDecay), rho_(rho), epsilon_(epsilon) {
  FL_API_CONSTRUCTOR();
  makeState(2);
}

void AdadeltaOptimizer::update(Tensor& data, const Tensor& grad, std::vector<Tensor>& state) {
  Tensor& gradSquares = state[0];
  Tensor& deltaSquares = state[1];
  decay(data);
  gradSquares = rho_ * gradSquares + (1 - rho_) * (grad * grad);
  const Tensor delta = sqrt(deltaSquares + epsilon_) / sqrt(gradSquares + epsilon_) * grad;
  data = data - learningRate(data.type()) * delta;
  deltaSquares = rho_ * deltaSquares + (1 - rho_) * (delta * delta);
}

std::string AdadeltaOptimizer::prettyString() const {
  std::ostringstream text;
  text << withWeightDecay("Adadelta") << " (rho=" << rho_ << ")";
  if (epsilon_ != 0) text << " (epsilon=" << epsilon_ << ")";
  return text.str();
}

}  // namespace fl
