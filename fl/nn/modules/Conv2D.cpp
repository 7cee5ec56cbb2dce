#include "fl/nn/modules/Conv2D.h"

#include <cmath>
#include <sstream>

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Init.h"
#include "fl/nn/Serialization.h"

CEREAL_REGISTER_TYPE(fl::Conv2D)

namespace fl {

using detail::IntOrPadMode;

Conv2D::Conv2D(int nIn, int nOut, int wx, int wy, int sx, int sy, IntOrPadMode px, IntOrPadMode py,
               int dx, int dy, bool bias, int groups)
    : nIn_(nIn),
      nOut_(nOut),
      xFilter_(wx),
      yFilter_(wy),
      xStride_(sx),
      yStride_(sy),
      xPad_(px.padVal),
      yPad_(py.padVal),
      xDilation_(dx),
      yDilation_(dy),
      bias_(bias),
      groups_(groups) {
  FL_API_ENTRY();
  FL_USER_CHECK(nIn > 0 && nOut > 0 && wx > 0 && wy > 0, "Conv2D: channels and filter must be ",
                "positive, not ", nIn, "->", nOut, ", ", wx, "x", wy);
  FL_USER_CHECK(groups > 0 && nIn % groups == 0 && nOut % groups == 0, "Conv2D: ", groups,
                " groups do not divide ", nIn, "->", nOut, " channels");
  drawParameters();
}

Conv2D::Conv2D(const Variable& w, int sx, int sy, IntOrPadMode px, IntOrPadMode py, int dx, int dy,
               int groups)
    : CloneableUnaryModule<Conv2D>({w}),
      nIn_(static_cast<int>(w.dim(2)) * groups),
      nOut_(static_cast<int>(w.dim(3))),
      xFilter_(static_cast<int>(w.dim(0))),
      yFilter_(static_cast<int>(w.dim(1))),
      xStride_(sx),
      yStride_(sy),
      xPad_(px.padVal),
      yPad_(py.padVal),
      xDilation_(dx),
      yDilation_(dy),
      groups_(groups) {}

Conv2D::Conv2D(const Variable& w, const Variable& b, int sx, int sy, IntOrPadMode px,
               IntOrPadMode py, int dx, int dy, int groups)
    : Conv2D(w, sx, sy, px, py, dx, dy, groups) {
  FL_API_ENTRY();
  FL_USER_CHECK(b.ndim() >= 3 && b.dim(2) == w.dim(3) && b.elements() == b.dim(2), "Conv2D: bias ",
                b.shape(), " does not fit weights ", w.shape(), ": it must have shape (1, 1, ",
                w.dim(3), ", 1)");
  params_.push_back(b);
  bias_ = true;
}

void Conv2D::drawParameters() {
  const int fanIn = xFilter_ * yFilter_ * nIn_ / groups_;
  params_ = {kaimingUniform(Shape({xFilter_, yFilter_, nIn_ / groups_, nOut_}), fanIn)};
  if (bias_) {
    const double bound = std::sqrt(1.0 / fanIn);
    params_.push_back(uniform(Shape({1, 1, nOut_, 1}), -bound, bound));
  }
}

Variable Conv2D::forward(const Variable& input) {
  FL_API_ENTRY();
  detail::checkImages(*this, input);
  const int px =
      derivePadding(static_cast<int>(input.dim(0)), xFilter_, xStride_, xPad_, xDilation_);
  const int py =
      derivePadding(static_cast<int>(input.dim(1)), yFilter_, yStride_, yPad_, yDilation_);
  const Variable weights = detail::inType(params_[0], input.type());
  if (bias_) {
    return conv2d(input, weights, detail::inType(params_[1], input.type()), xStride_, yStride_, px,
                  py, xDilation_, yDilation_, groups_);
  }
  return conv2d(input, weights, xStride_, yStride_, px, py, xDilation_, yDilation_, groups_);
}

std::string Conv2D::prettyString() const {
  std::ostringstream text;
  text << "Conv2D (" << nIn_ << "->" << nOut_ << ", " << xFilter_ << "x" << yFilter_ << ", "
       << xStride_ << "," << yStride_ << ", " << detail::paddingToString(xPad_) << ","
       << detail::paddingToString(yPad_) << ", " << xDilation_ << "," << yDilation_ << ")"
       << (bias_ ? " (with bias)" : " (without bias)");
  return text.str();
}

}  // namespace fl
