// What the gradients of Functions.h share: argument checks, reductions that undo broadcasting, and
// the construction of a result with its gradient. Private to this room.
//
// Values that a gradient needs are captured as Tensors when the function is called; the inputs of a
// result are edges without data (Variable::withoutData). So a later update in place of an input
// changes no gradient, and nothing is kept alive that the gradient does not read.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "fl/autograd/Functions.h"
#include "fl/autograd/Utils.h"
#include "fl/autograd/Variable.h"
#include "fl/base/Error.h"
#include "fl/tensor/Composite.h"

namespace fl::detail {

// Throws std::invalid_argument naming `function` unless `axis` is a dimension of `input`.
inline void checkAxis(const char* function, const Variable& input, int axis) {
  FL_USER_CHECK(axis >= 0 && axis < static_cast<int>(input.ndim()), function, ": no dimension ",
                axis, " in ", typeToString(input.type(), input.shape()));
}

// A result in the type of a floating input; integers have results that are none.
inline Tensor floatLike(Tensor result, dtype input) {
  return isFloating(input) ? toType(std::move(result), input) : result;
}

// For captures: a value is kept only if the gradient that reads it is wanted.
inline std::optional<Tensor> keptIf(bool wanted, const Tensor& tensor) {
  return wanted ? std::optional<Tensor>(tensor) : std::nullopt;
}

// Repeats `reduced`, what a reduction of a tensor of shape `shape` over `axes` (all, if none) left,
// to that shape.
Tensor repeatTo(const Tensor& reduced, const Shape& shape, const std::vector<int>& axes);

// `axes`, or all dimensions of `shape` if there are none; a scalar is reduced over any axes. Throws
// for an axis that does not exist.
std::vector<int> normalizedAxes(const char* function, const Shape& shape,
                                const std::vector<int>& axes);

// `shape` with size 1 at `axes`.
Shape withOnes(Shape shape, const std::vector<int>& axes);

inline void addGrad(Variable& variable, Tensor grad) {
  variable.addGrad(Variable(std::move(grad), false));
}

// `result`, a function of `input` whose gradient is gradient(gradOutput, saved...), a composite.
template <typename Gradient, typename... Saved>
Variable unaryResult(Tensor result, const Variable& input, Gradient gradient,
                     const Saved&... saved) {
  if (!input.isCalcGrad()) {
    return Variable(std::move(result), false);
  }
  return Variable(std::move(result), {input.withoutData()},
                  [=](std::vector<Variable>& inputs, const Variable& gradOutput) {
                    Tensor grad = composite("gradient", gradient, gradOutput.tensor(), saved...);
                    addGrad(inputs[0], toType(std::move(grad), inputs[0].type()));
                  });
}

// `result`, a function of two broadcast inputs. The gradients are functions of gradOutput in the
// result's shape; what broadcasting repeated is summed here.
template <typename LhsGradient, typename RhsGradient>
Variable binaryResult(Tensor result, const Variable& lhs, const Variable& rhs,
                      LhsGradient lhsGradient, RhsGradient rhsGradient) {
  if (!lhs.isCalcGrad() && !rhs.isCalcGrad()) {
    return Variable(std::move(result), false);
  }
  return Variable(
      std::move(result), {lhs.withoutData(), rhs.withoutData()},
      [lhsGradient = std::move(lhsGradient), rhsGradient = std::move(rhsGradient)](
          std::vector<Variable>& inputs, const Variable& gradOutput) {
        const Tensor& grad = gradOutput.tensor();
        if (inputs[0].isCalcGrad()) {
          addGrad(inputs[0], toType(sumAs(lhsGradient(grad), inputs[0].shape()), inputs[0].type()));
        }
        if (inputs[1].isCalcGrad()) {
          addGrad(inputs[1], toType(sumAs(rhsGradient(grad), inputs[1].shape()), inputs[1].type()));
        }
      });
}

}  // namespace fl::detail
