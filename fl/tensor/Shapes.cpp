// Functions that rearrange elements, and selection.
#include <algorithm>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/tensor/Detail.h"

namespace fl {

// A double among operands.
static constexpr detail::NumberOperand kNumber = {dtype::f32};
static constexpr unsigned kMostAxes = 64;

Tensor TensorBackend::reshape(const Tensor& tensor, const Shape& shape) {
  return Tensor(detail::reshapeValue(tensor.value(), shape));
}

Tensor TensorBackend::transpose(const Tensor& tensor, const Shape& axes) {
  std::vector<Dim> order = axes.get();
  if (order.empty())
    for (int i = tensor.ndim(); i-- > 0;) order.push_back(i);
  // Without dimensions it may be a number, which lies nowhere.
  if (tensor.ndim() == 1 || (tensor.ndim() == 0 && order.empty())) return tensor;
  return detail::applyOp(ir::Op::Transpose, {tensor}, ir::Attrs(order));
}

Tensor TensorBackend::tile(const Tensor& tensor, const Shape& shape) {
  // [d0, 1] tiled by [t0, t1]: [d0, 1, 1] repeated to [d0, t0, t1], then merged.
  Shape split, repeated, result;
  for (int i = 0; i < std::max(tensor.ndim(), shape.ndim()); ++i) {
    const Dim size = i < tensor.ndim() ? tensor.dim(i) : 1;
    const Dim times = i < shape.ndim() ? shape[i] : 1;
    FL_USER_CHECK(times >= 0, detail::describe("tile", tensor), ": the times ", shape,
                  " must not be negative");
    split.get().push_back(size);
    repeated.get().push_back(size == 1 ? times : size);
    if (size != 1 && times != 1) {
      split.get().push_back(1);
      repeated.get().push_back(times);
    }
    result.get().push_back(Shape({size, times}).elements());  // which throws if it is too many
  }
  if (result.elements() == tensor.shape().elements()) return reshape(tensor, result);
  const TensorValue spread = detail::reshapeValue(tensor.value(), split);
  const ir::Attrs filled(repeated.get());
  return Tensor(detail::reshapeValue(detail::applyOp(ir::Op::Broadcast, {spread}, filled), result));
}

namespace {

TensorValue ofRank(int rank, const Tensor& tensor) {
  Shape shape = tensor.shape();
  shape.get().resize(rank, 1);
  return detail::reshapeValue(tensor.value(), shape);
}

}  // namespace

Tensor TensorBackend::concatenate(const std::vector<Tensor>& tensors, const unsigned axis) {
  FL_USER_CHECK(!tensors.empty(), calledAs("concatenate"), ": there are no tensors");
  std::vector<Tensor> parts;  // Tensor() joins with anything
  std::copy_if(tensors.begin(), tensors.end(), std::back_inserter(parts),
               [](const Tensor& tensor) { return tensor.shape() != Shape({0}); });
  if (parts.empty()) parts.push_back(tensors[0]);
  int rank = std::ranges::max_element(parts, {}, &Tensor::ndim)->ndim();
  // No tensor has as many dimensions of more than one element as kMostAxes.
  FL_USER_CHECK(axis < kMostAxes || static_cast<int>(axis) < rank, describeCall("concatenate", ""),
                ": axis ", axis, " is out of range");
  rank = std::max(rank, static_cast<int>(axis) + 1);
  std::vector<TensorValue> values;
  for (const Tensor& tensor : parts) values.push_back(ofRank(rank, tensor));
  return Tensor(detail::applyOp(ir::Op::Concatenate, std::move(values), {axis}));
}

namespace {

// The indices of elements [first, first + count) along `axis`.
std::vector<Index> along(int axis, Dim first, Dim count) {
  std::vector<Index> indices(axis, Index(span));
  indices.push_back(range(first, first + count));
  return indices;
}

// Fills the elements before and after `inner` of them along `axis` with what lies within: mirrored
// (`symmetric`), or the edge again.
void fillBorders(Tensor& padded, int axis, Dim before, Dim inner, bool symmetric) {
  const Dim after = padded.dim(axis) - before - inner;
  const auto fill = [&](Dim first, Dim source, Dim count) {
    if (count > 0) {
      const Tensor part = padded(along(axis, source, symmetric ? count : 1));
      Shape repeat(std::vector<Dim>(padded.ndim(), 1));
      repeat[axis] = count;
      padded(along(axis, first, count)) = symmetric ? flip(part, axis) : tile(part, repeat);
    }
  };
  fill(0, before, before);
  fill(before + inner, before + inner - (symmetric ? after : 1), after);
}

}  // namespace

Tensor TensorBackend::pad(const Tensor& tensor, const std::vector<std::pair<int, int>>& padWidths,
                          const PadType type) {
  checkEnumerator("pad", "PadType", type, PadType::Symmetric);
  const int rank = std::max(tensor.ndim(), static_cast<int>(padWidths.size()));
  const Tensor input(ofRank(rank, tensor));
  const bool symmetric = type == PadType::Symmetric;
  std::vector<Dim> widths(2 * input.ndim(), 0);
  for (size_t i = 0; i < padWidths.size(); ++i) {
    const Dim before = widths[i] = padWidths[i].first, size = input.dim(i);
    const Dim after = widths[input.ndim() + i] = padWidths[i].second;
    FL_USER_CHECK(type == PadType::Constant ||
                      (before >= 0 && after >= 0 && (size > 0 || (before == 0 && after == 0))),
                  detail::describe("pad", input), ": the widths (", before, ", ", after,
                  ") of dimension ", i, " must not be negative, and 0 where it has no elements");
    FL_USER_CHECK(!symmetric || (before <= size && after <= size), detail::describe("pad", input),
                  ": symmetric padding of (", before, ", ", after, ") exceeds dimension ", i);
  }
  const Tensor zero = detail::numberTensor(Number::fromSigned(0, input.type()));
  Tensor result = detail::applyOp(ir::Op::Pad, {input, zero}, ir::Attrs(widths));
  for (int i = 0; type != PadType::Constant && i < input.ndim(); ++i)
    fillBorders(result, i, widths[i], input.dim(i), symmetric);
  return result;
}

// The shape of the result depends on the data, so it is found on the host, at the call.
Tensor TensorBackend::nonzero(const Tensor& tensor) {
  detail::checkCounted("nonzero", tensor, static_cast<Dim>(tensor.elements()));
  const std::vector<char> holds = (tensor != false).toHostVector<char>();
  const auto count = std::count_if(holds.begin(), holds.end(), [](char held) { return held != 0; });
  // Each index is written where the next one goes; what does not hold is written over, and one
  // place more takes what follows the last that does.
  std::vector<unsigned> indices(count + 1);
  for (size_t i = 0, next = 0; i < holds.size(); ++i) {
    indices[next] = static_cast<unsigned>(i);
    next += holds[i] != 0;
  }
  indices.resize(count);
  return Tensor::fromVector(std::move(indices));
}

Tensor TensorBackend::flip(const Tensor& tensor, const unsigned dim) {
  if (detail::isScalarAlong(tensor, dim)) return tensor;
  detail::checkAxis("flip", tensor, dim);
  std::vector<Dim> starts(tensor.ndim(), 0), strides(tensor.ndim(), 1);
  starts[dim] = std::max<Dim>(tensor.dim(dim) - 1, 0);
  strides[dim] = -1;
  return Tensor(detail::sliceValue(tensor.value(), starts, tensor.shape().get(), strides));
}

Tensor TensorBackend::roll(const Tensor& tensor, const int shift, const unsigned axis) {
  if (detail::isScalarAlong(tensor, axis)) return tensor;
  detail::checkAxis("roll", tensor, axis);
  const Dim size = tensor.dim(axis);
  if (size == 0) return tensor;
  // The shift is a number of the plan, so that every shift runs the same kernel.
  Shape along(std::vector<Dim>(tensor.ndim(), 1));
  along[axis] = size;
  const Dim back = ((-static_cast<Dim>(shift)) % size + size) % size;
  const Tensor place = arange(along, axis, dtype::s64) + back;
  const Tensor index = where(place < size, place, place - size);
  return detail::applyOp(ir::Op::Gather, {tensor, index}, {axis, 1});
}

namespace {

Tensor triangle(const char* name, const Tensor& tensor, bool lower) {
  FL_USER_CHECK(tensor.ndim() >= 2, detail::describe(name, tensor), ": has no two dimensions");
  const Tensor row = arange(Shape({tensor.dim(0), 1}), 0, dtype::s64);
  const Tensor column = arange(Shape({1, tensor.dim(1)}), 1, dtype::s64);
  const Tensor zero = detail::numberTensor(Number::fromSigned(0, tensor.type()));
  return where(lower ? row >= column : row <= column, tensor, zero);
}

}  // namespace

Tensor TensorBackend::tril(const Tensor& tensor) { return triangle("tril", tensor, true); }

Tensor TensorBackend::triu(const Tensor& tensor) { return triangle("triu", tensor, false); }

Tensor TensorBackend::clip(const Tensor& tensor, const Tensor& low, const Tensor& high) {
  return minimum(maximum(tensor, low), high);
}
Tensor clip(const Tensor& tensor, const Tensor& low, const double& high) {
  FL_API_ENTRY_OF(tensor, low, kNumber);
  return clip(tensor, low, detail::asF32(high));
}
Tensor clip(const Tensor& tensor, const double& low, const Tensor& high) {
  FL_API_ENTRY_OF(tensor, kNumber, high);
  return clip(tensor, detail::asF32(low), high);
}
Tensor clip(const Tensor& tensor, const double& low, const double& high) {
  FL_API_ENTRY();
  return clip(tensor, detail::asF32(low), detail::asF32(high));
}

Tensor TensorBackend::where(const Tensor& condition, const Tensor& x, const Tensor& y) {
  return detail::applyOp(ir::Op::Where, {condition, x, y});
}
Tensor where(const Tensor& condition, const Tensor& x, const double& y) {
  FL_API_ENTRY_OF(condition, x, kNumber);
  return where(condition, x, detail::numberTensor(Number::of(y).cast(x.type())));
}
Tensor where(const Tensor& condition, const double& x, const Tensor& y) {
  FL_API_ENTRY_OF(condition, kNumber, y);
  return where(condition, detail::numberTensor(Number::of(x).cast(y.type())), y);
}

}  // namespace fl
