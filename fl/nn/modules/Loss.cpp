#include "fl/nn/modules/Loss.h"

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Serialization.h"

CEREAL_REGISTER_TYPE(fl::MeanSquaredError)
CEREAL_REGISTER_TYPE(fl::MeanAbsoluteError)
CEREAL_REGISTER_TYPE(fl::CategoricalCrossEntropy)

namespace fl {
namespace {

Variable difference(const char* loss, const Variable& inputs, const Variable& targets) {
  FL_USER_CHECK(inputs.shape() == targets.shape(), loss, ": inputs ",
                typeToString(inputs.type(), inputs.shape()), " and targets ",
                typeToString(targets.type(), targets.shape()), " differ in shape");
  return inputs - targets;
}

}  // namespace

Variable MeanSquaredError::forward(const Variable& inputs, const Variable& targets) {
  FL_API_ENTRY();
  return mean(pow(difference("MeanSquaredError", inputs, targets), 2), {});
}

std::string MeanSquaredError::prettyString() const { return "MeanSquaredError"; }

Variable MeanAbsoluteError::forward(const Variable& inputs, const Variable& targets) {
  FL_API_ENTRY();
  return mean(abs(difference("MeanAbsoluteError", inputs, targets)), {});
}

std::string MeanAbsoluteError::prettyString() const { return "MeanAbsoluteError"; }

Variable CategoricalCrossEntropy::forward(const Variable& inputs, const Variable& targets) {
  FL_API_ENTRY();
  return categoricalCrossEntropy(inputs, targets, reduction_, ignoreIndex_);
}

std::string CategoricalCrossEntropy::prettyString() const { return "CategoricalCrossEntropy"; }

}  // namespace fl
