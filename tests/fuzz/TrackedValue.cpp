#include "tests/fuzz/TrackedValue.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fl::testing {
namespace {

using Binary = Tensor (*)(const Tensor&, const Tensor&);
using Reduce = Tensor (*)(const Tensor&, const std::vector<int>&, bool);

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <bool bias>
Tensor varOf(const Tensor& x, const std::vector<int>& axes, bool keepDims) {
  return var(x, axes, bias, keepDims);
}
Tensor stdOf(const Tensor& x, const std::vector<int>& axes, bool keepDims) {
  return fl::std(x, axes, keepDims);
}
// Of half the order, as a template takes whole ones alone; infinite for 0.
template <int halves>
Tensor normOf(const Tensor& x, const std::vector<int>& axes, bool keepDims) {
  return norm(x, axes, halves == 0 ? kInfinity : halves / 2.0, keepDims);
}
// The first axis of the list alone.
Tensor argmaxOf(const Tensor& x, const std::vector<int>& axes, bool keepDims) {
  return argmax(x, axes.empty() ? 0 : axes[0], keepDims);
}
Tensor argminOf(const Tensor& x, const std::vector<int>& axes, bool keepDims) {
  return argmin(x, axes.empty() ? 0 : axes[0], keepDims);
}

std::vector<double> toDoubles(const Tensor& tensor) {
  return tensor.astype(dtype::f64).toHostVector<double>();
}

double reducedCount(const Shape& shape, const std::vector<int>& axes) {
  double count = axes.empty() ? static_cast<double>(shape.elements()) : 1;
  for (int axis : axes) {
    count *= static_cast<double>(shape[axis]);
  }
  return count;
}

template <typename Row>
const Row& rowNamed(const std::vector<Row>& rows, const std::string& name) {
  return *std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
}

}  // namespace

const UnaryRow& unaryRow(const std::string& name) { return rowNamed(unaryRows(), name); }
const BinaryRow& binaryRow(const std::string& name) { return rowNamed(binaryRows(), name); }
const ReduceRow& reduceRow(const std::string& name) { return rowNamed(reduceRows(), name); }

const std::vector<UnaryRow>& unaryRows() {
  using enum Accuracy;
  static const auto& rows = *new std::vector<UnaryRow>{
      {"negative", &fl::negative, Rounded, 1},
      {"absolute", &fl::absolute, Rounded, 1},
      {"sqrt", &fl::sqrt, Rounded, 1, 0, 0.25},
      {"exp", &fl::exp, Approximated, 21, 3},
      {"log", &fl::log, Approximated, 2, 0, 0.5},
      {"log1p", &fl::log1p, Approximated, 1, 0, 0.001},
      {"sin", &fl::sin, Approximated, 1, 50},
      {"cos", &fl::cos, Approximated, 1, 50},
      {"tanh", &fl::tanh, Approximated, 1},
      {"erf", &fl::erf, Approximated, 1.13},
      {"sigmoid", &fl::sigmoid, Approximated, 1},
      {"floor", &fl::floor, Step, 0},
      {"ceil", &fl::ceil, Step, 0},
      {"rint", &fl::rint, Step, 0},
      {"sign", &fl::sign, Step, 0},
      {"logicalNot", &fl::logicalNot, Step, 0},
      {"isnan", &fl::isnan, Step, 0},
      {"isinf", &fl::isinf, Step, 0},
  };
  return rows;
}

const std::vector<BinaryRow>& binaryRows() {
  using enum BinaryRow::Rule;
  static const auto& rows = *new std::vector<BinaryRow>{
      {"add", static_cast<Binary>(&fl::add), Add},
      {"sub", static_cast<Binary>(&fl::sub), Add},
      {"mul", static_cast<Binary>(&fl::mul), Mul},
      {"div", static_cast<Binary>(&fl::div), Div},
      {"minimum", static_cast<Binary>(&fl::minimum), Select},
      {"maximum", static_cast<Binary>(&fl::maximum), Select},
      {"power", static_cast<Binary>(&fl::power), Power},
      {"mod", static_cast<Binary>(&fl::mod), Step},
      {"eq", static_cast<Binary>(&fl::eq), Step},
      {"neq", static_cast<Binary>(&fl::neq), Step},
      {"lessThan", static_cast<Binary>(&fl::lessThan), Step},
      {"lessThanEqual", static_cast<Binary>(&fl::lessThanEqual), Step},
      {"greaterThan", static_cast<Binary>(&fl::greaterThan), Step},
      {"greaterThanEqual", static_cast<Binary>(&fl::greaterThanEqual), Step},
      {"logicalAnd", static_cast<Binary>(&fl::logicalAnd), Step},
      {"logicalOr", static_cast<Binary>(&fl::logicalOr), Step},
      {"bitwiseAnd", static_cast<Binary>(&fl::bitwiseAnd), Integer},
      {"bitwiseOr", static_cast<Binary>(&fl::bitwiseOr), Integer},
      {"bitwiseXor", static_cast<Binary>(&fl::bitwiseXor), Integer},
      {"lShift", static_cast<Binary>(&fl::lShift), Integer},
      {"rShift", static_cast<Binary>(&fl::rShift), Integer},
  };
  return rows;
}

