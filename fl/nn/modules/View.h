// Another shape, the same elements.
#pragma once

#include "fl/nn/modules/Module.h"

namespace fl {

// As fl::moddims: 0 keeps the input's size in that dimension, one -1 takes what is left.
class View : public CloneableUnaryModule<View> {
 public:
  explicit View(Shape dims) : dims_(std::move(dims)) {}
  using UnaryModule::forward;
  Variable forward(const Variable& input) override;
  std::string prettyString() const override;

 private:
  View() = default;
  FL_SAVE_LOAD_WITH_BASE(UnaryModule, dims_)

  Shape dims_;
};

}  // namespace fl
