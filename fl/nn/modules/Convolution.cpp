#include "fl/nn/modules/Convolution.h"

#include <cmath>

#include "fl/base/Error.h"
#include "fl/nn/Init.h"

namespace fl::detail {

void checkPositive(const char* module, const char* what, int x, int y) {
  FL_USER_CHECK(x > 0 && y > 0, module, ": ", what, " must be positive, not ", x, ",", y);
}

void Windows::check(const char* module) const {
  checkPositive(module, "windows", xFilter_, yFilter_);
  checkPositive(module, "strides", xStride_, yStride_);
  for (const int pad : {xPad_, yPad_}) {
    FL_USER_CHECK(pad >= 0 || pad == static_cast<int>(PaddingMode::SAME), module, ": a padding of ",
                  pad, " is negative and no PaddingMode");
  }
}

std::pair<int, int> Windows::paddings(const Variable& images, int xDilation, int yDilation) const {
  return {
      derivePadding(static_cast<int>(images.dim(0)), xFilter_, xStride_, xPad_, xDilation),
      derivePadding(static_cast<int>(images.dim(1)), yFilter_, yStride_, yPad_, yDilation),
  };
}

std::string Windows::toString() const {
  return concat(xFilter_, "x", yFilter_, ", ", xStride_, ",", yStride_, ", ",
                paddingToString(xPad_), ",", paddingToString(yPad_));
}

void Convolution::check(const char* module) const {
  FL_USER_CHECK(nIn_ > 0 && nOut_ > 0 && xFilter_ > 0 && yFilter_ > 0, module,
                ": channels and filter must be positive, not ", nIn_, "->", nOut_, ", ", xFilter_,
                "x", yFilter_);
  FL_USER_CHECK(groups_ > 0 && nIn_ % groups_ == 0 && nOut_ % groups_ == 0, module, ": ", groups_,
                " groups do not divide ", nIn_, "->", nOut_, " channels");
  Windows::check(module);
  checkPositive(module, "dilations", xDilation_, yDilation_);
}

std::vector<Variable> Convolution::drawParameters(int inputs, int outputs) const {
  const int fanIn = xFilter_ * yFilter_ * inputs / groups_;
  std::vector<Variable> parameters = {
      fl::kaimingUniform(Shape({xFilter_, yFilter_, inputs / groups_, outputs}), fanIn)};
  if (bias_) {
    const double bound = std::sqrt(1.0 / fanIn);
    parameters.push_back(fl::uniform(Shape({1, 1, nOut_, 1}), -bound, bound));
  }
  return parameters;
}

std::string Convolution::describe(const char* module) const {
  return concat(module, " (", nIn_, "->", nOut_, ", ", toString(), ", ", xDilation_, ",",
                yDilation_, ")", bias_ ? " (with bias)" : " (without bias)");
}

}  // namespace fl::detail
