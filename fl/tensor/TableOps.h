// Operators of the op table that the tensor API has no function for: convolution, pooling,
// attention and gather. fl/autograd offers all but the last to users; the backend in scope runs
// them. Layouts: images (W,H,C,N), filters (KW,KH,C/groups,O), bias (1,1,O,1). Float types.
#pragma once

#include <array>

#include "fl/tensor/Defines.h"
#include "fl/tensor/TensorBase.h"

namespace fl::table {

struct Conv2dParameters {
  int sx = 1, sy = 1, px = 0, py = 0, dx = 1, dy = 1, groups = 1;
};
struct Pool2dParameters {
  int wx, wy, sx = 1, sy = 1, px = 0, py = 0;
  PoolingMode mode = PoolingMode::MAX;
};

// Cross-correlation; out = 1 + (in + 2 pad - ((kernel - 1) dilation + 1)) / stride. The bias may be
// empty.
Tensor conv2d(const Tensor& input, const Tensor& weights, const Tensor& bias,
              const Conv2dParameters& parameters);
// The gradient of the input, of shape inputShape.
Tensor conv2dBackwardData(const Tensor& gradOutput, const Tensor& weights, const Shape& inputShape,
                          const Conv2dParameters& parameters);
// The gradient of the weights, of shape weightsShape.
Tensor conv2dBackwardFilter(const Tensor& gradOutput, const Tensor& input,
                            const Shape& weightsShape, const Conv2dParameters& parameters);

// out = 1 + (in + 2 pad - window) / stride; padding is -inf for MAX.
Tensor pool2d(const Tensor& input, const Pool2dParameters& parameters);
Tensor pool2dBackward(const Tensor& gradOutput, const Tensor& input,
                      const Pool2dParameters& parameters);

// softmax over the keys of query key^T + mask, times value: (time, D, heads, batch) of a query of
// that shape and a key and a value (keys, D, heads, batch). The mask broadcasts to (time, keys,
// heads, batch), or is empty. The query is not scaled.
Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask);
// The gradients of query, key and value.
std::array<Tensor, 3> attentionBackward(const Tensor& gradOutput, const Tensor& query,
                                        const Tensor& key, const Tensor& value, const Tensor& mask);

// y[..., i, ...] = x[..., index[..., i, ...], ...] along `axis`. The integer index has as many
// dimensions as x, and they broadcast in all but `axis`. An index outside x is an error that the
// computation of the result throws, naming this call.
Tensor gather(const Tensor& x, const Tensor& index, int axis);

}  // namespace fl::table
