// Statements of random programs that look up, scatter and order elements.
#include <algorithm>

#include "tests/fuzz/RandomProgram.h"

namespace fl::testing {

// Every so many elements of `shape`: how many a mask picks decides shapes, so it is structure.
Tensor RandomProgram::anyMask(const Shape& shape) {
  const int period = 1 + below(4), phase = below(period);
  const Tensor counted = arange(Shape({shape.elements()}), 0, dtype::s32);
  return reshape(counted % period == phase, shape);
}

// Which elements is data; how many is structure.
Tensor RandomProgram::anyPlaces(Dim size) {
  if (chance(15)) {
    return anyMask({size});
  }
  std::vector<int> places(1 + below(static_cast<int>(std::min<Dim>(2 * size, 40))));
  for (int& place : places) {
    place = static_cast<int>(data_() % static_cast<uint64_t>(size));
  }
  const Tensor index = Tensor::fromVector(places);
  return chance(30) ? index.astype(dtype::f32) : index;
}

// Tensors, literals, ranges and spans, with a tensor among them.
std::vector<Index> RandomProgram::anyLookup(const Shape& shape, std::string* text) {
  std::vector<Index> indices = anyIndices(shape, text);
  const int place = below(static_cast<int>(indices.size()));
  for (int i = 0; i < static_cast<int>(indices.size()); ++i) {
    if (i == place || chance(15)) {
      indices[i] = anyPlaces(shape[i]);
      *text += " [" + std::to_string(i) + ": " + std::to_string(indices[i].get<Tensor>().dim(0)) +
               " places]";
    }
  }
  return indices;
}

bool RandomProgram::applyLookup() {
  const Variable& x = any();
  const Shape shape = x.value.tensor.shape();
  if (shape.ndim() == 0 || shape.elements() == 0 || shape.elements() > 3000) {
    return false;
  }
  std::string text = x.name + "(";
  const std::vector<Index> indices = anyLookup(shape, &text);
  const Tensor found = x.value.tensor(indices).copy();
  if (found.elements() > kMaxElements) {
    return false;
  }
  define(Tracker::moved(x.value, found), text + ")");
  return true;
}

bool RandomProgram::applyFlat() {
  const Variable& x = any();
  const Dim size = x.value.tensor.elements();
  if (size == 0 || size > 3000) {
    return false;
  }
  const int kind = below(4);
  if (kind == 0) {
    define(Tracker::moved(x.value, x.value.tensor.flatten()), x.name + ".flatten()");
  } else if (kind == 1) {
    const Tensor mask = anyMask(x.value.tensor.shape()).astype(x.value.tensor.type());
    define({nonzero(mask)}, "nonzero of every few of " + x.name);
  } else {
    std::string text = x.name + ".flat(";
    const Index index = kind == 2 ? Index(anyPlaces(size)) : anyIndices({size}, &text)[0];
    define(Tracker::moved(x.value, x.value.tensor.flat(index).copy()), text + ")");
  }
  return true;
}

bool RandomProgram::updateFlat() {
  Variable& x = any();
  const Dim size = x.value.tensor.elements();
  if (size == 0 || size > 3000) {
    return false;
  }
  std::string text = x.name + ".flat(";
  const Index index = chance(30) ? Index(anyMask({size})) : anyIndices({size}, &text)[0];
  if (chance(60)) {
    text_ += text + ") = number\n";
    x.value.tensor.flat(index) = anyNumber();
    return true;
  }
  input(x.value.tensor.flat(index).shape(), x.value.tensor.type());
  const Value source = variables_.back().value;
  text_ += text + ") = " + variables_.back().name + "\n";
  written(x, source);
  x.value.tensor.flat(index) = source.tensor;
  return true;
}

bool RandomProgram::updateLookup() {
  Variable& x = any();
  const Shape shape = x.value.tensor.shape();
  if (shape.ndim() == 0 || shape.elements() == 0 || shape.elements() > 3000) {
    return false;
  }
  std::string text = x.name + "(";
  const std::vector<Index> indices = anyLookup(shape, &text);
  const Tensor view = x.value.tensor(indices);
  if (view.elements() > 3000) {
    return false;
  }
  if (chance(40)) {
    text_ += text + ") = number\n";
    x.value.tensor(indices) = anyNumber();
    return true;
  }
  input(view.shape(), x.value.tensor.type());
  const Value source = variables_.back().value;
  const bool adds = chance(60);
  text_ += text + (adds ? ") += " : ") = ") + variables_.back().name + "\n";
  if (!adds) {
    written(x, source);
    x.value.tensor(indices) = source.tensor;
    return true;
  }
  // An element may take all of the source's.
  const auto times = static_cast<double>(view.elements());
  written(x, tracker_.sums(x.value.tensor, x.value, times));
  written(x, tracker_.sums(source.tensor, source, times));
  x.value.tensor(indices) += source.tensor;
  return true;
}

// Sorting moves no value by more than its error; which index comes first may change with it.
bool RandomProgram::applySort() {
  const Variable& x = any();
  const Shape& shape = x.value.tensor.shape();
  if (shape.elements() == 0) {
    return false;
  }
  const int axis = anyAxis(shape);
  const SortMode mode = chance(50) ? SortMode::Ascending : SortMode::Descending;
  const auto k = static_cast<unsigned>(1 + below(static_cast<int>(lengthOf(shape, axis))));
  const std::string arguments =
      "(" + x.name + ", " + std::to_string(axis) + ", " + std::to_string(static_cast<int>(mode));
  if (chance(25) && x.value.exact) {
    define(Tracker::moved(x.value, argsort(x.value.tensor, axis, mode)),
           "argsort" + arguments + ")");
    return true;
  }
  if (chance(33)) {
    define(Tracker::moved(x.value, sort(x.value.tensor, axis, mode)), "sort" + arguments + ")");
    return true;
  }
  Tensor values, indices;
  const bool exact = x.value.exact, sorts = chance(50);
  const Value source = x.value;
  if (sorts) {
    sort(values, indices, source.tensor, axis, mode);
  } else {
    topk(values, indices, source.tensor, k, axis, mode);
  }
  define(Tracker::moved(source, values),
         (sorts ? "sort" : "topk") + arguments + ", " + std::to_string(k) + ")");
  if (exact) {
    define({indices}, "its indices");
  }
  return true;
}

bool RandomProgram::applyExtremes() {
  const Variable& x = any();
  const Tensor t = x.value.tensor;
  if (t.isEmpty()) {
    return false;
  }
  const int axis = anyAxis(t.shape());
  const bool least = chance(50), keepDims = chance(50), exact = x.value.exact;
  const std::string text = (least ? "min(" : "max(") + x.name + ", " + std::to_string(axis) + ")";
  Tensor values, indices;
  least ? min(values, indices, t, axis, keepDims) : max(values, indices, t, axis, keepDims);
  define(Tracker::moved(x.value, values), text);
  if (exact) {
    define({indices}, "its indices");
  }
  return true;
}

bool RandomProgram::applyCumsum() {
  const Variable& x = any();
  const Shape& shape = x.value.tensor.shape();
  const int axis = anyAxis(shape);
  const Tensor result = cumsum(x.value.tensor, axis);
  define(tracker_.sums(result, x.value, static_cast<double>(lengthOf(shape, axis))),
         "cumsum(" + x.name + ", " + std::to_string(axis) + ")");
  return true;
}

bool RandomProgram::applyMedian() {
  const Variable& x = any();
  const std::vector<int> axes = anyAxes(x.value.tensor.ndim());
  if (x.value.tensor.isEmpty()) {
    return false;
  }
  define(tracker_.means(median(x.value.tensor, axes), x.value, 2), "median(" + x.name + ")");
  return true;
}

bool RandomProgram::applyRoll() {
  const Variable& x = any();
  const int axis = anyAxis(x.value.tensor.shape());
  const int shift = static_cast<int>(data_() % 41) - 20;
  define(Tracker::moved(x.value, roll(x.value.tensor, shift, axis)),
         "roll(" + x.name + ", " + std::to_string(shift) + ", " + std::to_string(axis) + ")");
  return true;
}

bool RandomProgram::applyTriangle() {
  const Variable& x = any();
  if (x.value.tensor.ndim() < 2) {
    return false;
  }
  const bool lower = chance(50);
  define(Tracker::moved(x.value, lower ? tril(x.value.tensor) : triu(x.value.tensor)),
         (lower ? "tril(" : "triu(") + x.name + ")");
  return true;
}

}  // namespace fl::testing
