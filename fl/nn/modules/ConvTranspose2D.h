// What enlarges images as a strided convolution makes them smaller.
#pragma once

#include "fl/nn/modules/Convolution.h"
#include "fl/nn/modules/Module.h"

namespace fl {

// The gradient of fl::conv2d's input as a function of the gradient of its result, plus a bias: a
// convolution of nOut to nIn channels backwards. Sizes are (in - 1) stride - 2 pad + (filter - 1)
// dilation + 1 + extra, where the extra positions ex and ey, smaller than the stride, choose among
// the sizes that such a convolution makes equal.
// Parameters: the weights (wx,wy,nOut/groups,nIn), drawn by kaimingUniform with wx wy nOut / groups
// as fanIn, and the bias (1,1,nOut,1), uniform within sqrt(1 / fanIn).
// Shapes: (W,H,nIn,N) to (W',H',nOut,N)
class ConvTranspose2D : public CloneableUnaryModule<ConvTranspose2D>, private detail::Convolution {
 public:
  // Throws std::invalid_argument unless the settings fit each other.
  ConvTranspose2D(int nIn, int nOut, int wx, int wy, int sx = 1, int sy = 1, int px = 0, int py = 0,
                  int dx = 1, int dy = 1, bool bias = true, int groups = 1, int ex = 0, int ey = 0);
  FL_UNARY_MODULE(FL_CONVOLUTION_MEMBERS, xExtra_, yExtra_)
  ConvTranspose2D() = default;
  void checkSettings() const;
  Shape outputShape(const Shape& input) const;
  Variable backwards(const Variable& input, const Variable& weights) const;

  int xExtra_ = 0;
  int yExtra_ = 0;
};

}  // namespace fl
