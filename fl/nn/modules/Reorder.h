// Another order of the dimensions.
#pragma once

#include "fl/nn/modules/Module.h"

namespace fl {

// Dimension i of the result is the input's dimension shape[i], as fl::reorder.
// Shapes: any, its dimensions in the given order
class Reorder : public CloneableUnaryModule<Reorder> {
 public:
  explicit Reorder(Shape shape) : shape_(std::move(shape)) {}
  FL_UNARY_MODULE(shape_)
  Reorder() = default;

  Shape shape_;
};

}  // namespace fl
