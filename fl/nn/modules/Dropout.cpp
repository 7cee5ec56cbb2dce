#include "fl/nn/modules/Dropout.h"

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Serialization.h"

CEREAL_REGISTER_TYPE(fl::Dropout)

namespace fl {

Dropout::Dropout(double ratio) : ratio_(ratio) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(ratio >= 0 && ratio <= 1, "Dropout: the ratio must be in [0, 1], not ", ratio);
}

Variable Dropout::forward(const Variable& input) {
  FL_API_ENTRY();
  return train_ ? dropout(input, ratio_) : input;
}

std::string Dropout::prettyString() const { return "Dropout (" + std::to_string(ratio_) + ")"; }

}  // namespace fl
