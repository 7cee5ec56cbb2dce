#include "fl/optim/DynamicScaler.h"

#include "fl/autograd/Functions.h"
#include "fl/autograd/tensor/AutogradOps.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"

namespace fl {

DynamicScaler::DynamicScaler(double initFactor, double maxFactor, unsigned updateInterval)
    : maxFactor_(maxFactor), updateInterval_(updateInterval) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(initFactor > 0 && initFactor <= maxFactor && updateInterval > 0,
                "DynamicScaler: needs 0 < initFactor <= maxFactor and updateInterval > 0, not ",
                initFactor, ", ", maxFactor, " and ", updateInterval);
  now_ = {full(Shape(), initFactor, dtype::f32), full(Shape(), 0.0, dtype::f32)};
  next_ = now_;
}

Variable DynamicScaler::scale(const Variable& loss) {
  FL_API_ENTRY();
  const dtype type = computeType(loss.type());
  return loss.astype(type) * Variable(now_.factor.astype(type), false);
}

RecordedScalar<bool> DynamicScaler::unscale(const std::vector<Variable>& parameters) {
  FL_API_ENTRY();
  Tensor finite = full(Shape(), true, dtype::b8);
  for (const Variable& parameter : detail::withGradients(parameters)) {
    Tensor grad = parameter.grad().tensor();
    grad = grad.astype(computeType(grad.type())) / now_.factor;
    finite = finite && !any(isnan(grad) || isinf(grad));
    parameter.grad() = Variable(std::move(grad), false);
  }
  const Tensor halved = minimum(now_.factor, maximum(now_.factor / 2, kAmpMinimumScaleFactorValue));
  const Tensor factor = where(finite, now_.factor, halved);
  const Tensor steps = where(finite, now_.finiteSteps + 1, 0.0);
  const Tensor grows = steps >= updateInterval_;
  set(&now_, {factor, steps});
  set(&next_, {where(grows, minimum(factor * 2, maxFactor_), factor), where(grows, 0.0, steps)});
  return RecordedScalar<bool>(finite);
}

void DynamicScaler::set(State* state, const State& to) {
  detail::setState(state->factor, to.factor);
  detail::setState(state->finiteSteps, to.finiteSteps);
}

void DynamicScaler::update() { set(&now_, next_); }

double DynamicScaler::getScaleFactor() const {
  FL_API_ENTRY();
  return now_.factor.asScalar<double>();
}

}  // namespace fl
