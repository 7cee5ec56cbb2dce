#include "fl/optim/DynamicScaler.h"

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"

namespace fl {

DynamicScaler::DynamicScaler(double initFactor, double maxFactor, unsigned updateInterval)
    : maxFactor_(maxFactor), updateInterval_(updateInterval) {
  FL_API_ENTRY();
  FL_USER_CHECK(initFactor > 0 && initFactor <= maxFactor && updateInterval > 0,
                "DynamicScaler: needs 0 < initFactor <= maxFactor and updateInterval > 0, not ",
                initFactor, ", ", maxFactor, " and ", updateInterval);
  factor_ = full(Shape(), initFactor, dtype::f32);
  finiteSteps_ = full(Shape(), 0.0, dtype::f32);
}

Variable DynamicScaler::scale(const Variable& loss) {
  FL_API_ENTRY();
  const dtype type = computeType(loss.type());
  return loss.astype(type) * Variable(factor_.astype(type), false);
}

RecordedScalar<bool> DynamicScaler::unscale(const std::vector<Variable>& parameters) {
  FL_API_ENTRY();
  Tensor finite = full(Shape(), true, dtype::b8);
  for (const Variable& parameter : parameters) {
    if (parameter.isGradAvailable()) {
      Tensor grad = parameter.grad().tensor();
      grad = grad.astype(computeType(grad.type())) / factor_;
      finite = finite && !any(isnan(grad) || isinf(grad));
      parameter.grad() = Variable(std::move(grad), false);
    }
  }
  factor_ =
      where(finite, factor_, minimum(factor_, maximum(factor_ / 2, kAmpMinimumScaleFactorValue)));
  finiteSteps_ = where(finite, finiteSteps_ + 1, 0.0);
  return RecordedScalar<bool>(finite);
}

void DynamicScaler::update() {
  FL_API_ENTRY();
  const Tensor grows = finiteSteps_ >= updateInterval_;
  factor_ = where(grows, minimum(factor_ * 2, maxFactor_), factor_);
  finiteSteps_ = where(grows, 0.0, finiteSteps_);
}

double DynamicScaler::getScaleFactor() const {
  FL_API_ENTRY();
  return factor_.asScalar<double>();
}

}  // namespace fl
