#include "fl/nn/modules/Normalize.h"

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Serialization.h"
#include "fl/nn/Utils.h"

CEREAL_REGISTER_TYPE(fl::Normalize)

namespace fl {

Variable Normalize::forward(const Variable& input) {
  FL_API_ENTRY();
  return value_ * normalize(input, axes_, p_, eps_);
}

std::string Normalize::prettyString() const {
  return detail::concat("Normalize ( axis : ", detail::axesToString(axes_), " , p : ", p_,
                        ", eps : ", eps_, ", value : ", value_, " )");
}

}  // namespace fl
