#include "fl/nn/modules/LayerNorm.h"

#include <algorithm>

#include "fl/autograd/Functions.h"
#include "fl/autograd/OptimMode.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Init.h"
#include "fl/nn/Serialization.h"
#include "fl/nn/Utils.h"
#include "fl/tensor/Composite.h"

CEREAL_REGISTER_TYPE(fl::LayerNorm)

namespace fl {
namespace {

constexpr int kDimensions = 4;

// The axes below kDimensions that are not in `axes`.
std::vector<int> complement(const std::vector<int>& axes) {
  std::vector<int> others;
  for (int axis = 0; axis < kDimensions; ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) others.push_back(axis);
  }
  return others;
}

using In = const Tensor&;

// The result, the mean and the reciprocal deviation. The weight and the bias broadcast; they may be
// empty.
constexpr auto normalized = [](In input, In weight, In bias, In epsilon,
                               const std::vector<int>& axes) {
  const Tensor x = input.astype(computeType(input.type()));
  const Tensor average = mean(x, axes, /*keepDims=*/true);
  const Tensor centered = x - average;
  const Tensor inverse = 1.0 / sqrt(mean(centered * centered, axes, /*keepDims=*/true) + epsilon);
  Tensor result = centered * inverse;
  if (!weight.isEmpty()) result = result * weight + bias;
  return std::vector<Tensor>{result.astype(input.type()), average, inverse};
};

// Of the input and, if there is a weight, of the weight and the bias.
constexpr auto gradients = [](In gradOutput, In input, In average, In inverse, In weight,
                              const std::vector<int>& axes) {
  const Tensor grad = gradOutput.astype(inverse.type());
  const Tensor standard = (input.astype(inverse.type()) - average) * inverse;
  const Tensor slope = weight.isEmpty() ? grad : grad * weight;
  // In this order, in which fusion finds that all of it is one sweep after another over each row.
  const Tensor tilt = mean(slope * standard, axes, /*keepDims=*/true);
  const Tensor level = mean(slope, axes, /*keepDims=*/true);
  std::vector<Tensor> results = {
      ((slope - level - standard * tilt) * inverse).astype(input.type())};
  if (!weight.isEmpty()) {
    results.push_back(detail::sumAs(grad * standard, weight.shape()));
    results.push_back(detail::sumAs(grad, weight.shape()));
  }
  return results;
};

// Of parameters that are none or two, in the shape that broadcasts to the input.
Variable normalize(const Variable& given, const std::vector<Variable>& params, const Shape& affine,
                   const std::vector<int>& axes, double eps) {
  const Variable input = detail::adjustInputType(given, "batchnorm");
  const dtype type = computeType(input.type());
  const auto shaped = [&](size_t i) {
    return params.empty() ? Tensor(type) : reshape(params[i].tensor().astype(type), affine);
  };
  const Tensor x = input.tensor(), weight = shaped(0);
  const std::vector<Tensor> results =
      composite("LayerNorm", normalized, x, weight, shaped(1), fromScalar(eps, type), axes);
  std::vector<Variable> edges = {input.withoutData()};
  for (const Variable& parameter : params) edges.push_back(parameter.withoutData());
  return Variable(results[0], std::move(edges),
                  [=, average = results[1], inverse = results[2]](std::vector<Variable>& inputs,
                                                                  const Variable& gradOutput) {
                    const std::vector<Tensor> grads =
                        composite("gradient", gradients, gradOutput.tensor(), x, average, inverse,
                                  weight, axes);
                    for (size_t i = 0; i < inputs.size(); ++i) {
                      if (Variable& variable = inputs[i]; variable.isCalcGrad()) {
                        const Tensor grad = reshape(grads[i], variable.shape());
                        variable.addGrad(Variable(grad.astype(variable.type()), false));
                      }
                    }
                  });
}

}  // namespace

LayerNorm::LayerNorm(int axis, double eps, bool affine, int axisSize)
    : LayerNorm(std::vector<int>{axis}, eps, affine, axisSize) {}

LayerNorm::LayerNorm(const std::vector<int>& axis, double eps, bool affine, int axisSize)
    : axisComplement_(complement(axis)), epsilon_(eps), affine_(affine), axisSize_(axisSize) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(!axis.empty() && axisComplement_.size() + axis.size() == kDimensions,
                "LayerNorm: axes ", detail::axesToString(axis), " are not different ones of ",
                kDimensions);
  FL_USER_CHECK(!axisComplement_.empty(), "LayerNorm: no axis is left to tell samples apart");
  FL_USER_CHECK(axisSize > 0 || axisSize == kLnVariableAxisSize,
                "LayerNorm: the size must be positive or kLnVariableAxisSize, not ", axisSize);
  if (affine) {
    const Shape shape({axisSize == kLnVariableAxisSize ? 1 : axisSize});
    params_ = {constant(1.0, shape), constant(0.0, shape)};
  }
}

std::vector<int> LayerNorm::axes() const { return complement(axisComplement_); }

Variable LayerNorm::forward(const Variable& input) {
  FL_API_ENTRY();
  FL_USER_CHECK(input.ndim() <= kDimensions, prettyString(), ": the input must have at most ",
                kDimensions, " dimensions, not ", typeToString(input.type(), input.shape()));
  Shape shape = input.shape();
  shape.get().resize(kDimensions, 1);
  Shape affine({1, 1, 1, 1});
  if (affine_ && axisSize_ != kLnVariableAxisSize) {
    for (const int axis : axes()) affine[axis] = shape[axis];
    FL_USER_CHECK(affine.elements() == axisSize_, prettyString(), ": the input ",
                  typeToString(input.type(), input.shape()), " has ", affine.elements(),
                  " elements to normalise, not ", axisSize_);
  }
  const Variable result = normalize(moddims(input, shape), params_, affine, axes(), epsilon_);
  return moddims(result, input.shape());
}

std::string LayerNorm::prettyString() const {
  return detail::concat("LayerNorm ( axis : ", detail::axesToString(axes()),
                        " , size : ", axisSize_, ")");
}

}  // namespace fl
