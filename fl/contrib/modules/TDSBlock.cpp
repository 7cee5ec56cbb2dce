#include "fl/contrib/modules/TDSBlock.h"

#include <algorithm>

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Serialization.h"
#include "fl/nn/nn.h"

CEREAL_REGISTER_TYPE(fl::TDSBlock)

namespace fl {
namespace {

enum Child { kConvolution, kConvolutionNorm, kLinears, kLinearsNorm };

}  // namespace

TDSBlock::TDSBlock(int channels, int kernelSize, int width, double dropout, int innerLinearDim,
                   int rightPadding, bool lNormIncludeTime)
    : channels_(channels), width_(width) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(channels > 0 && kernelSize > 0 && width > 0 && innerLinearDim >= 0,
                "TDSBlock: sizes must be positive, not channels ", channels, ", kernelSize ",
                kernelSize, ", width ", width, ", innerLinearDim ", innerLinearDim);
  FL_USER_CHECK(rightPadding >= -1 && rightPadding < kernelSize, "TDSBlock: rightPadding ",
                rightPadding, " is not in [-1, ", kernelSize, "), for a kernel of ", kernelSize);
  const std::vector<int> axes = lNormIncludeTime ? std::vector{0, 1, 2} : std::vector{1, 2};
  const int after = rightPadding == -1 ? (kernelSize - 1) / 2 : rightPadding;
  const int before = kernelSize - 1 - after, both = std::min(before, after);
  moreBefore_ = before - both;
  moreAfter_ = after - both;
  Sequential convolution;
  convolution.add(Conv2D(channels, channels, kernelSize, 1, 1, 1, both));
  convolution.add(ReLU());
  convolution.add(Dropout(dropout));
  add(std::move(convolution));
  add(LayerNorm(axes));
  addLinears(innerLinearDim == 0 ? channels * width : innerLinearDim, dropout);
  add(LayerNorm(axes));
}

void TDSBlock::addLinears(int inner, double dropout) {
  Sequential linears;
  linears.add(Reorder(Shape({2, 1, 0, 3})));
  linears.add(View(Shape({channels_ * width_, -1, 1, 0})));
  linears.add(Linear(channels_ * width_, inner));
  linears.add(ReLU());
  linears.add(Dropout(dropout));
  linears.add(Linear(inner, channels_ * width_));
  linears.add(View(Shape({channels_, width_, -1, 0})));
  linears.add(Reorder(Shape({2, 1, 0, 3})));
  linears.add(Dropout(dropout));
  add(std::move(linears));
}

std::vector<Variable> TDSBlock::forward(const std::vector<Variable>& inputs) {
  FL_API_ENTRY();
  FL_USER_CHECK(inputs.size() == 1, prettyString(), ": takes one input, not ", inputs.size());
  const Variable& x = inputs[0];
  FL_USER_CHECK(x.ndim() == 4 && x.dim(1) == width_ && x.dim(2) == channels_, prettyString(),
                ": the input must be (time, ", width_, ", ", channels_, ", batch), not ",
                typeToString(x.type(), x.shape()));
  const Variable padded =
      moreBefore_ == moreAfter_ ? x : padding(x, {{moreBefore_, moreAfter_}}, 0.0);
  const Variable h = apply(kConvolutionNorm, apply(kConvolution, padded) + x);
  return {apply(kLinearsNorm, apply(kLinears, h) + h)};
}

std::string TDSBlock::prettyString() const {
  // The convolution's weights come first, after the Variables of its bias and norm the Linear's.
  const Dim kernel = param(0).dim(0), outer = param(4).dim(1), inner = param(4).dim(0);
  return detail::concat("Time-Depth Separable Block (", kernel, ", ", width_, ", ", channels_,
                        ") [", outer, " -> ", inner, " -> ", outer, "]");
}

}  // namespace fl
