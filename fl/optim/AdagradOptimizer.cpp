#include "fl/optim/AdagradOptimizer.h"

#include <sstream>

#include "fl/base/CallSite.h"

namespace fl {

AdagradOptimizer::AdagradOptimizer(const std::vector<Variable>& parameters, double learningRate,
                                   double epsilon, double weightDecay)
    : PerParameterOptimizer(parameters, learningRate, weightDecay), epsilon_(epsilon) {
  FL_API_CONSTRUCTOR();
  makeState(1);
}

void AdagradOptimizer::update(Tensor& data, const Tensor& grad, std::vector<Tensor>& state) {
  Tensor& squares = state[0];
  decay(data);
  squares = squares + grad * grad;
  data = data - learningRate(data.type()) * grad / (sqrt(squares) + epsilon_);
}

std::string AdagradOptimizer::prettyString() const {
  std::ostringstream text;
  text << "Adagrad";
  if (epsilon_ != 0) text << " (epsilon=" << epsilon_ << ")";
  return text.str();
}

}  // namespace fl
