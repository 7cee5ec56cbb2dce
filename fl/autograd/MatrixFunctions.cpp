#include "fl/autograd/Functions.h"
#include "fl/autograd/Internal.h"
#include "fl/base/CallSite.h"

namespace fl {

using detail::addGrad;
using detail::checkSameType;
using detail::keptIf;

namespace {

constexpr MatrixProperty kPlain = MatrixProperty::None;
constexpr MatrixProperty kTransposed = MatrixProperty::Transpose;

MatrixProperty flipped(MatrixProperty property) {
  return property == kPlain ? kTransposed : kPlain;
}

// The operands of result = matmul(lhs, rhs) as matrices: a 1-D lhs is a row, a 1-D rhs a column,
// and neither is transposed.
struct Matrices {
  Matrices(const Tensor& left, const Tensor& right, MatrixProperty leftProperty,
           MatrixProperty rightProperty)
      : lhs(left.ndim() == 1 ? reshape(left, {1, left.dim(0)}) : left),
        rhs(right.ndim() == 1 ? reshape(right, {right.dim(0), 1}) : right),
        lhsProperty(left.ndim() == 1 ? kPlain : leftProperty),
        rhsProperty(right.ndim() == 1 ? kPlain : rightProperty) {}

  // The result's gradient with the rows and columns that 1-D operands left out.
  Tensor withBothDimensions(const Tensor& gradOutput) const {
    Shape shape = lhs.ndim() > rhs.ndim() ? lhs.shape() : rhs.shape();
    shape[0] = lhs.dim(lhsProperty == kPlain ? 0 : 1);
    shape[1] = rhs.dim(rhsProperty == kPlain ? 1 : 0);
    return gradOutput.shape() == shape ? gradOutput : reshape(gradOutput, shape);
  }

  // With A and B the operands as multiplied: dA = g B', dB = A' g, transposed if the operand was.
  Tensor lhsGradient(const Tensor& grad) const {
    const Tensor result = lhsProperty == kPlain ? matmul(grad, rhs, kPlain, flipped(rhsProperty))
                                                : matmul(rhs, grad, rhsProperty, kTransposed);
    return detail::sumAs(result, lhs.shape());
  }
  Tensor rhsGradient(const Tensor& grad) const {
    const Tensor result = rhsProperty == kPlain ? matmul(lhs, grad, flipped(lhsProperty), kPlain)
                                                : matmul(grad, lhs, kTransposed, lhsProperty);
    return detail::sumAs(result, rhs.shape());
  }

  Tensor lhs;
  Tensor rhs;
  MatrixProperty lhsProperty;
  MatrixProperty rhsProperty;
};

Variable product(const char* function, const Variable& lhs, const Variable& rhs,
                 MatrixProperty lhsProperty, MatrixProperty rhsProperty) {
  checkSameType(function, lhs, rhs);
  Tensor result = matmul(lhs.tensor(), rhs.tensor(), lhsProperty, rhsProperty);
  if (!lhs.isCalcGrad() && !rhs.isCalcGrad()) return Variable(std::move(result), false);
  return Variable(std::move(result), {lhs.withoutData(), rhs.withoutData()},
                  [matrices = Matrices(lhs.tensor(), rhs.tensor(), lhsProperty, rhsProperty)](
                      std::vector<Variable>& inputs, const Variable& gradOutput) {
                    const Tensor grad = matrices.withBothDimensions(gradOutput.tensor());
                    if (inputs[0].isCalcGrad()) {
                      addGrad(inputs[0], reshape(matrices.lhsGradient(grad), inputs[0].shape()));
                    }
                    if (inputs[1].isCalcGrad()) {
                      addGrad(inputs[1], reshape(matrices.rhsGradient(grad), inputs[1].shape()));
                    }
                  });
}

// (in, ...) as (in, all the rest).
Tensor asMatrix(const Tensor& tensor) {
  Dim rest = 1;
  for (int i = 1; i < tensor.ndim(); ++i) rest *= tensor.dim(i);
  return tensor.ndim() == 2 ? tensor : reshape(tensor, {tensor.dim(0), rest});
}

void checkLinear(const Variable& input, const Variable& weight, const Variable& bias) {
  FL_USER_CHECK(weight.ndim() == 2 && input.ndim() >= 1 && input.dim(0) == weight.dim(1),
                "linear: input ", typeToString(input.type(), input.shape()),
                " does not fit weight ", typeToString(weight.type(), weight.shape()),
                ": the input's first dimension must be the weight's second");
  FL_USER_CHECK(bias.isEmpty() || bias.shape() == Shape({weight.dim(0)}), "linear: bias ",
                typeToString(bias.type(), bias.shape()), " does not fit weight ",
                typeToString(weight.type(), weight.shape()), ": it must have shape (",
                weight.dim(0), ")");
}

}  // namespace

Variable matmul(const Variable& lhs, const Variable& rhs) {
  FL_API_ENTRY();
  return product("matmul", lhs, rhs, kPlain, kPlain);
}

Variable matmulTN(const Variable& lhs, const Variable& rhs) {
  FL_API_ENTRY();
  return product("matmulTN", lhs, rhs, kTransposed, kPlain);
}

Variable matmulNT(const Variable& lhs, const Variable& rhs) {
  FL_API_ENTRY();
  return product("matmulNT", lhs, rhs, kPlain, kTransposed);
}

Variable linear(const Variable& input, const Variable& weight) {
  FL_API_ENTRY();
  return linear(input, weight, Variable(Tensor(input.type()), false));
}

Variable linear(const Variable& in, const Variable& wt, const Variable& bs) {
  FL_API_ENTRY();
  const Variable input = FL_ADJUST_INPUT_TYPE(in);
  const Variable weight = FL_ADJUST_INPUT_TYPE(wt);
  const Variable bias = FL_ADJUST_INPUT_TYPE(bs);
  checkSameType("linear", input, weight, bias);
  checkLinear(input, weight, bias);
  const Tensor x = asMatrix(input.tensor());
  const Tensor w = weight.tensor();
  Shape shape = input.shape();
  shape[0] = weight.dim(0);
  Tensor result = matmul(w, x);
  std::vector<Variable> edges = {input.withoutData(), weight.withoutData()};
  if (!bias.isEmpty()) {
    result = result + bias.tensor();
    edges.push_back(bias.withoutData());
  }
  result = result.shape() == shape ? result : reshape(result, shape);
  return Variable(std::move(result), std::move(edges),
                  [x = keptIf(weight.isCalcGrad(), x), w = keptIf(input.isCalcGrad(), w)](
                      std::vector<Variable>& inputs, const Variable& gradOutput) {
                    const Tensor grad = asMatrix(gradOutput.tensor());
                    if (inputs[0].isCalcGrad()) {
                      addGrad(inputs[0],
                              reshape(matmul(*w, grad, kTransposed, kPlain), inputs[0].shape()));
                    }
                    if (inputs[1].isCalcGrad()) {
                      addGrad(inputs[1], matmul(grad, *x, kPlain, kTransposed));
                    }
                    if (inputs.size() > 2 && inputs[2].isCalcGrad()) {
                      addGrad(inputs[2], detail::sumAs(grad, inputs[2].shape()));
                    }
                  });
}

}  // namespace fl