const std::vector<ReduceRow>& reduceRows() {
  using enum ReduceRow::Rule;
  static const auto& rows = *new std::vector<ReduceRow>{
      {"sum", static_cast<Reduce>(&fl::sum), Sum},
      {"amax", static_cast<Reduce>(&fl::amax), Select},
      {"amin", static_cast<Reduce>(&fl::amin), Select},
      {"mean", static_cast<Reduce>(&fl::mean), Mean},
      {"any", static_cast<Reduce>(&fl::any), Step},
      {"all", static_cast<Reduce>(&fl::all), Step},
      {"countNonzero", static_cast<Reduce>(&fl::countNonzero), Step},
      {"argmax", &argmaxOf, Step},
      {"argmin", &argminOf, Step},
      {"var", &varOf<false>, Var},
      {"var of a sample", &varOf<true>, Var, 1},
      {"std", &stdOf, Std},
      {"norm", &normOf<4>, Norm, 2},
      {"norm of order 1", &normOf<2>, Norm, 1},
      {"norm of order 1.5", &normOf<3>, Norm, 1.5},
      {"norm of order 3", &normOf<6>, Norm, 3},
      {"norm of infinite order", &normOf<0>, Norm, kInfinity},
  };
  return rows;
}

double unitOf(dtype type) {
  switch (type) {
    case dtype::f16:
      return 0x1p-10;
    case dtype::bf16:
      return 0x1p-7;
    case dtype::f32:
      return 0x1p-22;
    case dtype::f64:
      return 0x1p-50;
    default:
      return 0;
  }
}

double Tracker::largest(const Tensor& tensor) const {
  double most = 0;
  if (measures_) {
    for (double element : toDoubles(tensor)) {
      most = std::isfinite(element) ? std::max(most, std::fabs(element)) : kInfinity;
    }
  }
  return most;
}

double Tracker::smallest(const Tensor& tensor) const {
  double least = kInfinity;
  if (measures_) {
    for (double element : toDoubles(tensor)) {
      least = std::min(least, std::fabs(element));
    }
  }
  return least;
}

Value Tracker::result(Tensor tensor, bool exact, double error) const {
  if (exact || !measures_) {
    return {std::move(tensor), exact, 0};
  }
  const double rounding = 4 * unitOf(tensor.type()) * largest(tensor);
  const double bound = error + rounding;
  return {std::move(tensor), false, std::isnan(bound) ? kInfinity : bound};
}

Value Tracker::moved(const Value& x, Tensor result) {
  return {std::move(result), x.exact, x.error};
}

Value Tracker::unary(const UnaryRow& row, const Value& x) const {
  const bool exact = row.accuracy != Accuracy::Approximated && x.exact;
  return result(row.apply(x.tensor), exact, row.slope * x.error);
}

Value Tracker::binary(const BinaryRow& row, const Value& x, const Value& y) const {
  Tensor value = row.apply(x.tensor, y.tensor);
  const bool exact = x.exact && y.exact && row.rule != BinaryRow::Rule::Power;
  if (exact || !measures_) {
    return {std::move(value), exact, 0};
  }
  double error = 0;
  switch (row.rule) {
    case BinaryRow::Rule::Mul:
      error = x.error * largest(y.tensor) + y.error * largest(x.tensor) + x.error * y.error;
      break;
    case BinaryRow::Rule::Div: {
      const double divisor = smallest(y.tensor) - y.error;
      error = divisor > 0 ? (x.error + largest(value) * y.error) / divisor : kInfinity;
      break;
    }
    case BinaryRow::Rule::Power:
      error = 200 * (x.error + y.error);
      break;
    default:
      error = x.error + y.error;
  }
  return result(std::move(value), false, error);
}

