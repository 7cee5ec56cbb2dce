#include "fl/optim/Utils.h"

#include <unordered_set>

#include "fl/base/CallSite.h"

namespace fl {

std::vector<Variable> detail::withGradients(const std::vector<Variable>& parameters) {
  std::vector<Variable> result;
  std::unordered_set<const Variable*> seen;
  for (const Variable& parameter : parameters) {
    if (parameter.isGradAvailable() && seen.insert(&parameter.grad()).second) {
      result.push_back(parameter);
    }
  }
  return result;
}

RecordedScalar<double> clipGradNorm(const std::vector<Variable>& parameters, double maxNorm) {
  FL_API_ENTRY();
  Tensor squares = full(Shape(), 0.0, dtype::f64);
  const std::vector<Variable> given = detail::withGradients(parameters);
  for (const Variable& parameter : given) {
    const Tensor& grad = parameter.grad().tensor();
    const Tensor wide = grad.astype(computeType(grad.type()));
    squares = squares + sum(wide * wide).astype(dtype::f64);
  }
  const Tensor norm = sqrt(squares);
  const Tensor scale = minimum(maxNorm / (norm + 1e-6), 1.0);
  for (const Variable& parameter : given) {
    const Tensor& grad = parameter.grad().tensor();
    const dtype wide = computeType(grad.type());
    Tensor scaled = (grad.astype(wide) * scale.astype(wide)).astype(grad.type());
    // A Variable of its own: a handle on the gradient that was handed out keeps its values.
    parameter.grad() = Variable(std::move(scaled), false);
  }
  return RecordedScalar<double>(norm);
}

}  // namespace fl
