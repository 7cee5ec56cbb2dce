#include "fl/ir/ChannelOrder.h"

#include <algorithm>

namespace fl::ir {

bool isReordered(const Shape& shape, int channel) {
  const auto begin = shape.get().begin();
  return channel < shape.ndim() && shape[channel] > 1 &&
         std::any_of(begin, begin + channel, [](Dim dim) { return dim > 1; });
}

int placeInFront(int i, int channel) { return i == channel ? 0 : i < channel ? i + 1 : i; }

Shape inFront(Shape shape, int channel) {
  shape.get().resize(std::max(shape.ndim(), channel + 1), 1);
  Shape result = shape;
  for (int i = 0; i < shape.ndim(); ++i) result[placeInFront(i, channel)] = shape[i];
  return result;
}

std::vector<Dim> axesToFront(int dims, int channel) {
  std::vector<Dim> axes(dims);
  for (int i = 0; i < dims; ++i) axes[placeInFront(i, channel)] = i;
  return axes;
}

std::vector<Dim> axesFromFront(int dims, int channel) {
  std::vector<Dim> axes;
  for (int i = 0; i < dims; ++i) axes.push_back(placeInFront(i, channel));
  return axes;
}

int afterReshape(const Shape& from, int i, const Shape& to) {
  Dim before = 1;
  for (int k = 0; k < i; ++k) before *= from[k];
  for (int k = 0; k < to.ndim(); before /= to[k++]) {
    if (before == 1 && to[k] == from[i]) return k;
    if (before % to[k] != 0) return -1;
  }
  return -1;
}

}  // namespace fl::ir
