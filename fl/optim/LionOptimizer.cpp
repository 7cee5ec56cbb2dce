#include "fl/optim/LionOptimizer.h"

#include "fl/base/CallSite.h"

namespace fl {

LionOptimizer::LionOptimizer(const std::vector<Variable>& parameters, double learningRate,
                             double beta1, double beta2, double weightDecay)
    : MomentOptimizer(parameters, learningRate, beta1, beta2, /*epsilon=*/0, weightDecay) {
  FL_API_CONSTRUCTOR();
  makeState(1);
}

void LionOptimizer::update(Tensor& data, const Tensor& grad, std::vector<Tensor>& state) {
  Tensor& moment = state[0];
  decayByRate(data);
  // What the parameter and the moment share makes their updates one kernel.
  const Tensor change = grad - moment;
  data = data - learningRate(data.type()) * sign(moment + (1 - beta1_) * change);
  moment = moment + (1 - beta2_) * change;
}

}  // namespace fl
