// 2-D pooling of images (W,H,C,N).
#pragma once

#include "fl/nn/modules/Convolution.h"
#include "fl/nn/modules/Module.h"
#include "fl/tensor/Defines.h"

namespace fl {

// The maximum or the average of windows of wx * wy elements, as fl::pool2d; paddings are numbers or
// PaddingMode::SAME.
// Shapes: (W,H,C,N) to (W',H',C,N); last dimensions of 1 may be left out
class Pool2D : public CloneableUnaryModule<Pool2D>, private detail::Windows {
 public:
  // Throws std::invalid_argument unless windows and strides are positive and paddings numbers from
  // 0 on, at most half of the window, or a PaddingMode.
  Pool2D(int wx, int wy, int sx = 1, int sy = 1, detail::IntOrPadMode px = 0,
         detail::IntOrPadMode py = 0, PoolingMode mode = PoolingMode::MAX);
  FL_UNARY_MODULE(FL_WINDOW_MEMBERS, mode_)
  Pool2D() = default;

  PoolingMode mode_ = PoolingMode::MAX;
};

}  // namespace fl
