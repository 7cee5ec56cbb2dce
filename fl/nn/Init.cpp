#include "fl/nn/Init.h"

#include <cmath>
#include <numbers>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/tensor/Random.h"

namespace fl {
namespace detail {
namespace {

double kaimingDeviation(int fanIn) {
  FL_USER_CHECK(fanIn > 0, "kaiming: fanIn must be positive, not ", fanIn);
  return std::sqrt(1.0 / fanIn);
}

double glorotDeviation(int fanIn, int fanOut) {
  FL_USER_CHECK(fanIn > 0 && fanOut > 0, "glorot: fanIn and fanOut must be positive, not ", fanIn,
                " and ", fanOut);
  return std::sqrt(2.0 / (static_cast<double>(fanIn) + fanOut));
}

Tensor uniformOfDeviation(const Shape& shape, double deviation, dtype type) {
  const double bound = std::sqrt(3.0) * deviation;
  return detail::uniform(shape, -bound, bound, type);
}

}  // namespace

Tensor uniform(const Shape& shape, double min, double max, dtype type) {
  FL_API_ENTRY();
  FL_USER_CHECK(isFloating(type), "uniform: ", type, " is no floating dtype");
  return (max - min) * rand(shape, type) + min;
}

Tensor normal(const Shape& shape, double stdv, double mean, dtype type) {
  FL_API_ENTRY();
  return stdv * randn(shape, type) + mean;
}

Tensor kaimingUniform(const Shape& shape, int fanIn, dtype type) {
  FL_API_ENTRY();
  return uniformOfDeviation(shape, kaimingDeviation(fanIn), type);
}

Tensor kaimingNormal(const Shape& shape, int fanIn, dtype type) {
  FL_API_ENTRY();
  return detail::normal(shape, kaimingDeviation(fanIn), 0, type);
}

Tensor glorotUniform(const Shape& shape, int fanIn, int fanOut, dtype type) {
  FL_API_ENTRY();
  return uniformOfDeviation(shape, glorotDeviation(fanIn, fanOut), type);
}

Tensor glorotNormal(const Shape& shape, int fanIn, int fanOut, dtype type) {
  FL_API_ENTRY();
  return detail::normal(shape, glorotDeviation(fanIn, fanOut), 0, type);
}

Tensor erfinv(const Tensor& y) {
  FL_API_ENTRY();
  constexpr double kA = 0.147;
  const Tensor logarithm = log((1.0 - y) * (1.0 + y));
  const Tensor half = 2 / (std::numbers::pi * kA) + 0.5 * logarithm;
  // Rounding may leave less than nothing near 0.
  const Tensor square = maximum(sqrt(half * half - logarithm / kA) - half, 0.0);
  const Tensor start = sign(y) * sqrt(square);
  Tensor x = start;
  // 2e-3 from the result at first; each step cubes that.
  for (int step = 0; step < 2; ++step) {
    const Tensor newton = (erf(x) - y) * exp(x * x) * (0.5 / std::numbers::inv_sqrtpi);
    x = x - newton / (1.0 + x * newton);
  }
  return where(absolute(y) < 1.0, x, start);
}

}  // namespace detail

Variable input(const Tensor& arr) { return Variable(arr, false); }

Variable noGrad(const Tensor& arr) { return Variable(arr, false); }

Variable param(const Tensor& arr) { return Variable(arr, true); }

Variable constant(double val, int outputSize, int inputSize, dtype type, bool calcGrad) {
  FL_API_ENTRY();
  return constant(val, Shape({outputSize, inputSize}), type, calcGrad);
}

Variable constant(double val, const Shape& shape, dtype type, bool calcGrad) {
  FL_API_ENTRY();
  return Variable(full(shape, val, type), calcGrad);
}

Variable identity(int outputSize, int inputSize, dtype type, bool calcGrad) {
  FL_API_ENTRY();
  return identity(Shape({outputSize, inputSize}), type, calcGrad);
}

Variable identity(const Shape& shape, dtype type, bool calcGrad) {
  FL_API_ENTRY();
  FL_USER_CHECK(shape.ndim() == 2 && shape[0] == shape[1], "identity: shape ", shape,
                " is not square");
  return Variable(identity(shape[0], type), calcGrad);
}

Variable uniform(int outputSize, int inputSize, double min, double max, dtype type, bool calcGrad) {
  FL_API_ENTRY();
  return uniform(Shape({outputSize, inputSize}), min, max, type, calcGrad);
}

Variable uniform(const Shape& shape, double min, double max, dtype type, bool calcGrad) {
  FL_API_ENTRY();
  return Variable(detail::uniform(shape, min, max, type), calcGrad);
}

Variable normal(int outputSize, int inputSize, double stdv, double mean, dtype type,
                bool calcGrad) {
  FL_API_ENTRY();
  return normal(Shape({outputSize, inputSize}), stdv, mean, type, calcGrad);
}

Variable normal(const Shape& shape, double stdv, double mean, dtype type, bool calcGrad) {
  FL_API_ENTRY();
  return Variable(detail::normal(shape, stdv, mean, type), calcGrad);
}

Variable kaimingUniform(const Shape& shape, int fanIn, dtype type, bool calcGrad) {
  FL_API_ENTRY();
  return Variable(detail::kaimingUniform(shape, fanIn, type), calcGrad);
}

Variable kaimingNormal(const Shape& shape, int fanIn, dtype type, bool calcGrad) {
  FL_API_ENTRY();
  return Variable(detail::kaimingNormal(shape, fanIn, type), calcGrad);
}

Variable glorotUniform(const Shape& shape, int fanIn, int fanOut, dtype type, bool calcGrad) {
  FL_API_ENTRY();
  return Variable(detail::glorotUniform(shape, fanIn, fanOut, type), calcGrad);
}

Variable glorotNormal(const Shape& shape, int fanIn, int fanOut, dtype type, bool calcGrad) {
  FL_API_ENTRY();
  return Variable(detail::glorotNormal(shape, fanIn, fanOut, type), calcGrad);
}

Variable truncNormal(const Shape& shape, double stdv, double mean, double minCutOff,
                     double maxCutOff, dtype type, bool calcGrad) {
  FL_API_ENTRY();
  FL_USER_CHECK(stdv > 0 && minCutOff < maxCutOff, "truncNormal: the deviation must be positive, ",
                "not ", stdv, ", and the cut-offs in order, not ", minCutOff, " and ", maxCutOff);
  const auto erfOf = [&](double x) { return std::erf((x - mean) / (stdv * std::sqrt(2.0))); };
  const Tensor erfs = detail::uniform(shape, erfOf(minCutOff), erfOf(maxCutOff));
  const Tensor values = stdv * std::sqrt(2.0) * detail::erfinv(erfs) + mean;
  // Also where rounding made an infinity.
  return Variable(clip(values, minCutOff, maxCutOff).astype(type), calcGrad);
}

}  // namespace fl
