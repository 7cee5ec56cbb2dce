// 2-D pooling of images (W,H,C,N).
#pragma once

#include "fl/nn/Utils.h"
#include "fl/nn/modules/Module.h"
#include "fl/tensor/Defines.h"

namespace fl {

// The maximum or the average of windows of wx * wy elements, as fl::pool2d; paddings are numbers or
// PaddingMode::SAME.
// Shapes: (W,H,C,N) to (W',H',C,N)
class Pool2D : public CloneableUnaryModule<Pool2D> {
 public:
  Pool2D(int wx, int wy, int sx = 1, int sy = 1, detail::IntOrPadMode px = 0,
         detail::IntOrPadMode py = 0, PoolingMode mode = PoolingMode::MAX);
  FL_UNARY_MODULE(xFilter_, yFilter_, xStride_, yStride_, xPad_, yPad_, mode_)
  Pool2D() = default;

  int xFilter_ = 1;
  int yFilter_ = 1;
  int xStride_ = 1;
  int yStride_ = 1;
  int xPad_ = 0;
  int yPad_ = 0;
  PoolingMode mode_ = PoolingMode::MAX;
};

}  // namespace fl
