// A block of time-depth separable convolutions.
#pragma once

#include "fl/contrib/modules/Block.h"

namespace fl {

// A convolution over the time T, then two Linears over each time's W * C values, each of the two
// parts with ReLU and dropout, added to its input and normalized: Hannun et al.,
// "Sequence-to-sequence speech recognition with time-depth separable convolutions", 2019.
//
// The convolution keeps T: (kernelSize - 1) / 2 zeros after the end, or rightPadding if it is not
// -1, and the rest before the start. The Linears have innerLinearDim values between them, W * C if
// it is 0. A LayerNorm is over (T,W,C), or with lNormIncludeTime = false over (W,C), with a scalar
// weight and bias.
// Shapes: (T,width,channels,B), kept
class TDSBlock : public detail::Block {
 public:
  explicit TDSBlock(int channels, int kernelSize, int width, double dropout = 0,
                    int innerLinearDim = 0, int rightPadding = -1, bool lNormIncludeTime = true);
  FL_BASIC_CONTAINER_CLONING(TDSBlock)

  std::vector<Variable> forward(const std::vector<Variable>& inputs) override;
  std::string prettyString() const override;

 private:
  TDSBlock() = default;
  FL_SAVE_LOAD_WITH_BASE(detail::Block, channels_, width_, moreBefore_, moreAfter_)
  void addLinears(int inner, double dropout);

  int channels_ = 0;
  int width_ = 0;
  // Zeros beyond the convolution's own, which are as many at both ends.
  int moreBefore_ = 0;
  int moreAfter_ = 0;
};

}  // namespace fl
