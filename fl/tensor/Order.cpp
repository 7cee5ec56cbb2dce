// Functions that order elements along an axis, and cumulative sums.
#include <algorithm>
#include <numeric>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/ir/Inference.h"
#include "fl/tensor/Detail.h"

namespace fl {
namespace {

// Keys whose upward order is the order asked for: reversed ones keep NaN last and ties in order.
Tensor keys(const Tensor& input, SortMode mode) {
  if (mode == SortMode::Ascending) return input;
  return isFloating(input.type()) ? negative(input) : bitwiseXor(input, -1LL);
}

// How many elements a line along the axis has, once the arguments of function `name` are checked.
Dim lengthOf(const char* name, const Tensor& input, Dim axis, SortMode mode) {
  checkEnumerator(name, "SortMode", mode, SortMode::Ascending);
  if (detail::isScalarAlong(input, axis)) return 1;
  detail::checkAxis(name, input, axis);
  detail::checkCounted(name, input, input.dim(axis));
  return input.dim(axis);
}

// The first `count` of the s64 indices that sort.
Tensor order(const Tensor& input, Dim axis, SortMode mode, Dim count) {
  if (input.ndim() == 0) return full({}, 0, dtype::s64);
  return detail::applyOp(ir::Op::Argsort, {keys(input, mode)}, {axis, count});
}

// All of them.
Tensor order(const char* name, const Tensor& input, Dim axis, SortMode mode) {
  return order(input, axis, mode, lengthOf(name, input, axis, mode));
}

Tensor lookUp(const Tensor& input, const Tensor& index, Dim axis) {
  return input.ndim() == 0 ? input : detail::applyOp(ir::Op::Gather, {input, index}, {axis, 1});
}

// Elements [first, first + count) along axis 0.
Tensor front(const Tensor& input, Dim first, Dim count) {
  std::vector<Index> indices(input.ndim(), Index(span));
  indices[0] = range(first, first + count);
  return input(indices);
}

}  // namespace

Tensor TensorBackend::cumsum(const Tensor& input, const unsigned axis) {
  const Tensor wide = isFloating(input.type()) ? input : detail::widenForSum(input);
  if (detail::isScalarAlong(input, axis)) return wide;
  detail::checkAxis("cumsum", input, axis);
  return detail::applyOp(ir::Op::Cumsum, {wide}, {axis});
}

Tensor TensorBackend::argsort(const Tensor& input, const Dim axis, const SortMode sortMode) {
  return detail::castTo(order("argsort", input, axis, sortMode), dtype::u32);
}

Tensor TensorBackend::sort(const Tensor& input, const Dim axis, const SortMode sortMode) {
  return lookUp(input, order("sort", input, axis, sortMode), axis);
}

void TensorBackend::sort(Tensor& values, Tensor& indices, const Tensor& input, const Dim axis,
                         const SortMode sortMode) {
  const Tensor index = order("sort", input, axis, sortMode);
  values = lookUp(input, index, axis);  // `input` may be `values`: it is not read again
  indices = detail::castTo(index, dtype::u32);
}

void TensorBackend::topk(Tensor& values, Tensor& indices, const Tensor& input, const unsigned k,
                         const Dim axis, const SortMode sortMode) {
  const Dim length = lengthOf("topk", input, axis, sortMode);
  FL_USER_CHECK(0 < k && static_cast<Dim>(k) <= length, detail::describe("topk", input),
                ": k must be from 1 to the ", length, " of axis ", axis, ", not ", k);
  const Tensor index = order(input, axis, sortMode, k);
  values = lookUp(input, index, axis);
  indices = detail::castTo(index, dtype::u32);
}

Tensor TensorBackend::median(const Tensor& input, const std::vector<int>& axes,
                             const bool keepDims) {
  std::vector<Dim> reduced(axes.begin(), axes.end()), permutation;
  if (axes.empty() || input.ndim() == 0) {
    reduced.resize(input.ndim());
    std::iota(reduced.begin(), reduced.end(), 0);
  }
  Dim count = 1;
  for (Dim axis : reduced) {
    detail::checkAxis("median", input, axis);
    FL_USER_CHECK(std::ranges::count(reduced, axis) == 1, detail::describe("median", input),
                  ": axis ", axis, " is given twice");
    count *= input.dim(axis);
    permutation.push_back(axis);
  }
  FL_USER_CHECK(count > 0, detail::describe("median", input), ": no elements");
  for (Dim i = 0; i < input.ndim(); ++i)
    if (std::ranges::count(reduced, i) == 0) permutation.push_back(i);
  const Tensor counted = input.type() == dtype::b8 ? input != false : input;  // as sums count
  const Tensor wide = detail::castTo(counted, detail::meanType(input.type()));
  const Tensor lines =
      reshape(transpose(wide, Shape(permutation)), {count, input.shape().elements() / count});
  const Tensor sorted = sort(lines, 0, SortMode::Ascending);
  const Tensor middle = mean(front(sorted, (count - 1) / 2, count % 2 == 0 ? 2 : 1), {0}, false);
  const Tensor last = reshape(front(sorted, count - 1, 1), middle.shape());
  return reshape(where(isnan(last), last, middle),
                 ir::reducedShape(input.shape(), reduced, keepDims));
}

}  // namespace fl
