#include "fl/nn/modules/Dropout.h"

#include <sstream>

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/nn/Serialization.h"

CEREAL_REGISTER_TYPE(fl::Dropout)

namespace fl {

Variable Dropout::forward(const Variable& input) {
  FL_API_ENTRY();
  return train_ ? dropout(input, ratio_) : input;
}

std::string Dropout::prettyString() const {
  std::ostringstream text;
  text << "Dropout (" << ratio_ << ")";
  return text.str();
}

}  // namespace fl
