#include "fl/autograd/Functions.h"
#include "fl/autograd/Internal.h"
#include "fl/base/CallSite.h"
#include "fl/tensor/AutogradOps.h"
#include "fl/tensor/Random.h"

namespace fl {

using detail::addGrad;
using detail::checkAxis;
using detail::checkSameType;
using detail::keptIf;
using detail::sumTo;
using detail::unaryResult;

Variable conv2d(const Variable& input, const Variable& weights, int sx, int sy, int px, int py,
                int dx, int dy, int groups) {
  FL_API_ENTRY();
  return conv2d(input, weights, Variable(Tensor(input.type()), false), sx, sy, px, py, dx, dy,
                groups);
}

Variable conv2d(const Variable& input, const Variable& weights, const Variable& bias, int sx,
                int sy, int px, int py, int dx, int dy, int groups) {
  FL_API_ENTRY();
  checkSameType("conv2d", input, weights, bias);
  const Tensor& x = input.tensor();
  const Tensor& w = weights.tensor();
  Tensor result = conv2d(x, w, bias.tensor(), sx, sy, px, py, dx, dy, groups);
  std::vector<Variable> edges = {input.withoutData(), weights.withoutData()};
  if (!bias.isEmpty()) {
    edges.push_back(bias.withoutData());
  }
  const detail::Conv2DParameters parameters = {sx, sy, px, py, dx, dy, groups};
  return Variable(
      std::move(result), std::move(edges),
      [parameters, x = keptIf(weights.isCalcGrad(), x), w = keptIf(input.isCalcGrad(), w)](
          std::vector<Variable>& inputs, const Variable& gradOutput) {
        const Tensor& grad = gradOutput.tensor();
        if (inputs[0].isCalcGrad()) {
          addGrad(inputs[0], detail::conv2dBackwardData(grad, *w, inputs[0].shape(), parameters));
        }
        if (inputs[1].isCalcGrad()) {
          addGrad(inputs[1], detail::conv2dBackwardFilter(grad, *x, inputs[1].shape(), parameters));
        }
        if (inputs.size() > 2 && inputs[2].isCalcGrad()) {
          addGrad(inputs[2], sumTo(grad, inputs[2].shape()));
        }
      });
}

Variable pool2d(const Variable& input, int wx, int wy, int sx, int sy, int px, int py,
                PoolingMode mode) {
  FL_API_ENTRY();
  const Tensor x = input.tensor();
  return unaryResult(pool2d(x, wx, wy, sx, sy, px, py, mode), input, [=](const Tensor& grad) {
    return detail::pool2dBackward(grad, x, wx, wy, sx, sy, px, py, mode);
  });
}

Variable dropout(const Variable& input, double p) {
  FL_API_ENTRY();
  FL_USER_CHECK(p >= 0 && p <= 1, "dropout: the probability p must be in [0, 1], not ", p);
  if (p == 0) {
    return input;
  }
  const Tensor kept = rand(input.shape()) > p;
  const double scale = p < 1 ? 1 / (1 - p) : 0;
  return unaryResult(input.tensor() * kept * scale, input,
                     [kept, scale](const Tensor& grad) { return grad * kept * scale; });
}

Variable gatedlinearunit(const Variable& input, const int dim) {
  FL_API_ENTRY();
  checkAxis("gatedlinearunit", input, dim);
  const Dim size = input.dim(dim);
  FL_USER_CHECK(size % 2 == 0, "gatedlinearunit: dimension ", dim, " of ",
                typeToString(input.type(), input.shape()), " must be even");
  const std::vector<Variable> halves = split(input, static_cast<long>(size / 2), dim);
  return halves[0] * sigmoid(halves[1]);
}

}  // namespace fl
