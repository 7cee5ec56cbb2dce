// Views without copies: where the elements of a value lie in the memory of another.
#pragma once

#include <optional>
#include <vector>

#include "fl/kernel/KernelBuilder.h"

namespace fl::ir {

// offset + sum(stride[d] * index[d]), in elements of a contiguous base.
struct StridedLayout {
  ElementOffset offset;
  std::vector<Dim> strides;  // one a dimension
  bool operator==(const StridedLayout&) const = default;
};

StridedLayout contiguousLayout(const Shape& shape);
// True if a value of `shape` lies so that its elements follow in order. Strides of dimensions of
// size 1 do not matter.
bool isDense(const StridedLayout& layout, const Shape& shape);
// The same, and that they start the base.
inline bool isContiguous(const StridedLayout& layout, const Shape& shape) {
  return layout.offset == ElementOffset() && isDense(layout, shape);
}

// The layout of a View node's result in the base of its operand's layout. Slice starts become terms
// of the offset. Nothing if a reshape cannot be expressed by strides.
std::optional<StridedLayout> viewLayout(const Graph& graph, const Node& node,
                                        const StridedLayout& operand);

// The layout of the same elements, in the same order, as a value of shape `to`. Nothing if strides
// cannot express it.
std::optional<StridedLayout> reshapedLayout(const StridedLayout& layout, const Shape& from,
                                            const Shape& to);

// How a Gather reads its operand: from the elements at index 0 of its axis, an index of `stride`
// elements each and below `bound` away.
struct GatherAccess {
  StridedLayout layout;
  Shape shape;
  Dim stride;
  Dim bound;
};
GatherAccess gatherAccess(StridedLayout layout, Shape shape, Dim axis);

// The access of a value of shape `from` under a space of shape `to` that it broadcasts to.
Access broadcastAccess(const StridedLayout& layout, const Shape& from, const Shape& to);

}  // namespace fl::ir
