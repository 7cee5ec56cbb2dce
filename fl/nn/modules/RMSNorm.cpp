#include "fl/nn/modules/RMSNorm.h"

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Init.h"
#include "fl/nn/Serialization.h"
#include "fl/nn/Utils.h"

CEREAL_REGISTER_TYPE(fl::RMSNorm)

namespace fl {

RMSNorm::RMSNorm(int size, double eps, bool affine) : size_(size), epsilon_(eps), affine_(affine) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(size > 0, "RMSNorm: the size must be positive, not ", size);
  if (affine) {
    params_ = {constant(1.0, Shape({size}))};
  }
}

Variable RMSNorm::forward(const Variable& input) {
  FL_API_ENTRY();
  FL_USER_CHECK(input.ndim() > 0 && input.dim(0) == size_, prettyString(), ": the input must be (",
                size_, ", ...), not ", typeToString(input.type(), input.shape()));
  const Variable x = detail::toType(input, computeType(input.type()));
  Shape one = x.shape();
  one[0] = 1;
  // Not mean(), which mixed precision may take in 16 bits.
  const Variable squares = sumAs(x * x, one) / static_cast<double>(size_);
  const Variable result = x / sqrt(squares + epsilon_);
  return detail::toType(affine_ ? result * detail::toType(params_[0], x.type()) : result,
                        input.type());
}

std::string RMSNorm::prettyString() const {
  return detail::concat("RMSNorm ( size : ", size_, " )");
}

}  // namespace fl
