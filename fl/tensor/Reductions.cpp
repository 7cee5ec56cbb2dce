#include <algorithm>
#include <cmath>
#include <limits>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/ir/Inference.h"
#include "fl/tensor/Composite.h"
#include "fl/tensor/Detail.h"

namespace fl {
namespace {

// How many elements a reduction over `axes` folds into one.
Dim reducedCount(const Tensor& input, const std::vector<int>& axes) {
  if (axes.empty() || input.ndim() == 0) return input.elements();
  Dim count = 1;
  for (int axis : axes) count *= input.dim(axis);
  return count;
}

// Behind all indices, which are counted in s32.
constexpr Dim kNoIndex = std::numeric_limits<int32_t>::max();

// The first index along `axis` where `input` is its extreme or NaN; both have kept dimensions.
Tensor firstIndex(const Tensor& input, const Tensor& extreme, unsigned axis, bool keepDims) {
  if (input.ndim() == 0) return full({}, 0, dtype::u32);
  const Tensor index = arange(input.shape(), axis, dtype::s32);
  const Tensor candidate = where(input == extreme || isnan(input), index,
                                 detail::numberTensor(Number::of(kNoIndex, dtype::s32)));
  return detail::castTo(amin(candidate, {static_cast<int>(axis)}, keepDims), dtype::u32);
}

// Where an index is asked for, there must be one.
void checkIndexed(const char* name, const Tensor& input, unsigned axis) {
  if (detail::isScalarAlong(input, axis)) return;
  detail::checkAxis(name, input, axis);
  const Dim count = input.dim(axis);
  FL_USER_CHECK(count > 0 && count <= kNoIndex, detail::describe(name, input), ": axis ", axis,
                count == 0 ? " has no elements" : " has more elements than are counted");
}

Tensor withoutAxis(const Tensor& kept, unsigned axis, bool keepDims) {
  Shape shape = kept.shape();
  if (!keepDims && kept.ndim() > 0) shape.get().erase(shape.get().begin() + axis);
  return reshape(kept, shape);
}

using Reduction = Tensor (*)(const Tensor&, const std::vector<int>&, bool);

void extreme(Reduction reduction, Tensor& values, Tensor& indices, const Tensor& input,
             unsigned axis, bool keepDims) {
  const Tensor kept = reduction(input, {static_cast<int>(axis)}, true);
  const Tensor source = input;  // `values` or `indices` may be `input`
  values = withoutAxis(kept, axis, keepDims);
  indices = firstIndex(source, kept, axis, keepDims);
}

Tensor reduce(ir::Op op, const Tensor& input, const std::vector<int>& axes, bool keepDims) {
  if (op == ir::Op::Sum && getTypeSize(input.type()) < getTypeSize(dtype::f32)) {
    const auto wideSum = [](const Tensor& narrow, const std::vector<int>& axes, bool keepDims) {
      return reduce(ir::Op::Sum, detail::widenForSum(narrow), axes, keepDims);
    };
    return composite("sum", wideSum, input, axes, keepDims);
  }
  // A scalar is reduced over any axes.
  const auto end = input.ndim() == 0 ? axes.begin() : axes.end();
  return detail::applyOp(op, {input}, ir::Attrs({keepDims}, std::vector<Dim>(axes.begin(), end)));
}

// `input` in the dtype that its means and norms are computed in; what holds counts 1, as in sums.
Tensor widened(const Tensor& input) {
  const Tensor counted = input.type() == dtype::b8 ? input != false : input;
  return detail::castTo(counted, computeType(detail::meanType(input.type())));
}

// Before it is rounded to the dtype of the input, which may not hold a square.
Tensor wideVariance(const Tensor& input, const std::vector<int>& axes, bool bias, bool keepDims) {
  const Tensor wide = widened(input);
  const Tensor centered = wide - mean(wide, axes, true);
  const Dim count = std::max<Dim>(reducedCount(input, axes) - bias, 0);
  return sum(centered * centered, axes, keepDims) / static_cast<double>(count);
}

// An extreme of truth values, or `ofNone`: b8 has more values, so that of no elements is none.
Tensor holds(const Tensor& extreme, const Tensor& input, bool ofNone) {
  return input.isEmpty() ? full(extreme.shape(), ofNone, dtype::b8) : extreme;
}

}  // namespace

#define FL_UNARY(Name, name)
#define FL_BINARY(Name, name)
#define FL_REDUCE(Name, name)                                                   \
  Tensor TensorBackend::name(const Tensor& input, const std::vector<int>& axes, \
                             const bool keepDims) {                             \
    return reduce(ir::Op::Name, input, axes, keepDims);                         \
  }
#include "fl/tensor/Functions.def"

void TensorBackend::min(Tensor& values, Tensor& indices, const Tensor& input, const unsigned axis,
                        const bool keepDims) {
  checkIndexed("min", input, axis);
  extreme(fl::amin, values, indices, input, axis, keepDims);
}

void TensorBackend::max(Tensor& values, Tensor& indices, const Tensor& input, const unsigned axis,
                        const bool keepDims) {
  checkIndexed("max", input, axis);
  extreme(fl::amax, values, indices, input, axis, keepDims);
}

Tensor TensorBackend::argmax(const Tensor& input, const unsigned axis, const bool keepDims) {
  checkIndexed("argmax", input, axis);
  return firstIndex(input, amax(input, {static_cast<int>(axis)}, true), axis, keepDims);
}

Tensor TensorBackend::argmin(const Tensor& input, const unsigned axis, const bool keepDims) {
  checkIndexed("argmin", input, axis);
  return firstIndex(input, amin(input, {static_cast<int>(axis)}, true), axis, keepDims);
}

Tensor TensorBackend::mean(const Tensor& input, const std::vector<int>& axes, const bool keepDims) {
  const dtype type = detail::meanType(input.type());
  const Tensor total = sum(widened(input), axes, keepDims);
  return detail::castTo(total / static_cast<double>(reducedCount(input, axes)), type);
}

Tensor TensorBackend::var(const Tensor& input, const std::vector<int>& axes, const bool bias,
                          const bool keepDims) {
  return detail::castTo(wideVariance(input, axes, bias, keepDims), detail::meanType(input.type()));
}

Tensor TensorBackend::std(const Tensor& input, const std::vector<int>& axes, const bool keepDims) {
  return detail::castTo(sqrt(wideVariance(input, axes, false, keepDims)),
                        detail::meanType(input.type()));
}

Tensor TensorBackend::norm(const Tensor& input, const std::vector<int>& axes, double p,
                           const bool keepDims) {
  FL_USER_CHECK(!std::isnan(p), detail::describe("norm", input), ": p is no number");
  const Tensor wide = widened(input);
  if (p == 0) return sum((wide != 0).astype(wide.type()), axes, keepDims);
  // No elements are zeros, of which there is no largest.
  if (p == 1 || (p > 0 && input.isEmpty())) return sum(absolute(wide), axes, keepDims);
  if (p == 2) return sqrt(sum(wide * wide, axes, keepDims));
  if (std::isinf(p))
    return p > 0 ? amax(absolute(wide), axes, keepDims) : amin(absolute(wide), axes, keepDims);
  // A double exponent would be rounded to f32.
  const auto exponent = [&](double value) {
    return detail::numberTensor(Number::of(value, wide.type()));
  };
  return fl::power(sum(fl::power(absolute(wide), exponent(p)), axes, keepDims), exponent(1 / p));
}

Tensor TensorBackend::countNonzero(const Tensor& input, const std::vector<int>& axes,
                                   const bool keepDims) {
  return sum(input != false, axes, keepDims);
}

Tensor TensorBackend::any(const Tensor& input, const std::vector<int>& axes, const bool keepDims) {
  return holds(amax(input != false, axes, keepDims), input, false);
}

Tensor TensorBackend::all(const Tensor& input, const std::vector<int>& axes, const bool keepDims) {
  return holds(amin(input != false, axes, keepDims), input, true);
}

}  // namespace fl
