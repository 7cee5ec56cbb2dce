#include "fl/nn/modules/Activations.h"

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/nn/Serialization.h"

CEREAL_REGISTER_TYPE(fl::Sigmoid)
CEREAL_REGISTER_TYPE(fl::Tanh)
CEREAL_REGISTER_TYPE(fl::ReLU)
CEREAL_REGISTER_TYPE(fl::LogSoftmax)

namespace fl {

Variable Sigmoid::forward(const Variable& input) {
  FL_API_ENTRY();
  return sigmoid(input);
}

std::string Sigmoid::prettyString() const { return "Sigmoid"; }

Variable Tanh::forward(const Variable& input) {
  FL_API_ENTRY();
  return tanh(input);
}

std::string Tanh::prettyString() const { return "Tanh"; }

Variable ReLU::forward(const Variable& input) {
  FL_API_ENTRY();
  return relu(input);
}

std::string ReLU::prettyString() const { return "ReLU"; }

Variable LogSoftmax::forward(const Variable& input) {
  FL_API_ENTRY();
  return logSoftmax(input, dim_);
}

std::string LogSoftmax::prettyString() const { return "LogSoftmax (" + std::to_string(dim_) + ")"; }

}  // namespace fl
