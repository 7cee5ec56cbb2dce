#include "fl/optim/Optimizers.h"

#include "fl/tensor/Compute.h"

namespace fl {

FirstOrderOptimizer::FirstOrderOptimizer(const std::vector<Variable>& parameters,
                                         double learningRate)
    : parameters_(parameters), lr_(learningRate) {}

void FirstOrderOptimizer::zeroGrad() {
  for (Variable& parameter : parameters_) {
    parameter.zeroGrad();
  }
}

std::vector<Tensor> FirstOrderOptimizer::makeState() const {
  std::vector<Tensor> state;
  for (const Variable& parameter : parameters_) {
    state.push_back(full(parameter.shape(), 0.0, parameter.type()));
  }
  return state;
}

void FirstOrderOptimizer::evalParameters() {
  for (Variable& parameter : parameters_) {
    fl::eval(parameter.tensor());
  }
}

}  // namespace fl
