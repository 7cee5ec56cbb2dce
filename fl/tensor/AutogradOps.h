// Neural-network operators on plain tensors, forward and backward; fl/autograd builds on them.
// Layouts: images (W,H,C,N), filters (KW,KH,C/groups,O), bias (1,1,O,1). Float types.
#pragma once

#include "fl/tensor/Defines.h"
#include "fl/tensor/TensorBase.h"

namespace fl {

// Cross-correlation; out = 1 + (in + 2 pad - ((kernel - 1) dilation + 1)) / stride.
Tensor conv2d(const Tensor& input, const Tensor& weights, const int sx = 1, const int sy = 1,
              const int px = 0, const int py = 0, const int dx = 1, const int dy = 1,
              const int groups = 1);
Tensor conv2d(const Tensor& input, const Tensor& weights, const Tensor& bias, const int sx = 1,
              const int sy = 1, const int px = 0, const int py = 0, const int dx = 1,
              const int dy = 1, const int groups = 1);
// out = 1 + (in + 2 pad - window) / stride; padding is -inf for MAX.
Tensor pool2d(const Tensor& input, const int wx, const int wy, const int sx = 1, const int sy = 1,
              const int px = 0, const int py = 0, const PoolingMode mode = PoolingMode::MAX);

namespace detail {

struct Conv2DParameters {
  int sx = 1, sy = 1, px = 0, py = 0, dx = 1, dy = 1, groups = 1;
};
// y[..., i, ...] = x[..., index[..., i, ...], ...] along `axis`. The integer index has as many
// dimensions as x, and they broadcast in all but `axis`. An index outside x is an error that the
// computation of the result throws, naming this call.
Tensor gather(const Tensor& x, const Tensor& index, int axis);
// The gradient of the input, of shape inputShape.
Tensor conv2dBackwardData(const Tensor& gradOutput, const Tensor& weights, const Shape& inputShape,
                          const Conv2DParameters& parameters);
// The gradient of the weights, of shape weightsShape.
Tensor conv2dBackwardFilter(const Tensor& gradOutput, const Tensor& input,
                            const Shape& weightsShape, const Conv2DParameters& parameters);
Tensor pool2dBackward(const Tensor& gradOutput, const Tensor& input, const int wx, const int wy,
                      const int sx, const int sy, const int px, const int py,
                      const PoolingMode mode);

}  // namespace detail
}  // namespace fl
