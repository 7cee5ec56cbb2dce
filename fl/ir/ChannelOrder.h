// Dimension orders of images: a dimension, that of the channels, before all others, which makes
// (W,H,C,N) the (C,W,H,N) of ops whose channelsLast is set (Inference.h).
#pragma once

#include <vector>

#include "fl/base/Shape.h"

namespace fl::ir {

// Whether the elements lie in another order if dimension `channel` comes first.
bool isReordered(const Shape& shape, int channel);

// Where dimension `i` is when `channel` comes first.
int placeInFront(int i, int channel);

// `shape`, with as many dimensions as `channel` needs, in that order.
Shape inFront(Shape shape, int channel);

// What a transpose of `dims` dimensions has for moving dimension `channel` to the front, and back.
std::vector<Dim> axesToFront(int dims, int channel);
std::vector<Dim> axesFromFront(int dims, int channel);

// The dimension of `to` that is dimension `i` of `from`, not of size 1, after a reshape of some
// elements; -1 if none is.
int afterReshape(const Shape& from, int i, const Shape& to);

}  // namespace fl::ir
