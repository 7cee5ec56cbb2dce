#include "fl/nn/modules/ConvTranspose2D.h"

#include "fl/autograd/Functions.h"
#include "fl/autograd/tensor/AutogradOps.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Serialization.h"
#include "fl/nn/Utils.h"

CEREAL_REGISTER_TYPE(fl::ConvTranspose2D)

namespace fl {

ConvTranspose2D::ConvTranspose2D(int nIn, int nOut, int wx, int wy, int sx, int sy, int px, int py,
                                 int dx, int dy, bool bias, int groups, int ex, int ey)
    : Convolution{{wx, wy, sx, sy, px, py}, nIn, nOut, dx, dy, bias, groups},
      xExtra_(ex),
      yExtra_(ey) {
  FL_API_CONSTRUCTOR();
  checkSettings();
  params_ = drawParameters(nOut, nIn);
}

void ConvTranspose2D::checkSettings() const {
  check("ConvTranspose2D");
  FL_USER_CHECK(xPad_ >= 0 && yPad_ >= 0, "ConvTranspose2D: paddings must be numbers from 0 on, ",
                "not ", xPad_, ",", yPad_);
  FL_USER_CHECK(xExtra_ >= 0 && xExtra_ < xStride_ && yExtra_ >= 0 && yExtra_ < yStride_,
                "ConvTranspose2D: extra positions ", xExtra_, ",", yExtra_,
                " must be smaller than the strides ", xStride_, ",", yStride_);
}

Shape ConvTranspose2D::outputShape(const Shape& input) const {
  const auto size = [](Dim in, int filter, int stride, int pad, int dilation, int extra) {
    return (in - 1) * stride - 2 * pad + Dim{filter - 1} * dilation + 1 + extra;
  };
  const Shape shape({size(input[0], xFilter_, xStride_, xPad_, xDilation_, xExtra_),
                     size(input[1], yFilter_, yStride_, yPad_, yDilation_, yExtra_), nOut_,
                     input[3]});
  FL_USER_CHECK(shape[0] > 0 && shape[1] > 0, prettyString(), ": the input ", input,
                " leaves nothing between the paddings");
  return shape;
}

Variable ConvTranspose2D::backwards(const Variable& input, const Variable& weights) const {
  const Tensor x = input.tensor(), w = weights.tensor();
  const int sx = xStride_, sy = yStride_, px = xPad_, py = yPad_, dx = xDilation_, dy = yDilation_;
  const int groups = groups_;
  // Only shape and dtype are read of a result that is not there yet.
  const Tensor result(outputShape(input.shape()), input.type());
  return Variable(
      detail::conv2dBackwardData(x, result, w, sx, sy, px, py, dx, dy, groups, nullptr, nullptr),
      {input.withoutData(), weights.withoutData()},
      [=](std::vector<Variable>& inputs, const Variable& gradOutput) {
        const Tensor& grad = gradOutput.tensor();
        const Tensor none(grad.type());
        if (inputs[0].isCalcGrad()) {
          inputs[0].addGrad(Variable(conv2d(grad, w, sx, sy, px, py, dx, dy, groups), false));
        }
        if (inputs[1].isCalcGrad()) {
          Tensor gradWeights =
              detail::conv2dBackwardFilterBias(x, grad, w, none, sx, sy, px, py, dx, dy, groups,
                                               nullptr, nullptr, nullptr)
                  .first;
          inputs[1].addGrad(Variable(std::move(gradWeights), false));
        }
      });
}

Variable ConvTranspose2D::forward(const Variable& in) {
  FL_API_ENTRY();
  const Variable input = detail::adjustInputType(in, "conv2d");
  detail::checkImages(*this, input);
  FL_USER_CHECK(input.dim(2) == nIn_, prettyString(), ": the input ",
                typeToString(input.type(), input.shape()), " must have ", nIn_, " channels");
  const Variable result = backwards(input, detail::toType(params_[0], input.type()));
  return bias_ ? result + detail::toType(params_[1], input.type()) : result;
}

std::string ConvTranspose2D::prettyString() const { return describe("ConvTranspose2D"); }

}  // namespace fl
