// Any function as a module, and the module that does nothing.
#pragma once

#include <functional>
#include <stdexcept>

#include "fl/nn/modules/Module.h"

namespace fl {

// Any function `func`; `name` is for prettyString(). Has no form on disk: saving a model that holds
// one throws std::runtime_error.
// Shapes: the function's
class Transform : public CloneableUnaryModule<Transform> {
 public:
  explicit Transform(const std::function<Variable(const Variable&)>& func,
                     const std::string& name = "");
  using UnaryModule::forward;
  Variable forward(const Variable& input) override;
  std::string prettyString() const override;

 private:
  Transform() = default;
  FL_SAVE_LOAD_DECLARE()

  std::function<Variable(const Variable&)> func_;
  std::string name_;
};

template <class Archive>
void Transform::save(Archive&, uint32_t) const {
  throw std::runtime_error("a Transform holds a function, which cannot be saved");
}

template <class Archive>
void Transform::load(Archive&, uint32_t) {
  throw std::runtime_error("a Transform holds a function, which cannot be loaded");
}

// The inputs as they are, as many as there are.
// Shapes: any, kept
class Identity : public CloneableUnaryModule<Identity> {
 public:
  std::vector<Variable> forward(const std::vector<Variable>& inputs) override { return inputs; }
  FL_UNARY_MODULE()
};

}  // namespace fl
