#include "fl/optim/NovogradOptimizer.h"

#include "fl/base/CallSite.h"

namespace fl {

NovogradOptimizer::NovogradOptimizer(const std::vector<Variable>& parameters, double learningRate,
                                     double beta1, double beta2, double epsilon, double weightDecay)
    : MomentOptimizer(parameters, learningRate, beta1, beta2, epsilon, weightDecay) {
  FL_API_CONSTRUCTOR();
  makeState(1, 1);
}

void NovogradOptimizer::update(Tensor& data, const Tensor& grad, std::vector<Tensor>& state) {
  Tensor& moment = state[0];
  Tensor& squares = state[1];
  squares = beta2_ * squares + (1 - beta2_) * sum(grad * grad);
  Tensor direction = grad / (sqrt(squares) + epsilon_);
  if (weightDecay_ != 0) direction = direction + weightDecay_ * data;
  moment = beta1_ * moment + (1 - beta1_) * direction;
  data = data - learningRate(data.type()) * moment;
}

}  // namespace fl
