#include "fl/kernel/Strided.h"

#include "fl/base/Error.h"

namespace fl::ir {
namespace {

struct DenseDims {
  std::vector<Dim> extents;
  std::vector<Dim> strides;
};

// Neighbouring dimensions that lie one behind the other become one. Those of size 1 have no stride
// that matters.
DenseDims merged(const Shape& shape, const std::vector<Dim>& strides) {
  DenseDims result;
  for (int i = 0; i < shape.ndim(); ++i) {
    if (shape[i] == 1) continue;
    if (!result.extents.empty() && strides[i] == result.strides.back() * result.extents.back()) {
      result.extents.back() *= shape[i];
    } else {
      result.extents.push_back(shape[i]);
      result.strides.push_back(strides[i]);
    }
  }
  return result;
}

// Splits the merged dimensions of `in` into those of `to`, if they divide so.
std::optional<std::vector<Dim>> reshapeStrides(const Shape& in, const std::vector<Dim>& strides,
                                               const Shape& to) {
  if (to.elements() == 0) return contiguousStrides(to);
  const DenseDims dims = merged(in, strides);
  std::vector<Dim> result(to.ndim(), 0);
  size_t source = 0;
  Dim used = 1;  // how much of dims.extents[source] earlier dimensions of `to` took
  for (int i = 0; i < to.ndim(); ++i) {
    if (to[i] == 1) continue;
    if (source == dims.extents.size() || dims.extents[source] % (used * to[i]) != 0) {
      return std::nullopt;
    }
    result[i] = dims.strides[source] * used;
    used *= to[i];
    if (used == dims.extents[source]) {
      ++source;
      used = 1;
    }
  }
  return result;
}

StridedLayout sliceLayout(const Node& node, const StridedLayout& operand) {
  const int rank = node.type.shape.ndim();
  StridedLayout layout = operand;
  for (int i = 0; i < rank; ++i) {
    if (statesStarts(node.attrs, rank))
      layout.offset.constant += node.attrs[1 + 2 * rank + i] * operand.strides[i];
    else
      layout.offset.terms.push_back({node.operands[1 + i], operand.strides[i]});
    layout.strides[i] = operand.strides[i] * node.attrs[1 + rank + i];
  }
  return layout;
}

StridedLayout windowLayout(const Node& node, const StridedLayout& operand) {
  StridedLayout layout{operand.offset, {}};
  for (int i = 0; i < 2; ++i) layout.strides.push_back(operand.strides[i] * node.attrs[4 + i]);
  for (int i = 0; i < 2; ++i) layout.strides.push_back(operand.strides[i] * node.attrs[2 + i]);
  layout.strides.insert(layout.strides.end(), operand.strides.begin() + 2, operand.strides.end());
  return layout;
}

}  // namespace

StridedLayout contiguousLayout(const Shape& shape) { return {{}, contiguousStrides(shape)}; }

bool isDense(const StridedLayout& layout, const Shape& shape) {
  const std::vector<Dim> strides = contiguousStrides(shape);
  for (int i = 0; i < shape.ndim(); ++i) {
    if (shape[i] != 1 && layout.strides[i] != strides[i]) return false;
  }
  return true;
}

std::optional<StridedLayout> reshapedLayout(const StridedLayout& layout, const Shape& from,
                                            const Shape& to) {
  auto strides = reshapeStrides(from, layout.strides, to);
  return strides ? std::optional(StridedLayout{layout.offset, std::move(*strides)}) : std::nullopt;
}

std::optional<StridedLayout> viewLayout(const Graph& graph, const Node& node,
                                        const StridedLayout& operand) {
  const Shape& in = graph.type(node.operands[0]).shape;
  switch (node.op) {
    case Op::Broadcast: {
      const Access access = broadcastAccess(operand, in, node.type.shape);
      return StridedLayout{access.offset, access.strides};
    }
    case Op::Transpose: {
      StridedLayout layout{operand.offset, {}};
      for (Dim axis : node.attrs.values()) layout.strides.push_back(operand.strides[axis]);
      return layout;
    }
    case Op::Slice:
      return sliceLayout(node, operand);
    case Op::Window:
      return windowLayout(node, operand);
    case Op::Reshape:
      return reshapedLayout(operand, in, node.type.shape);
    default:
      FL_INTERNAL_CHECK(false, opName(node.op), " is no view");
  }
}

GatherAccess gatherAccess(StridedLayout layout, Shape shape, Dim axis) {
  const Dim stride = layout.strides[axis], bound = shape[axis];
  layout.strides[axis] = 0;
  shape[axis] = 1;
  return {std::move(layout), std::move(shape), stride, bound};
}

Access broadcastAccess(const StridedLayout& layout, const Shape& from, const Shape& to) {
  Access access{layout.offset, layout.strides};
  access.strides.resize(to.ndim(), 0);
  for (int axis = 0; axis < from.ndim(); ++axis) {
    if (from[axis] == 1) access.strides[axis] = 0;
  }
  return access;
}

}  // namespace fl::ir
