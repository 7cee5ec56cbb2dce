#include "fl/optim/AdamOptimizer.h"

#include <cmath>

#include "fl/base/CallSite.h"

namespace fl {

AdamOptimizer::AdamOptimizer(const std::vector<Variable>& parameters, double learningRate,
                             double beta1, double beta2, double epsilon, double weightDecay)
    : MomentOptimizer(parameters, learningRate, beta1, beta2, epsilon, weightDecay) {
  FL_API_ENTRY();
  makeState(2);
}

void AdamOptimizer::beginStep() {
  ++count_;
  secondCorrection_ = std::sqrt(1 - std::pow(beta2_, count_));
  correctedLr_ = lr_ * secondCorrection_ / (1 - std::pow(beta1_, count_));
}

void AdamOptimizer::update(Tensor& data, const Tensor& grad, std::vector<Tensor>& state) {
  Tensor& first = state[0];
  Tensor& second = state[1];
  decay(data, lr_);
  first = beta1_ * first + (1 - beta1_) * grad;
  second = beta2_ * second + (1 - beta2_) * (grad * grad);
  data = data - correctedLr_ * first / (sqrt(second) + epsilonOfStep());
}

}  // namespace fl
