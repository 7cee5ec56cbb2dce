#include "fl/nn/modules/Conv2D.h"

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Serialization.h"

CEREAL_REGISTER_TYPE(fl::Conv2D)
CEREAL_REGISTER_TYPE(fl::Conv1D)

namespace fl {

using detail::IntOrPadMode;

Conv2D::Conv2D(int nIn, int nOut, int wx, int wy, int sx, int sy, IntOrPadMode px, IntOrPadMode py,
               int dx, int dy, bool bias, int groups)
    : Convolution{{wx, wy, sx, sy, px.padVal, py.padVal}, nIn, nOut, dx, dy, bias, groups} {
  FL_API_CONSTRUCTOR();
  check("Conv2D");
  params_ = drawParameters(nIn, nOut);
}

Conv2D::Conv2D(const Variable& w, int sx, int sy, IntOrPadMode px, IntOrPadMode py, int dx, int dy,
               int groups)
    : CloneableUnaryModule<Conv2D>({w}) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(w.ndim() == 4, "Conv2D: weights ", typeToString(w.type(), w.shape()),
                " must have four dimensions");
  const auto size = [&](int axis) { return static_cast<int>(w.dim(axis)); };
  static_cast<Convolution&>(*this) = {{size(0), size(1), sx, sy, px.padVal, py.padVal},
                                      size(2) * groups,
                                      size(3),
                                      dx,
                                      dy,
                                      /*bias=*/false,
                                      groups};
  check("Conv2D");
}

Conv2D::Conv2D(const Variable& w, const Variable& b, int sx, int sy, IntOrPadMode px,
               IntOrPadMode py, int dx, int dy, int groups)
    : Conv2D(w, sx, sy, px, py, dx, dy, groups) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(b.ndim() >= 3 && b.dim(2) == w.dim(3) && b.elements() == b.dim(2), "Conv2D: bias ",
                b.shape(), " does not fit weights ", w.shape(), ": it must have shape (1, 1, ",
                w.dim(3), ", 1)");
  params_.push_back(b);
  bias_ = true;
}

Variable Conv2D::forward(const Variable& input) {
  FL_API_ENTRY();
  detail::checkImages(*this, input);
  const auto [px, py] = paddings(input, xDilation_, yDilation_);
  const Variable weights = detail::toType(params_[0], input.type());
  if (bias_) {
    return conv2d(input, weights, detail::toType(params_[1], input.type()), xStride_, yStride_, px,
                  py, xDilation_, yDilation_, groups_, benchmarks_);
  }
  return conv2d(input, weights, xStride_, yStride_, px, py, xDilation_, yDilation_, groups_,
                benchmarks_);
}

std::string Conv2D::prettyString() const { return describe("Conv2D"); }

Conv1D::Conv1D(int nIn, int nOut, int wx, int sx, IntOrPadMode px, int dx, bool bias, int groups) {
  FL_API_CONSTRUCTOR();
  static_cast<Convolution&>(*this) = {{wx, 1, sx, 1, px.padVal, 0}, nIn, nOut, dx, 1, bias, groups};
  check("Conv1D");
  params_ = drawParameters(nIn, nOut);
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
