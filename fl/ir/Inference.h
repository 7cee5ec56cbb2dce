// Result types: the shape and dtype rules of every op, applied when it is called.
#pragma once

#include <span>

#include "fl/ir/BadIndex.h"
#include "fl/ir/Graph.h"

namespace fl::ir {

// The type of `op` on `operands`. Throws std::invalid_argument naming the op, the operand types,
// the rule and the user's line. Elementwise operands broadcast: dimensions match from the first on,
// a dimension of 1 or a missing one repeats.
ValueType inferType(Op op, std::span<const ValueType* const> operands, const Attrs& attrs);

// How the words for an index of `indexed` begin: with the function that was given it, or "index" if
// that is an operator without a name.
std::string describeIndexed(const ValueType& indexed);

// The words for an index that data held, for dimension `axis` of `table`, or of what the call of
// now indexed to make that, or for the flattening of either.
std::string badIndexMessage(const BadIndex& bad, const ValueType& table, Dim axis);

// The shape that `lhs` and `rhs` broadcast to; false if they do not.
bool broadcastShapes(const Shape& lhs, const Shape& rhs, Shape* result);

// The shape left when `axes` of `input` are reduced; axes must be valid. No axes means all.
Shape reducedShape(const Shape& input, const std::vector<Dim>& axes, bool keepDims);

// Which dimensions of a convolution's or a pooling's images are what: they are (W,H,C,N), or
// (C,W,H,N) if its last attribute, channelsLast, is set.
struct ImageAxes {
  int x, y, channel;
  static constexpr int image = 3;

  Shape shape(Dim width, Dim height, Dim channels, Dim images) const;
};
ImageAxes imageAxes(const Attrs& attrs);
// Convolutions and poolings, and which of their operands and results are images, not filters or
// biases.
bool isOnImages(Op op);
bool isImage(Op op, size_t operand);
bool resultIsImage(Op op);

// Whether a product or convolution of f32 may round its operands to TF32.
bool allowsTf32(Op op, const Attrs& attrs);

// (time,D,heads,batch) of an operand of attention, which has its features first if its attribute
// says so.
Shape headsOf(const Shape& operand, const Attrs& attrs);

// out = 1 + (in + 2 pad - ((kernel - 1) dilation + 1)) / stride, rounded down.
Dim windowCount(Dim in, Dim kernel, Dim stride, Dim pad, Dim dilation);

}  // namespace fl::ir
