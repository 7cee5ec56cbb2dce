#include "fl/nn/modules/GroupNorm.h"

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Init.h"
#include "fl/nn/Serialization.h"
#include "fl/nn/Utils.h"

CEREAL_REGISTER_TYPE(fl::GroupNorm)

namespace fl {

GroupNorm::GroupNorm(int numGroups, int numChannels, double eps, bool affine)
    : numGroups_(numGroups), numChannels_(numChannels), epsilon_(eps), affine_(affine) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(numGroups > 0 && numChannels > 0 && numChannels % numGroups == 0,
                "GroupNorm: ", numGroups, " groups do not divide ", numChannels, " channels");
  if (affine) {
    params_ = {constant(1.0, Shape({numChannels})), constant(0.0, Shape({numChannels}))};
  }
}

Variable GroupNorm::forward(const Variable& input) {
  FL_API_ENTRY();
  const int channels = static_cast<int>(input.ndim()) - 2;
  FL_USER_CHECK(channels >= 0 && input.dim(channels) == numChannels_, prettyString(),
                ": the input must be (..., ", numChannels_, ", N), not ",
                typeToString(input.type(), input.shape()));
  const Dim samples = input.dim(channels + 1);
  const Variable groups = moddims(input, {-1, numGroups_, samples});
  const Variable result = moddims(detail::standardize(groups, {1, 2}, epsilon_), input.shape());
  if (!affine_) return result;
  Shape shape(std::vector<Dim>(input.ndim(), 1));
  shape[channels] = numChannels_;
  return detail::scaleAndShift(result, params_[0], params_[1], shape);
}

std::string GroupNorm::prettyString() const {
  return detail::concat("GroupNorm ( groups : ", numGroups_, ", size : ", numChannels_, " )");
}

}  // namespace fl
