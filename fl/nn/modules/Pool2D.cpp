#include "fl/nn/modules/Pool2D.h"

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Serialization.h"

CEREAL_REGISTER_TYPE(fl::Pool2D)

namespace fl {

Pool2D::Pool2D(int wx, int wy, int sx, int sy, detail::IntOrPadMode px, detail::IntOrPadMode py,
               PoolingMode mode)
    : Windows{wx, wy, sx, sy, px.padVal, py.padVal}, mode_(mode) {
  FL_API_CONSTRUCTOR();
  check("Pool2D");
  FL_USER_CHECK(2 * xPad_ <= wx && 2 * yPad_ <= wy, "Pool2D: paddings ", xPad_, ",", yPad_,
                " are more than half of the windows ", wx, ",", wy);
}

Variable Pool2D::forward(const Variable& input) {
  FL_API_ENTRY();
  const auto [px, py] = paddings(input, 1, 1);
  return pool2d(input, xFilter_, yFilter_, xStride_, yStride_, px, py, mode_);
}

std::string Pool2D::prettyString() const {
  return detail::concat("Pool2D-", mode_ == PoolingMode::MAX ? "max" : "avg", " (", toString(),
                        ")");
}

}  // namespace fl
