// Views: how an indexed tensor lies in its storage, and reading and writing through it.
#pragma once

#include <vector>

#include "fl/tensor/TensorBase.h"

namespace fl::detail {

struct TensorStorage {
  TensorValue value;
};

// One application of operator() or flat(): a strided box of the tensor before it.
struct ViewStep {
  bool flat = false;  // of its column-major flattening
  std::vector<Dim> starts;
  std::vector<Dim> sizes;
  std::vector<Dim> strides;
  Shape shape;  // literal dimensions dropped
};

struct TensorView {
  std::vector<ViewStep> steps;
};

// Resolves indices against `shape`. Throws std::invalid_argument for too many indices, literals and
// ranges out of bounds, empty ranges.
ViewStep resolveIndices(const Shape& shape, const std::vector<Index>& indices);
ViewStep resolveFlat(const Shape& shape, const Index& index);

TensorValue readView(const TensorValue& value, const TensorView& view);
// `value` with the view's elements replaced by `box`, which has the view's shape and value's dtype.
TensorValue writeView(const TensorValue& value, const TensorView& view, const TensorValue& box);

}  // namespace fl::detail
