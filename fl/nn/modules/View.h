// The same elements in another shape.
#pragma once

#include "fl/nn/modules/Module.h"

namespace fl {

// Another shape, as fl::moddims: 0 keeps the input's size in that dimension, one -1 takes the rest.
// Shapes: any to the given one
class View : public CloneableUnaryModule<View> {
 public:
  explicit View(Shape dims) : dims_(std::move(dims)) {}
  FL_UNARY_MODULE(dims_)
  View() = default;

  Shape dims_;
};

}  // namespace fl
