#include <numbers>

#include "fl/autograd/Functions.h"
#include "fl/autograd/Internal.h"
#include "fl/base/CallSite.h"

namespace fl {

using detail::floatLike;
using detail::toType;
using detail::unaryResult;

namespace {

// x^p with p in f64 where f32 would round it.
Tensor powerOf(const Tensor& x, double p) {
  return x.type() == dtype::f64 ? power(x, fromScalar(p, dtype::f64)) : power(x, p);
}

constexpr double kGeluScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
constexpr double kGeluCubic = 0.044715;

Tensor geluGate(const Tensor& x) { return fl::tanh(kGeluScale * (x + kGeluCubic * (x * x * x))); }

}  // namespace

Variable operator!(const Variable& input) {
  FL_API_ENTRY();
  return Variable(toType(!input.tensor(), input.type()), false);
}

Variable negate(const Variable& input) {
  FL_API_ENTRY();
  return unaryResult(negative(input.tensor()), input, [](const Tensor& grad) { return -grad; });
}

Variable reciprocal(const Variable& in) {
  FL_API_ENTRY();
  const Variable input = FL_ADJUST_INPUT_TYPE(in);
  const Tensor result = 1.0 / input.tensor();
  return unaryResult(result, input,
                     [result](const Tensor& grad) { return -(grad * result * result); });
}

Variable exp(const Variable& in) {
  FL_API_ENTRY();
  const Variable input = FL_ADJUST_INPUT_TYPE(in);
  const Tensor result = fl::exp(input.tensor());
  return unaryResult(result, input, [result](const Tensor& grad) { return grad * result; });
}

Variable log(const Variable& in) {
  FL_API_ENTRY();
  const Variable input = FL_ADJUST_INPUT_TYPE(in);
  return unaryResult(fl::log(input.tensor()), input,
                     [x = input.tensor()](const Tensor& grad) { return grad / x; });
}

Variable log1p(const Variable& in) {
  FL_API_ENTRY();
  const Variable input = FL_ADJUST_INPUT_TYPE(in);
  return unaryResult(fl::log1p(input.tensor()), input,
                     [x = input.tensor()](const Tensor& grad) { return grad / (1.0 + x); });
}

Variable pow(const Variable& in, double p) {
  FL_API_ENTRY();
  const Variable input = FL_ADJUST_INPUT_TYPE(in);
  const Tensor x = input.tensor();
  const Tensor result = powerOf(x, p);
  return unaryResult(floatLike(result, x.type()), input, [x, p](const Tensor& grad) {
    // x^-1 is infinite at 0, where the derivative of the constant x^0 is 0.
    return p == 0 ? grad * 0.0 : grad * (p * powerOf(x, p - 1));
  });
}

Variable sin(const Variable& input) {
  FL_API_ENTRY();
  return unaryResult(fl::sin(input.tensor()), input,
                     [x = input.tensor()](const Tensor& grad) { return grad * fl::cos(x); });
}

Variable cos(const Variable& input) {
  FL_API_ENTRY();
  return unaryResult(fl::cos(input.tensor()), input,
                     [x = input.tensor()](const Tensor& grad) { return -(grad * fl::sin(x)); });
}

Variable sqrt(const Variable& input) {
  FL_API_ENTRY();
  const Tensor result = fl::sqrt(input.tensor());
  return unaryResult(result, input, [result](const Tensor& grad) { return grad / (2.0 * result); });
}

Variable tanh(const Variable& input) {
  FL_API_ENTRY();
  const Tensor result = fl::tanh(input.tensor());
  return unaryResult(result, input,
                     [result](const Tensor& grad) { return grad * (1.0 - result * result); });
}

Variable clamp(const Variable& input, const double min, const double max) {
  FL_API_ENTRY();
  const Tensor low = fromScalar(min, input.type());
  const Tensor high = fromScalar(max, input.type());
  const Tensor result = clip(input.tensor(), low, high);
  return unaryResult(result, input, [result, low, high](const Tensor& grad) {
    return grad * (result > low && result < high);
  });
}

Variable sigmoid(const Variable& input) {
  FL_API_ENTRY();
  const Tensor result = fl::sigmoid(input.tensor());
  return unaryResult(result, input,
                     [result](const Tensor& grad) { return grad * result * (1.0 - result); });
}

Variable swish(const Variable& input, double beta) {
  FL_API_ENTRY();
  return input * sigmoid(beta * input);
}

Variable erf(const Variable& in) {
  FL_API_ENTRY();
  const Variable input = FL_ADJUST_INPUT_TYPE(in);
  return unaryResult(fl::erf(input.tensor()), input, [x = input.tensor()](const Tensor& grad) {
    return grad * (2.0 * std::numbers::inv_sqrtpi * fl::exp(-(x * x)));
  });
}

Variable abs(const Variable& input) {
  FL_API_ENTRY();
  return unaryResult(absolute(input.tensor()), input,
                     [x = input.tensor()](const Tensor& grad) { return grad * sign(x); });
}

// Positive where the input is: the input itself need not be kept for the gradient.
Variable relu(const Variable& input) {
  FL_API_ENTRY();
  const Tensor result = maximum(input.tensor(), fromScalar(0, input.type()));
  return unaryResult(result, input, [result](const Tensor& grad) { return grad * (result > 0.0); });
}

Variable gelu(const Variable& in) {
  FL_API_ENTRY();
  const Variable input = FL_ADJUST_INPUT_TYPE(in);
  const Tensor x = input.tensor();
  return unaryResult(0.5 * x * (1.0 + geluGate(x)), input, [x](const Tensor& grad) {
    const Tensor gate = geluGate(x);
    const Tensor slope = kGeluScale * (1.0 + 3 * kGeluCubic * (x * x));
    const Tensor bend = 0.5 * x * (1.0 - gate * gate) * slope;
    // Far from 0, where the slope may be infinite, the gate is flat.
    return grad * (0.5 * (1.0 + gate) + where(absolute(gate) < 1.0, bend, 0.0));
  });
}

}  // namespace fl
