#include "fl/optim/Optimizers.h"

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/tensor/Capture.h"

namespace fl {

FirstOrderOptimizer::FirstOrderOptimizer(const std::vector<Variable>& parameters,
                                         double learningRate)
    : parameters_(parameters), lr_(learningRate) {}

void FirstOrderOptimizer::stepIf(const Tensor& condition) {
  FL_API_ENTRY();
  if (scalarCondition(condition).asScalar<bool>()) step();
}

Tensor FirstOrderOptimizer::learningRate(dtype type) const {
  return hostNumber([this, type] { return Number::of(lr_, type); });
}

Tensor FirstOrderOptimizer::scalarCondition(const Tensor& condition) {
  FL_USER_CHECK(condition.type() == dtype::b8 && condition.elements() == 1,
                "stepIf: the condition ", typeToString(condition.type(), condition.shape()),
                " must be one b8 element");
  return reshape(condition, {});
}

void FirstOrderOptimizer::zeroGrad() {
  for (Variable& parameter : parameters_) parameter.zeroGrad();
}

}  // namespace fl
