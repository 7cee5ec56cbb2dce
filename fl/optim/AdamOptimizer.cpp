#include "fl/optim/AdamOptimizer.h"

#include <cmath>
#include <sstream>

#include "fl/base/CallSite.h"

namespace fl {

AdamOptimizer::AdamOptimizer(const std::vector<Variable>& parameters, double learningRate,
                             double beta1, double beta2, double epsilon, double weightDecay)
    : FirstOrderOptimizer(parameters, learningRate),
      beta1_(beta1),
      beta2_(beta2),
      epsilon_(epsilon),
      weightDecay_(weightDecay) {
  FL_API_ENTRY();
  biasedFirst_ = makeState();
  biasedSecond_ = makeState();
}

void AdamOptimizer::step() {
  FL_API_ENTRY();
  ++count_;
  const double correctedLr =
      lr_ * std::sqrt(1 - std::pow(beta2_, count_)) / (1 - std::pow(beta1_, count_));
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].isGradAvailable()) {
      continue;
    }
    Tensor& data = parameters_[i].tensor();
    const Tensor grad = parameters_[i].grad().tensor();
    if (weightDecay_ != 0) {
      data = data - (weightDecay_ * lr_) * data;
    }
    Tensor& first = biasedFirst_[i];
    Tensor& second = biasedSecond_[i];
    first = beta1_ * first + (1 - beta1_) * grad;
    second = beta2_ * second + (1 - beta2_) * (grad * grad);
    data = data - correctedLr * first / (sqrt(second) + epsilon_);
  }
  evalParameters();
}

std::string AdamOptimizer::prettyString() const {
  std::ostringstream text;
  text << "Adam";
  if (weightDecay_ != 0) {
    text << " (weight decay=" << weightDecay_ << ")";
  }
  return text.str();
}

}  // namespace fl
