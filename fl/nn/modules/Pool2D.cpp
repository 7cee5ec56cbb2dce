#include "fl/nn/modules/Pool2D.h"

#include <sstream>

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/nn/Serialization.h"

CEREAL_REGISTER_TYPE(fl::Pool2D)

namespace fl {

Pool2D::Pool2D(int wx, int wy, int sx, int sy, detail::IntOrPadMode px, detail::IntOrPadMode py,
               PoolingMode mode)
    : xFilter_(wx),
      yFilter_(wy),
      xStride_(sx),
      yStride_(sy),
      xPad_(px.padVal),
      yPad_(py.padVal),
      mode_(mode) {}

Variable Pool2D::forward(const Variable& input) {
  FL_API_ENTRY();
  detail::checkImages(*this, input);
  const int px = derivePadding(static_cast<int>(input.dim(0)), xFilter_, xStride_, xPad_, 1);
  const int py = derivePadding(static_cast<int>(input.dim(1)), yFilter_, yStride_, yPad_, 1);
  return pool2d(input, xFilter_, yFilter_, xStride_, yStride_, px, py, mode_);
}

std::string Pool2D::prettyString() const {
  std::ostringstream text;
  text << "Pool2D-" << (mode_ == PoolingMode::MAX ? "max" : "avg") << " (" << xFilter_ << "x"
       << yFilter_ << ", " << xStride_ << "," << yStride_ << ", " << detail::paddingToString(xPad_)
       << "," << detail::paddingToString(yPad_) << ")";
  return text.str();
}

}  // namespace fl
