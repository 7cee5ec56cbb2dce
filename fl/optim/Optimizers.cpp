#include "fl/optim/Optimizers.h"

#include "fl/base/CallSite.h"

namespace fl {

FirstOrderOptimizer::FirstOrderOptimizer(const std::vector<Variable>& parameters,
                                         double learningRate)
    : parameters_(parameters), lr_(learningRate) {}

void FirstOrderOptimizer::stepIf(const Tensor& condition) {
  FL_API_ENTRY();
  if (condition.asScalar<bool>()) {
    step();
  }
}

void FirstOrderOptimizer::zeroGrad() {
  for (Variable& parameter : parameters_) {
    parameter.zeroGrad();
  }
}

}  // namespace fl
