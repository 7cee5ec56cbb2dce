#include "fl/nn/modules/Activations.h"

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Init.h"
#include "fl/nn/Serialization.h"
#include "fl/nn/Utils.h"

CEREAL_REGISTER_TYPE(fl::Sigmoid)
CEREAL_REGISTER_TYPE(fl::Log)
CEREAL_REGISTER_TYPE(fl::Tanh)
CEREAL_REGISTER_TYPE(fl::HardTanh)
CEREAL_REGISTER_TYPE(fl::ReLU)
CEREAL_REGISTER_TYPE(fl::ReLU6)
CEREAL_REGISTER_TYPE(fl::LeakyReLU)
CEREAL_REGISTER_TYPE(fl::PReLU)
CEREAL_REGISTER_TYPE(fl::ELU)
CEREAL_REGISTER_TYPE(fl::ThresholdReLU)
CEREAL_REGISTER_TYPE(fl::GatedLinearUnit)
CEREAL_REGISTER_TYPE(fl::LogSoftmax)
CEREAL_REGISTER_TYPE(fl::Softmax)
CEREAL_REGISTER_TYPE(fl::Swish)
CEREAL_REGISTER_TYPE(fl::GELU)

namespace fl {
namespace {

// What prettyString() says after the name.
std::string setting() { return ""; }
template <typename T>
std::string setting(T value) {
  return " (" + std::to_string(value) + ")";
}

// max(x, 0) with gradient 1 at 0, which max() with a double or relu() would make 0. A product with
// a mask would make NaN of infinities.
Variable positive(const Variable& input) {
  return max(Variable(fromScalar(0.0, input.type()), false), input);
}

// Without dimensions of 1 that the input lacks: the result has the input's shape.
Variable slopeFor(const Variable& slope, const Variable& input) {
  Shape shape = slope.shape();
  while (shape.ndim() > input.ndim() && shape.get().back() == 1) shape.get().pop_back();
  return detail::toType(moddims(slope, shape), input.type());
}

}  // namespace

PReLU::PReLU(int size, double value) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(size > 0, "PReLU: the size must be positive, not ", size);
  params_ = {constant(value, size, 1)};
}

// The functions of a module that gives `result`, and shows the setting, if it has one.
#define FL_ACTIVATION(Class, result, ...)          \
  Variable Class::forward(const Variable& input) { \
    FL_API_ENTRY();                                \
    return result;                                 \
  }                                                \
  std::string Class::prettyString() const { return #Class + setting(__VA_ARGS__); }

FL_ACTIVATION(Sigmoid, sigmoid(input))
FL_ACTIVATION(Log, log(input))
FL_ACTIVATION(Tanh, tanh(input))
FL_ACTIVATION(HardTanh, clamp(input, -1.0, 1.0))
FL_ACTIVATION(ReLU, relu(input))
FL_ACTIVATION(ReLU6, clamp(input, 0.0, 6.0))
FL_ACTIVATION(LeakyReLU, max(input, mSlope_* input), mSlope_)
FL_ACTIVATION(PReLU, positive(input) + min(input, 0.0) * slopeFor(params_[0], input))
FL_ACTIVATION(ELU,
              positive(input) +
                  detail::toType(mAlpha_ * (exp(min(input, 0.0)) - 1.0), input.type()),
              mAlpha_)
FL_ACTIVATION(ThresholdReLU, input*(input >= mThreshold_), mThreshold_)
FL_ACTIVATION(GatedLinearUnit, gatedlinearunit(input, dim_), dim_)
FL_ACTIVATION(LogSoftmax, logSoftmax(input, dim_), dim_)
FL_ACTIVATION(Softmax, softmax(input, dim_), dim_)
FL_ACTIVATION(Swish, swish(input, beta_), beta_)
FL_ACTIVATION(GELU, gelu(input))

#undef FL_ACTIVATION

}  // namespace fl
