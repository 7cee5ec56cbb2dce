// A change of the dtype.
#pragma once

#include "fl/nn/modules/Module.h"

namespace fl {

// The inputs, as many as there are, in another dtype; the gradients come back in theirs.
// Shapes: any, kept
class PrecisionCast : public CloneableModule<PrecisionCast> {
 public:
  explicit PrecisionCast(dtype targetType) : targetType_(targetType) {}

  std::vector<Variable> forward(const std::vector<Variable>& inputs) override;
  Variable forward(const Variable& input);
  Variable operator()(const Variable& input);
  using Module::operator();
  std::string prettyString() const override;

 private:
  PrecisionCast() = default;
  FL_SAVE_LOAD_WITH_BASE(Module, targetType_)

  dtype targetType_ = dtype::f32;
};

}  // namespace fl
