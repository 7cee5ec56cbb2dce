#include "fl/nn/modules/Conv2D.h"

#include <cmath>
#include <sstream>

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Init.h"
#include "fl/nn/Serialization.h"

CEREAL_REGISTER_TYPE(fl::Conv2D)
CEREAL_REGISTER_TYPE(fl::Conv1D)

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
  drawParameters("Conv2D");
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
      groups_(groups) {
  FL_API_ENTRY();
  checkSettings("Conv2D");
}

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

void Conv2D::checkSettings(const char* name) const {
  FL_USER_CHECK(nIn_ > 0 && nOut_ > 0 && xFilter_ > 0 && yFilter_ > 0, name,
                ": channels and filter must be positive, not ", nIn_, "->", nOut_, ", ", xFilter_,
                "x", yFilter_);
  FL_USER_CHECK(groups_ > 0 && nIn_ % groups_ == 0 && nOut_ % groups_ == 0, name, ": ", groups_,
                " groups do not divide ", nIn_, "->", nOut_, " channels");
  FL_USER_CHECK(xStride_ > 0 && yStride_ > 0, name, ": strides must be positive, not ", xStride_,
                ",", yStride_);
}

void Conv2D::drawParameters(const char* name) {
  checkSettings(name);
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
  const Variable weights = detail::toType(params_[0], input.type());
  if (bias_) {
    return conv2d(input, weights, detail::toType(params_[1], input.type()), xStride_, yStride_, px,
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

Conv1D::Conv1D(int nIn, int nOut, int wx, int sx, IntOrPadMode px, int dx, bool bias, int groups) {
  FL_API_ENTRY();
  nIn_ = nIn;
  nOut_ = nOut;
  xFilter_ = wx;
  yFilter_ = 1;
  xStride_ = sx;
  xPad_ = px.padVal;
  xDilation_ = dx;
  bias_ = bias;
  groups_ = groups;
  drawParameters("Conv1D");
}

Variable Conv1D::forward(const Variable& input) {
  FL_API_ENTRY();
  FL_USER_CHECK(input.ndim() == 3, prettyString(), ": the input must be (W, C, N), not ",
                typeToString(input.type(), input.shape()));
  const Variable output =
      Conv2D::forward(moddims(input, {input.dim(0), 1, input.dim(1), input.dim(2)}));
  return moddims(output, {output.dim(0), output.dim(2), output.dim(3)});
}

std::unique_ptr<Module> Conv1D::clone() const { return std::make_unique<Conv1D>(*this); }

std::string Conv1D::prettyString() const {
  return detail::concat("Conv1D (", nIn_, "->", nOut_, ", ", xFilter_, ", ", xStride_, ", ",
                        detail::paddingToString(xPad_), ", ", xDilation_, ")",
                        bias_ ? " (with bias)" : " (without bias)");
}

}  // namespace fl
