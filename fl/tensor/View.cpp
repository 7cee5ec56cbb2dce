#include "fl/tensor/View.h"

#include "fl/base/Error.h"
#include "fl/tensor/Detail.h"

namespace fl::detail {
namespace {

void addSpan(ViewStep* step, Dim size) {
  step->starts.push_back(0);
  step->sizes.push_back(size);
  step->strides.push_back(1);
  step->shape.get().push_back(size);
}

void addLiteral(ViewStep* step, Dim size, Dim index) {
  FL_USER_CHECK(-size <= index && index < size, "index: ", index,
                " is out of range for a dimension of ", size);
  step->starts.push_back(index < 0 ? index + size : index);
  step->sizes.push_back(1);
  step->strides.push_back(1);
}

void addRange(ViewStep* step, Dim size, const range& r) {
  const Dim start = r.start() < 0 ? r.start() + size : r.start();
  const Dim last = r.end().value_or(size);
  const Dim end = last < 0 ? last + size : last;
  FL_USER_CHECK(0 <= start && start < end && end <= size && r.stride() > 0, "index: range [",
                r.start(), ", ", r.end() ? std::to_string(*r.end()) : "end", ") with stride ",
                r.stride(), " is empty or out of range for a dimension of ", size);
  step->starts.push_back(start);
  step->sizes.push_back((end - start + r.stride() - 1) / r.stride());
  step->strides.push_back(r.stride());
  step->shape.get().push_back(step->sizes.back());
}

void addIndex(ViewStep* step, Dim size, const Index& index) {
  switch (index.type()) {
    case IndexType::Span:
      return addSpan(step, size);
    case IndexType::Literal:
      return addLiteral(step, size, index.get<Dim>());
    case IndexType::Range:
      return addRange(step, size, index.get<range>());
    case IndexType::Tensor:
      throwUser("index: tensors as indices are not supported yet");
  }
}

bool isIdentity(const ViewStep& step, const Shape& shape) {
  return step.sizes == shape.get() && step.strides == std::vector<Dim>(shape.ndim(), 1);
}

TensorValue stepBase(const TensorValue& value, const ViewStep& step) {
  return step.flat ? reshapeValue(value, Shape({value->shape().elements()})) : value;
}

TensorValue readStep(const TensorValue& value, const ViewStep& step) {
  const TensorValue base = stepBase(value, step);
  const TensorValue box = isIdentity(step, base->shape())
                              ? base
                              : sliceValue(base, step.starts, step.sizes, step.strides);
  return reshapeValue(box, step.shape);
}

}  // namespace

ViewStep resolveIndices(const Shape& shape, const std::vector<Index>& indices) {
  FL_USER_CHECK(static_cast<int>(indices.size()) <= shape.ndim(), "index: ", indices.size(),
                " indices for a tensor of shape ", shape);
  ViewStep step;
  for (int i = 0; i < shape.ndim(); ++i) {
    if (i < static_cast<int>(indices.size())) {
      addIndex(&step, shape[i], indices[i]);
    } else {
      addSpan(&step, shape[i]);
    }
  }
  if (step.shape.ndim() == 0) {
    step.shape = Shape({1});
  }
  return step;
}

ViewStep resolveFlat(const Shape& shape, const Index& index) {
  ViewStep step = resolveIndices(Shape({shape.elements()}), {index});
  step.flat = true;
  return step;
}

TensorValue readView(const TensorValue& value, const TensorView& view) {
  TensorValue current = value;
  for (const ViewStep& step : view.steps) {
    current = readStep(current, step);
  }
  return current;
}

TensorValue writeView(const TensorValue& value, const TensorView& view, const TensorValue& box) {
  std::vector<TensorValue> levels = {value};
  for (size_t i = 0; i + 1 < view.steps.size(); ++i) {
    levels.push_back(readStep(levels.back(), view.steps[i]));
  }
  TensorValue current = box;
  for (size_t i = view.steps.size(); i-- > 0;) {
    const ViewStep& step = view.steps[i];
    const TensorValue base = stepBase(levels[i], step);
    current = reshapeValue(current, Shape(step.sizes));
    if (!isIdentity(step, base->shape())) {
      current = updateValue(base, current, step.starts, step.strides);
    }
    current = reshapeValue(current, levels[i]->shape());
  }
  return current;
}

}  // namespace fl::detail
