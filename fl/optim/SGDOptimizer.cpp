#include "fl/optim/SGDOptimizer.h"

#include <sstream>

#include "fl/base/CallSite.h"

namespace fl {

SGDOptimizer::SGDOptimizer(const std::vector<Variable>& parameters, double learningRate,
                           double momentum, double weightDecay, bool useNesterov)
    : PerParameterOptimizer(parameters, learningRate, weightDecay),
      momentum_(momentum),
      useNesterov_(useNesterov) {
  FL_API_CONSTRUCTOR();
  makeState(momentum != 0 ? 1 : 0);
}

void SGDOptimizer::update(Tensor& data, const Tensor& grad, std::vector<Tensor>& state) {
  Tensor direction = weightDecay_ != 0 ? grad + weightDecay_ * data : grad;
  if (momentum_ != 0) {
    Tensor& velocity = state[0];
    velocity = momentum_ * velocity + direction;
    direction = useNesterov_ ? direction + momentum_ * velocity : velocity;
  }
  data = data - learningRate(data.type()) * direction;
}

std::string SGDOptimizer::prettyString() const {
  std::ostringstream text;
  text << withWeightDecay("SGD");
  if (momentum_ != 0) {
    text << (useNesterov_ ? " (Nesterov momentum=" : " (momentum=") << momentum_ << ")";
  }
  return text.str();
}

}  // namespace fl
