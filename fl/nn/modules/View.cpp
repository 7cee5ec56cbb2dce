#include "fl/nn/modules/View.h"

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/nn/Serialization.h"

CEREAL_REGISTER_TYPE(fl::View)

namespace fl {

Variable View::forward(const Variable& input) {
  FL_API_ENTRY();
  return moddims(input, dims_);
}

std::string View::prettyString() const { return "View " + dims_.toString(); }

}  // namespace fl
