#include "fl/optim/SGDOptimizer.h"

#include <sstream>

#include "fl/base/CallSite.h"

namespace fl {

SGDOptimizer::SGDOptimizer(const std::vector<Variable>& parameters, double learningRate,
                           double momentum, double weightDecay, bool useNesterov)
    : FirstOrderOptimizer(parameters, learningRate),
      momentum_(momentum),
      weightDecay_(weightDecay),
      useNesterov_(useNesterov) {
  FL_API_ENTRY();
  if (momentum_ != 0) {
    velocities_ = makeState();
  }
}

void SGDOptimizer::step() {
  FL_API_ENTRY();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].isGradAvailable()) {
      continue;
    }
    Tensor& data = parameters_[i].tensor();
    Tensor grad = parameters_[i].grad().tensor();
    if (weightDecay_ != 0) {
      grad = grad + weightDecay_ * data;
    }
    if (momentum_ != 0) {
      Tensor& velocity = velocities_[i];
      velocity = momentum_ * velocity + grad;
      grad = useNesterov_ ? grad + momentum_ * velocity : velocity;
    }
    data = data - lr_ * grad;
  }
  evalParameters();
}

std::string SGDOptimizer::prettyString() const {
  std::ostringstream text;
  text << "SGD";
  if (weightDecay_ != 0) {
    text << " (weight decay=" << weightDecay_ << ")";
  }
  if (momentum_ != 0) {
    text << (useNesterov_ ? " (Nesterov momentum=" : " (momentum=") << momentum_ << ")";
  }
  return text.str();
}

}  // namespace fl
