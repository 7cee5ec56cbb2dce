#include "fl/optim/AMSgradOptimizer.h"

#include "fl/base/CallSite.h"

namespace fl {

AMSgradOptimizer::AMSgradOptimizer(const std::vector<Variable>& parameters, double learningRate,
                                   double beta1, double beta2, double epsilon, double weightDecay)
    : MomentOptimizer(parameters, learningRate, beta1, beta2, epsilon, weightDecay) {
  FL_API_CONSTRUCTOR();
  makeState(3);
}

void AMSgradOptimizer::update(Tensor& data, const Tensor& grad, std::vector<Tensor>& state) {
  Tensor& first = state[0];
  Tensor& second = state[1];
  Tensor& largest = state[2];
  decay(data);
  first = beta1_ * first + (1 - beta1_) * grad;
  second = beta2_ * second + (1 - beta2_) * (grad * grad);
  largest = maximum(largest, second);
  data = data - learningRate(data.type()) * first / (sqrt(largest) + epsilon_);
}

}  // namespace fl
