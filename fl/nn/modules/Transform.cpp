#include "fl/nn/modules/Transform.h"

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Serialization.h"

CEREAL_REGISTER_TYPE(fl::Transform)
// Nothing of the base is saved, which is how the other classes make their relation known.
CEREAL_REGISTER_POLYMORPHIC_RELATION(fl::Module, fl::Transform)
CEREAL_REGISTER_TYPE(fl::Identity)

namespace fl {

Transform::Transform(const std::function<Variable(const Variable&)>& func, const std::string& name)
    : func_(func), name_(name) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(func_, "Transform: needs a function");
}

Variable Transform::forward(const Variable& input) { return func_(input); }

std::string Transform::prettyString() const {
  return name_.empty() ? "Transform" : "Transform (" + name_ + ")";
}

Variable Identity::forward(const Variable& input) { return input; }

std::string Identity::prettyString() const { return "Identity"; }

}  // namespace fl
