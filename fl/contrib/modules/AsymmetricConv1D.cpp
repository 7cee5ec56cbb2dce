#include "fl/contrib/modules/AsymmetricConv1D.h"

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Init.h"
#include "fl/nn/Serialization.h"

CEREAL_REGISTER_TYPE(fl::AsymmetricConv1D)

namespace fl {

using detail::IntOrPadMode;

AsymmetricConv1D::AsymmetricConv1D(int nIn, int nOut, int wx, int sx, IntOrPadMode px,
                                   float futurePart, int dx, bool bias, int groups)
    : Conv2D(nIn, nOut, wx, 1, sx, 1, px, 0, dx, 1, bias, groups), futurePart_(futurePart) {
  FL_API_CONSTRUCTOR();
  checkSides();
}

AsymmetricConv1D::AsymmetricConv1D(const Variable& w, int sx, IntOrPadMode px, float futurePart,
                                   int dx, int groups)
    : Conv2D(w, sx, 1, px, 0, dx, 1, groups), futurePart_(futurePart) {
  FL_API_CONSTRUCTOR();
  checkSides();
}

AsymmetricConv1D::AsymmetricConv1D(const Variable& w, const Variable& b, int sx, IntOrPadMode px,
                                   float futurePart, int dx, int groups)
    : Conv2D(w, b, sx, 1, px, 0, dx, 1, groups), futurePart_(futurePart) {
  FL_API_CONSTRUCTOR();
  checkSides();
}

void AsymmetricConv1D::checkSides() const {
  FL_USER_CHECK(xPad_ == 0 || xPad_ == static_cast<int>(PaddingMode::SAME),
                "AsymmetricConv1D: the padding must be 0 or SAME, not ", xPad_);
  FL_USER_CHECK(futurePart_ >= 0 && futurePart_ <= 1,
                "AsymmetricConv1D: futurePart must be in [0, 1], not ", futurePart_);
  FL_USER_CHECK(yFilter_ == 1, "AsymmetricConv1D: weights ", params_[0].shape(),
                " do not have size 1 in the second dimension");
}

Variable AsymmetricConv1D::forward(const Variable& input) {
  FL_API_ENTRY();
  detail::checkImages(*this, input);
  const int each = paddings(input, xDilation_, 1).first;
  const int moved = static_cast<int>(2 * (0.5 - futurePart_) * each);
  const Variable padded = moved == 0 ? input : padding(input, {{each + moved, each - moved}}, 0.0);
  const Variable weights = detail::toType(params_[0], input.type());
  const Variable bias =
      bias_ ? detail::toType(params_[1], input.type()) : noGrad(Tensor(input.type()));
  return conv2d(padded, weights, bias, xStride_, 1, moved == 0 ? each : 0, 0, xDilation_, 1,
                groups_);
}

std::unique_ptr<Module> AsymmetricConv1D::clone() const {
  return std::make_unique<AsymmetricConv1D>(*this);
}

std::string AsymmetricConv1D::prettyString() const {
  return "AsymmetricConv1D (" + Conv2D::prettyString() + ")";
}

}  // namespace fl
