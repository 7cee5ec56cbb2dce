#include "fl/nn/modules/Reorder.h"

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/nn/Serialization.h"

CEREAL_REGISTER_TYPE(fl::Reorder)

namespace fl {

Variable Reorder::forward(const Variable& input) {
  FL_API_ENTRY();
  return reorder(input, shape_);
}

std::string Reorder::prettyString() const { return "Reorder " + shape_.toString(); }

}  // namespace fl
