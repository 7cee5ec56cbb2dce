#include <cmath>

#include "fl/autograd/Functions.h"
#include "fl/autograd/Internal.h"
#include "fl/base/CallSite.h"

namespace fl {

using detail::checkAxis;
using detail::floatLike;
using detail::normalizedAxes;
using detail::repeatTo;
using detail::toType;
using detail::unaryResult;

namespace {

// `grad` by a factor that its own 16 bits might not hold.
Tensor scaled(const Tensor& grad, double factor) {
  return toType(toType(grad, computeType(grad.type())) * factor, grad.type());
}

double countOf(const Shape& shape, const std::vector<int>& axes) {
  Dim count = 1;
  for (int axis : axes) count *= shape[axis];
  return static_cast<double>(count);
}

}  // namespace

Variable sum(const Variable& in, const std::vector<int>& axes, bool keepDims) {
  FL_API_ENTRY();
  const Variable input = FL_ADJUST_INPUT_TYPE(in);
  const Shape shape = input.shape();
  const std::vector<int> reduced = normalizedAxes("sum", shape, axes);
  return unaryResult(
      toType(sum(input.tensor(), axes, keepDims), input.type()), input,
      [shape, reduced](const Tensor& grad) { return repeatTo(grad, shape, reduced); });
}

Variable mean(const Variable& in, const std::vector<int>& axes, bool keepDims) {
  FL_API_ENTRY();
  const Variable input = FL_ADJUST_INPUT_TYPE(in);
  const Shape shape = input.shape();
  const std::vector<int> reduced = normalizedAxes("mean", shape, axes);
  return unaryResult(mean(input.tensor(), axes, keepDims), input,
                     [shape, reduced](const Tensor& grad) {
                       return repeatTo(scaled(grad, 1 / countOf(shape, reduced)), shape, reduced);
                     });
}

Variable var(const Variable& in, const std::vector<int>& axes, const bool isbiased, bool keepDims) {
  FL_API_ENTRY();
  const Variable input = FL_ADJUST_INPUT_TYPE(in);
  const Tensor x = input.tensor();
  const std::vector<int> reduced = normalizedAxes("var", x.shape(), axes);
  FL_USER_CHECK(isbiased || countOf(x.shape(), reduced) != 1,
                "var: no unbiased variance of one sample, in ", typeToString(x.type(), x.shape()));
  const auto gradient = [](const Tensor& grad, const Tensor& x, const std::vector<int>& reduced,
                           bool isbiased) {
    const double count = countOf(x.shape(), reduced);
    const Tensor deviation = x - mean(x, reduced, /*keepDims=*/true);
    const double factor = 2 / (isbiased ? count : count - 1);
    return repeatTo(scaled(grad, factor), x.shape(), reduced) * deviation;
  };
  return unaryResult(var(x, axes, /*bias=*/!isbiased, keepDims), input, gradient, x, reduced,
                     isbiased);
}

Variable norm(const Variable& in, const std::vector<int>& axes, double p, bool keepDims) {
  FL_API_ENTRY();
  const Variable input = FL_ADJUST_INPUT_TYPE(in);
  FL_USER_CHECK(p > 0, "norm: p must be positive, not ", p);
  const Tensor x = input.tensor();
  const std::vector<int> reduced = normalizedAxes("norm", x.shape(), axes);
  const Tensor result = floatLike(norm(x, axes, p, keepDims), input.type());
  return unaryResult(result, input, [in = x, reduced, of = result, p](const Tensor& upstream) {
    // Factors may be too large, or too small, for 16 bits where the gradient is not.
    const dtype type = computeType(in.type());
    const Tensor x = toType(in, type), result = toType(of, type), grad = toType(upstream, type);
    const auto repeated = [&](const Tensor& tensor) {
      return repeatTo(tensor, x.shape(), reduced);
    };
    if (std::isinf(p)) {  // the largest elements share the gradient
      const Tensor largest = (absolute(x) == repeated(result)).astype(grad.type());
      const Tensor count = sum(largest, reduced, /*keepDims=*/true);
      return sign(x) * largest * repeated(grad) / count;
    }
    // The slopes of a norm of 0 lie around 0; so do those at an element of 0.
    const Tensor share =
        repeated(where(result == 0, 0, grad / (p == 2 ? result : power(result, p - 1))));
    const Tensor slope = p == 2 ? x : sign(x) * power(absolute(x), p - 1);
    return (p < 1 ? where(x == 0, 0, slope) : slope) * share;
  });
}

Variable normalize(const Variable& in, const std::vector<int>& axes, double p, double eps) {
  FL_API_ENTRY();
  const Variable input = FL_ADJUST_INPUT_TYPE(in);
  return input / max(norm(input, axes, p, /*keepDims=*/true), eps);
}

Variable softmax(const Variable& in, const int dim) {
  FL_API_ENTRY();
  const Variable input = FL_ADJUST_INPUT_TYPE(in);
  checkAxis("softmax", input, dim);
  const auto shares = [](const Tensor& in, int dim) {
    const Tensor x = detail::toType(in, computeType(in.type()));
    const Tensor weights = fl::exp(x - amax(x, {dim}, /*keepDims=*/true));
    // One division a line, not one an element.
    const Tensor share = 1.0 / sum(weights, {dim}, /*keepDims=*/true);
    return weights * share;
  };
  const Tensor result = composite("softmax", shares, input.tensor(), dim);
  const auto gradient = [](const Tensor& grad, const Tensor& result, int dim) {
    const Tensor weighted = grad * result;
    return weighted - result * sum(weighted, {dim}, /*keepDims=*/true);
  };
  return unaryResult(result, input, gradient, result, dim);
}

Variable logSoftmax(const Variable& in, const int dim) {
  FL_API_ENTRY();
  const Variable input = FL_ADJUST_INPUT_TYPE(in);
  checkAxis("logSoftmax", input, dim);
  const auto logShares = [](const Tensor& in, int dim) {
    const Tensor x = detail::toType(in, computeType(in.type()));
    const Tensor shifted = x - amax(x, {dim}, /*keepDims=*/true);
    const Tensor total = sum(fl::exp(shifted), {dim}, /*keepDims=*/true);
    return shifted - fl::log(total);
  };
  const Tensor result = composite("logSoftmax", logShares, input.tensor(), dim);
  const auto gradient = [](const Tensor& grad, const Tensor& result, int dim) {
    return grad - fl::exp(result) * sum(grad, {dim}, /*keepDims=*/true);
  };
  return unaryResult(result, input, gradient, result, dim);
}

}  // namespace fl