Value Tracker::reduce(const ReduceRow& row, const Value& x, const std::vector<int>& axes,
                      bool keepDims) const {
  Tensor value = row.apply(x.tensor, axes, keepDims);
  const bool sums = row.rule == ReduceRow::Rule::Sum || row.rule == ReduceRow::Rule::Mean;
  const bool exact =
      x.exact && (row.rule == ReduceRow::Rule::Select || row.rule == ReduceRow::Rule::Step ||
                  (row.rule == ReduceRow::Rule::Sum && !isFloating(value.type())));
  if (exact || !measures_) {
    return {std::move(value), exact, 0};
  }
  const double count = reducedCount(x.tensor.shape(), axes);
  double error = x.error;
  if (row.rule == ReduceRow::Rule::Var || row.rule == ReduceRow::Rule::Std) {
    error = varianceError(row, x, value, count);
  } else if (row.rule == ReduceRow::Rule::Norm) {
    error = normError(row, x, value, count);
  } else if (sums) {
    const double tree = count / 16 + 10;
    const double one = x.error + tree * unitOf(computeType(value.type())) * largest(x.tensor);
    error = row.rule == ReduceRow::Rule::Sum ? count * one : one;
  }
  return result(std::move(value), exact, error);
}

double Tracker::varianceError(const ReduceRow& row, const Value& x, const Tensor& value,
                              double count) const {
  const double unit = (count / 16 + 10) * unitOf(computeType(value.type()));
  const double size = 2 * largest(x.tensor);  // of a difference from the mean
  const double apart = 2 * x.error + unit * size;
  const double squares = 2 * size * apart + apart * apart + unit * size * size;
  const double error = squares * count / std::max(count - row.number, 0.0);
  // |sqrt(a) - sqrt(b)| is |a - b| / (sqrt(a) + sqrt(b)), and at most sqrt(|a - b|).
  return row.rule == ReduceRow::Rule::Std ? std::min(std::sqrt(error), error / smallest(value))
                                          : error;
}

// By the triangle inequality, which norms of orders from 1 hold; what vanishes as a power counts.
double Tracker::normError(const ReduceRow& row, const Value& x, const Tensor& value,
                          double count) const {
  const double unit = (count / 16 + 30) * unitOf(computeType(value.type()));
  const double vanishes = std::pow(std::numeric_limits<float>::min(), 1 / row.number);
  const double each = x.error + (std::isinf(row.number) ? 0 : vanishes);
  return std::pow(count, 1 / row.number) * each + unit * largest(value);
}

Value Tracker::cast(const Value& x, dtype type) const {
  return result(x.tensor.astype(type), x.exact, x.error);
}

Value Tracker::matmul(const Value& x, const Value& y, bool transposeX, bool transposeY) const {
  auto property = [](bool transpose) {
    return transpose ? MatrixProperty::Transpose : MatrixProperty::None;
  };
  const auto inner = static_cast<double>(x.tensor.dim(transposeX ? 0 : 1));
  return products(fl::matmul(x.tensor, y.tensor, property(transposeX), property(transposeY)), x, y,
                  inner);
}

Value Tracker::products(Tensor value, const Value& x, const Value& y, double inner) const {
  if (!isFloating(value.type())) {
    return result(std::move(value), x.exact && y.exact, 0);
  }
  const double mx = largest(x.tensor), my = largest(y.tensor);
  const double error = inner * (x.error * my + y.error * mx + x.error * y.error) +
                       inner * inner * unitOf(computeType(value.type())) * mx * my;
  return result(std::move(value), false, error);
}

Value Tracker::sums(Tensor value, const Value& x, double inner) const {
  if (!isFloating(value.type())) {
    return result(std::move(value), x.exact, x.error);
  }
  const double error =
      inner * x.error + inner * inner * unitOf(computeType(value.type())) * largest(x.tensor);
  return result(std::move(value), false, error);
}

Value Tracker::means(Tensor value, const Value& x, double inner) const {
  const double sums = inner * unitOf(computeType(value.type())) * largest(x.tensor);
  return result(std::move(value), false, x.error + sums);
}

Value Tracker::where(const Value& condition, const Value& x, const Value& y) const {
  return result(fl::where(condition.tensor, x.tensor, y.tensor),
                condition.exact && x.exact && y.exact,
                condition.exact ? std::max(x.error, y.error) : kInfinity);
}

}  // namespace fl::testing
