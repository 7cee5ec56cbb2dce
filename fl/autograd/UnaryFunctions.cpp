#include <numbers>

#include "fl/autograd/Functions.h"
#include "fl/autograd/Internal.h"
#include "fl/base/CallSite.h"

namespace fl {

using detail::floatLike;
using detail::toType;
using detail::unaryResult;

namespace {

using In = const Tensor&;

// `result`, a function of `input` whose gradient is gradient(grad, x) of the input itself.
template <typename Gradient>
Variable ofInput(Tensor result, const Variable& input, Gradient gradient) {
  return unaryResult(std::move(result), input, gradient, input.tensor());
}
// The same with gradient(grad, y) of the result.
template <typename Gradient>
Variable ofResult(const Tensor& result, const Variable& input, Gradient gradient) {
  return unaryResult(result, input, gradient, result);
}

// x^p with p in f64 where f32 would round it.
Tensor powerOf(const Tensor& x, double p) {
  return x.type() == dtype::f64 ? power(x, fromScalar(p, dtype::f64)) : power(x, p);
}

constexpr double kGeluScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
constexpr double kGeluCubic = 0.044715;

Tensor geluGate(const Tensor& x) { return fl::tanh(kGeluScale * (x + kGeluCubic * (x * x * x))); }

constexpr auto geluGradient = [](In grad, In input) {
  const Tensor x = input.astype(computeType(input.type())), gate = geluGate(x);
  const Tensor slope = kGeluScale * (1.0 + 3 * kGeluCubic * (x * x));
  const Tensor bend = 0.5 * x * (1.0 - gate * gate) * slope;
  // Far from 0, where the slope may be infinite, the gate is flat.
  return grad * (0.5 * (1.0 + gate) + where(absolute(gate) < 1.0, bend, 0.0));
};

// The probability of a normal number below sqrt(2) z.
Tensor normalBelow(const Tensor& z, const Tensor& half) { return half * fl::erf(z) + half; }

// The numbers are operands so that a plan of both passes has them, and the error function, once.
constexpr auto exactGeluGradient = [](In grad, In input, In half, In scale) {
  const Tensor x = input.astype(half.type()), z = x * scale;
  const Tensor density = (0.5 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi) * fl::exp(-(z * z));
  return grad * (normalBelow(z, half) + x * density);
};

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
  return ofResult(1.0 / input.tensor(), input, [](In grad, In y) { return -(grad * y * y); });
}

Variable exp(const Variable& in) {
  FL_API_ENTRY();
  const Variable input = FL_ADJUST_INPUT_TYPE(in);
  return ofResult(fl::exp(input.tensor()), input, [](In grad, In y) { return grad * y; });
}

Variable log(const Variable& in) {
  FL_API_ENTRY();
  const Variable input = FL_ADJUST_INPUT_TYPE(in);
  return ofInput(fl::log(input.tensor()), input, [](In grad, In x) { return grad / x; });
}

Variable log1p(const Variable& in) {
  FL_API_ENTRY();
  const Variable input = FL_ADJUST_INPUT_TYPE(in);
  return ofInput(fl::log1p(input.tensor()), input, [](In grad, In x) { return grad / (1.0 + x); });
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
  return ofInput(fl::sin(input.tensor()), input, [](In grad, In x) { return grad * fl::cos(x); });
}

Variable cos(const Variable& input) {
  FL_API_ENTRY();
  return ofInput(fl::cos(input.tensor()), input,
                 [](In grad, In x) { return -(grad * fl::sin(x)); });
}

Variable sqrt(const Variable& input) {
  FL_API_ENTRY();
  return ofResult(fl::sqrt(input.tensor()), input, [](In grad, In y) { return grad / (2.0 * y); });
}

Variable tanh(const Variable& input) {
  FL_API_ENTRY();
  return ofResult(fl::tanh(input.tensor()), input,
                  [](In grad, In y) { return grad * (1.0 - y * y); });
}

Variable clamp(const Variable& input, const double min, const double max) {
  FL_API_ENTRY();
  const dtype type = isFloating(input.type()) ? input.type() : dtype::f32;
  const Tensor low = fromScalar(min, type);
  const Tensor high = fromScalar(max, type);
  const Tensor result = clip(input.tensor(), low, high);
  const auto inside = [](In grad, In y, In low, In high) {
    return where(y > low && y < high, grad, 0.0);
  };
  return unaryResult(result, input, inside, result, low, high);
}

Variable sigmoid(const Variable& input) {
  FL_API_ENTRY();
  return ofResult(fl::sigmoid(input.tensor()), input,
                  [](In grad, In y) { return grad * y * (1.0 - y); });
}

Variable swish(const Variable& input, double beta) {
  FL_API_ENTRY();
  return input * sigmoid(beta * input);
}

Variable erf(const Variable& in) {
  FL_API_ENTRY();
  const Variable input = FL_ADJUST_INPUT_TYPE(in);
  return ofInput(fl::erf(input.tensor()), input, [](In grad, In x) {
    return grad * (2.0 * std::numbers::inv_sqrtpi * fl::exp(-(x * x)));
  });
}

Variable abs(const Variable& input) {
  FL_API_ENTRY();
  return ofInput(absolute(input.tensor()), input, [](In grad, In x) { return grad * sign(x); });
}

// Positive where the input is: the input itself need not be kept for the gradient.
Variable relu(const Variable& input) {
  FL_API_ENTRY();
  return ofResult(maximum(input.tensor(), fromScalar(0, input.type())), input,
                  [](In grad, In y) { return where(y > 0.0, grad, 0.0); });
}

Variable gelu(const Variable& in) {
  FL_API_ENTRY();
  const Variable input = FL_ADJUST_INPUT_TYPE(in);
  const auto gated = [](In input) {
    const Tensor x = input.astype(computeType(input.type()));
    return floatLike(0.5 * x * (1.0 + geluGate(x)), input.type());
  };
  return ofInput(composite("gelu", gated, input.tensor()), input, geluGradient);
}

Variable exactGelu(const Variable& in) {
  FL_API_ENTRY();
  const Variable input = FL_ADJUST_INPUT_TYPE(in);
  const dtype type = promote(input.type(), dtype::f32);  // small probabilities keep their digits
  const Tensor half = fromScalar(0.5, type), scale = fromScalar(0.5 * std::numbers::sqrt2, type);
  const auto weighted = [](In input, In half, In scale) {
    const Tensor x = input.astype(half.type());
    return floatLike(x * normalBelow(x * scale, half), input.type());
  };
  const Tensor x = input.tensor(), result = composite("exactGelu", weighted, x, half, scale);
  return unaryResult(result, input, exactGeluGradient, x, half, scale);
}

}  // namespace fl
