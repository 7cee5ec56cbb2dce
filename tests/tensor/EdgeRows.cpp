#include "tests/tensor/EdgeRows.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fl::testing {
namespace {

using Reals = const Operands<double>&;
using Wholes = const Operands<Whole>&;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

auto unary(Tensor (*function)(const Tensor&)) {
  return [=](const std::vector<Tensor>& operands) { return function(operands[0]); };
}
auto binary(Tensor (*function)(const Tensor&, const Tensor&)) {
  return [=](const std::vector<Tensor>& operands) { return function(operands[0], operands[1]); };
}

EdgeRow function(const char* name, Tensor (*apply)(const Tensor&), double (*reference)(double)) {
  return {name, unary(apply), EdgeRow::Approximated, [=](Reals v) { return reference(v.x); }, {}};
}
// Correctly rounded.
EdgeRow rounded(const char* name, Tensor (*apply)(const Tensor&), double (*reference)(double)) {
  return {name, unary(apply), EdgeRow::Exact, [=](Reals v) { return reference(v.x); }, {}};
}
// Floats and integers by the same expression.
template <typename F>
EdgeRow both(const char* name, Tensor (*apply)(const Tensor&), F reference) {
  return {name, unary(apply), EdgeRow::Exact, reference, reference};
}
template <typename F>
EdgeRow both(const char* name, Tensor (*apply)(const Tensor&, const Tensor&), F reference) {
  return {name, binary(apply), EdgeRow::Exact, reference, reference};
}
template <typename F, typename I>
EdgeRow each(const char* name, Tensor (*apply)(const Tensor&, const Tensor&), F real, I whole) {
  return {name, binary(apply), EdgeRow::Exact, real, whole};
}
template <typename I>
EdgeRow integral(const char* name, Tensor (*apply)(const Tensor&, const Tensor&), I whole) {
  return {name, binary(apply), EdgeRow::Exact, {}, whole};
}
bool eitherNan(Reals v) { return std::isnan(v.x) || std::isnan(v.y); }

// The low 64 bits, which is all that any dtype keeps.
Whole product(Wholes v) {
  return static_cast<Whole>(static_cast<uint64_t>(v.x) * static_cast<uint64_t>(v.y));
}
Whole shiftedLeft(Wholes v) {
  const bool inRange = 0 <= v.y && v.y < v.width;
  return inRange ? static_cast<Whole>(static_cast<uint64_t>(v.x) << static_cast<int>(v.y)) : 0;
}
Whole shiftedRight(Wholes v) {
  const bool inRange = 0 <= v.y && v.y < v.width;
  return inRange ? v.x >> static_cast<int>(v.y) : (v.x < 0 ? -1 : 0);
}
double signOf(Reals v) { return v.x < 0 ? -1 : v.x > 0 ? 1 : v.x; }

std::vector<EdgeRow> unaryRows() {
  return {
      {"negative", unary(&fl::negative), EdgeRow::Exact, [](Reals v) { return -v.x; },
       [](Wholes v) { return -v.x; }},
      {"absolute", unary(&fl::absolute), EdgeRow::Exact, [](Reals v) { return std::fabs(v.x); },
       [](Wholes v) { return v.x < 0 ? -v.x : v.x; }},
      both("logicalNot", &fl::logicalNot, [](auto& v) { return v.x == 0; }),
      function("exp", &fl::exp, std::exp),
      function("log", &fl::log, std::log),
      function("log1p", &fl::log1p, std::log1p),
      function("sin", &fl::sin, std::sin),
      function("cos", &fl::cos, std::cos),
      rounded("sqrt", &fl::sqrt, std::sqrt),
      function("tanh", &fl::tanh, std::tanh),
      function("erf", &fl::erf, std::erf),
      rounded("floor", &fl::floor, std::floor),
      rounded("ceil", &fl::ceil, std::ceil),
      rounded("rint", &fl::rint, std::nearbyint),
      {"sign", unary(&fl::sign), EdgeRow::Exact, signOf,
       [](Wholes v) { return v.x < 0   ? -1
                             : v.x > 0 ? 1
                                       : 0; }},
      rounded("isnan", &fl::isnan, [](double x) -> double { return std::isnan(x); }),
      rounded("isinf", &fl::isinf, [](double x) -> double { return std::isinf(x); }),
  };
}

std::vector<EdgeRow> arithmeticRows() {
  return {
      both("add", &fl::add, [](auto& v) { return v.x + v.y; }),
      both("sub", &fl::sub, [](auto& v) { return v.x - v.y; }),
      each(
          "mul", &fl::mul, [](Reals v) { return v.x * v.y; }, product),
      each(
          "div", &fl::div, [](Reals v) { return v.x / v.y; },
          [](Wholes v) { return v.y == 0 ? 0 : v.x / v.y; }),
      each(
          "mod", &fl::mod, [](Reals v) { return std::fmod(v.x, v.y); },
          [](Wholes v) { return v.y == 0 ? 0 : v.x % v.y; }),
      // Of two zeros the second, so that all executors agree on the sign.
      each(
          "minimum", &fl::minimum,
          [](Reals v) { return eitherNan(v) ? kNan
                               : v.x < v.y  ? v.x
                                            : v.y; },
          [](Wholes v) { return std::min(v.x, v.y); }),
      each(
          "maximum", &fl::maximum,
          [](Reals v) { return eitherNan(v) ? kNan
                               : v.x > v.y  ? v.x
                                            : v.y; },
          [](Wholes v) { return std::max(v.x, v.y); }),
      {"power",
       binary(&fl::power),
       EdgeRow::Approximated,
       [](Reals v) { return std::pow(v.x, v.y); },
       {}},
  };
}

std::vector<EdgeRow> logicalRows() {
  return {
      both("eq", &fl::eq, [](auto& v) { return v.x == v.y; }),
      both("neq", &fl::neq, [](auto& v) { return v.x != v.y; }),
      both("lessThan", &fl::lessThan, [](auto& v) { return v.x < v.y; }),
      both("lessThanEqual", &fl::lessThanEqual, [](auto& v) { return v.x <= v.y; }),
      both("greaterThan", &fl::greaterThan, [](auto& v) { return v.x > v.y; }),
      both("greaterThanEqual", &fl::greaterThanEqual, [](auto& v) { return v.x >= v.y; }),
      both("logicalAnd", &fl::logicalAnd, [](auto& v) { return v.x != 0 && v.y != 0; }),
      both("logicalOr", &fl::logicalOr, [](auto& v) { return v.x != 0 || v.y != 0; }),
      integral("bitwiseAnd", &fl::bitwiseAnd, [](Wholes v) { return v.x & v.y; }),
      integral("bitwiseOr", &fl::bitwiseOr, [](Wholes v) { return v.x | v.y; }),
      integral("bitwiseXor", &fl::bitwiseXor, [](Wholes v) { return v.x ^ v.y; }),
      integral("lShift", &fl::lShift, shiftedLeft),
      integral("rShift", &fl::rShift, shiftedRight),
      {"where", [](const std::vector<Tensor>& v) { return where(v[0], v[1], v[2]); },
       EdgeRow::Exact, [](Reals v) { return v.x != 0 ? v.y : v.z; },
       [](Wholes v) { return v.x != 0 ? v.y : v.z; }},
  };
}

Scalar saturated(double value, dtype type) {
  const double low = static_cast<double>(smallestOf(type));
  const double end = std::ldexp(1, widthOf(type) - (isSigned(type) ? 1 : 0));
  if (std::isnan(value)) {
    return wholeScalar(0, type);
  }
  if (value <= low || value >= end) {
    return wholeScalar(value <= low ? smallestOf(type) : largestOf(type), type);
  }
  return wholeScalar(static_cast<Whole>(value), type);
}

}  // namespace

const EdgeRow* findEdgeRow(ir::Op op) {
  static const auto& rows = *[] {
    auto* all = new std::vector<EdgeRow>(unaryRows());
    for (const auto& more : {arithmeticRows(), logicalRows()}) {
      all->insert(all->end(), more.begin(), more.end());
    }
    return all;
  }();
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const EdgeRow& each) { return each.name == ir::opName(op); });
  return row == rows.end() ? nullptr : &*row;
}

Scalar castScalar(const Scalar& value, dtype type) {
  const bool fromFloat = isFloating(value.type);
  if (type == dtype::b8) {
    return wholeScalar(fromFloat ? value.real != 0 : value.whole != 0, type);
  }
  if (fromFloat) {
    return isFloating(type) ? realScalar(value.real, type) : saturated(value.real, type);
  }
  if (!isFloating(type)) {
    return wholeScalar(value.whole, type);
  }
  // One rounding to f64, or one to f32 and on to 16 bits.
  return type == dtype::f64 ? realScalar(static_cast<double>(value.whole), type)
                            : realScalar(static_cast<float>(value.whole), type);
}

}  // namespace fl::testing
