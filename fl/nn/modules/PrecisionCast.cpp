#include "fl/nn/modules/PrecisionCast.h"

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Serialization.h"

CEREAL_REGISTER_TYPE(fl::PrecisionCast)

namespace fl {

std::vector<Variable> PrecisionCast::forward(const std::vector<Variable>& inputs) {
  FL_API_ENTRY();
  std::vector<Variable> outputs;
  for (const Variable& input : inputs) outputs.push_back(forward(input));
  return outputs;
}

Variable PrecisionCast::forward(const Variable& input) {
  FL_API_ENTRY();
  return input.astype(targetType_);
}

Variable PrecisionCast::operator()(const Variable& input) {
  FL_API_ENTRY();
  return forward(input);
}

std::string PrecisionCast::prettyString() const {
  return detail::concat("PrecisionCast * -> ", targetType_);
}

}  // namespace fl
