#include "fl/custom/Operator.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "fl/base/Error.h"

namespace fl {
namespace {

ir::ValueType typeOf(const Tensor& tensor) { return {tensor.type(), tensor.shape()}; }

ir::ValueType ruledType(const CustomOperator& op, const std::vector<Tensor>& operands) {
  std::vector<ir::ValueType> types;
  std::ranges::transform(operands, std::back_inserter(types), typeOf);
  try {
    return op.type(types);
  } catch (const std::invalid_argument& refused) {
    throwUser(op.name, ": ", refused.what());
  }
}

std::vector<HostValues> hostValues(const std::vector<Tensor>& tensors) {
  std::vector<HostValues> values;
  for (const Tensor& tensor : tensors) values.push_back(hostValues(tensor));
  return values;
}

Tensor byReference(const CustomOperator& op, const std::vector<Tensor>& operands,
                   const ir::ValueType& type) {
  std::vector<double> values = op.reference(hostValues(operands));
  const auto size = static_cast<Dim>(values.size());
  FL_USER_CHECK(size == type.shape.elements(), op.name, ": its rule says ", type.toString(),
                ", but the reference gives ", size, " elements");
  return Tensor::fromVector(type.shape, std::move(values)).astype(type.type);
}

std::vector<Tensor> byDifferences(const CustomOperator& op, const std::vector<Tensor>& operands,
                                  const Tensor& gradOutput) {
  const std::vector<HostValues> values = hostValues(operands);
  const std::vector<double> weights = hostValues(gradOutput).values;
  std::vector<Tensor> gradients;
  for (size_t i = 0; i < operands.size(); ++i) {
    const auto& [type, shape] = values[i].type;
    gradients.push_back(
        isFloating(type)
            ? Tensor::fromVector(shape, differencesOf(op, values, i, weights)).astype(type)
            : Tensor());
  }
  return gradients;
}

void addGradients(const CustomOperator& op, const std::vector<Tensor>& gradients,
                  std::vector<Variable>& inputs) {
  FL_USER_CHECK(gradients.size() == inputs.size(), op.name, ": ", gradients.size(),
                " gradients of ", inputs.size(), " operands");
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].isCalcGrad() || gradients[i].isEmpty()) continue;
    const ir::ValueType got = typeOf(gradients[i]), wanted{inputs[i].type(), inputs[i].shape()};
    FL_USER_CHECK(got == wanted, op.name, ": the gradient of operand ", i, " is ", got.toString(),
                  ", not ", wanted.toString());
    inputs[i].addGrad(Variable(gradients[i], false));
  }
}

// Where single and double steps disagree the function has a bend between them: smaller steps stay
// on one side of it.
double derivative(const std::function<double(double distance)>& f, double step) {
  for (int attempt = 1;; ++attempt, step /= 10) {
    const double above = f(2 * step), wide = (above - f(-2 * step)) / (4 * step);
    const double narrow = (f(step) - f(-step)) / (2 * step);
    if (attempt == 3 || std::fabs(wide - narrow) <= 1e-7 * (std::fabs(narrow) + std::fabs(above))) {
      return (4 * narrow - wide) / 3;
    }
  }
}

}  // namespace

Variable CustomOperator::apply(const std::vector<Variable>& operands) const {
  std::vector<Tensor> tensors;
  std::vector<Variable> plain, edges;
  for (const Variable& operand : operands) {
    tensors.push_back(operand.tensor());
    plain.emplace_back(tensors.back(), false);
    edges.push_back(operand.withoutData());
  }
  const ir::ValueType wanted = ruledType(*this, tensors);
  const Variable result = compute ? compute(gradient ? plain : operands)
                                  : Variable(byReference(*this, tensors, wanted), false);
  const ir::ValueType got{result.type(), result.shape()};
  FL_USER_CHECK(got == wanted, name, ": its rule says ", wanted.toString(), ", but it computes ",
                got.toString());
  if (compute && !gradient) return result;
  const Tensor value = result.tensor();
  const auto pass = [op = *this, tensors, value](std::vector<Variable>& inputs,
                                                 const Variable& output) {
    const Tensor& of = output.tensor();
    addGradients(op, op.gradient ? op.gradient(tensors, value, of) : byDifferences(op, tensors, of),
                 inputs);
  };
  return Variable(value, std::move(edges), pass);
}

HostValues hostValues(const Tensor& tensor) {
  return {typeOf(tensor), tensor.astype(dtype::f64).toHostVector<double>()};
}

std::vector<double> differencesOf(const CustomOperator& op, std::vector<HostValues> operands,
                                  size_t n, const std::vector<double>& weights) {
  std::vector<double> slopes;
  for (double& value : operands[n].values) {
    const double center = value;
    const auto at = [&](double distance) {
      value = center + distance;
      const std::vector<double> result = op.reference(operands);
      double sum = 0;
      for (size_t i = 0; i < result.size(); ++i) sum += weights[i] * result[i];
      return sum;
    };
    slopes.push_back(derivative(at, 1e-4 * std::max(1.0, std::fabs(center))));
    value = center;
  }
  return slopes;
}

}  // namespace fl
