#include "fl/tensor/AutogradOps.h"

#include "fl/base/CallSite.h"
#include "fl/tensor/Detail.h"

namespace fl {
namespace {

std::vector<Dim> convAttrs(const detail::Conv2DParameters& p) {
  return {p.sx, p.sy, p.px, p.py, p.dx, p.dy, p.groups};
}

}  // namespace

Tensor conv2d(const Tensor& input, const Tensor& weights, const int sx, const int sy, const int px,
              const int py, const int dx, const int dy, const int groups) {
  FL_API_ENTRY();
  return detail::applyOp(ir::Op::Conv2d, {input, weights}, {sx, sy, px, py, dx, dy, groups});
}

Tensor conv2d(const Tensor& input, const Tensor& weights, const Tensor& bias, const int sx,
              const int sy, const int px, const int py, const int dx, const int dy,
              const int groups) {
  FL_API_ENTRY();
  if (bias.isEmpty()) {
    return conv2d(input, weights, sx, sy, px, py, dx, dy, groups);
  }
  return detail::applyOp(ir::Op::Conv2d, {input, weights, bias}, {sx, sy, px, py, dx, dy, groups});
}

Tensor pool2d(const Tensor& input, const int wx, const int wy, const int sx, const int sy,
              const int px, const int py, const PoolingMode mode) {
  FL_API_ENTRY();
  return detail::applyOp(ir::Op::Pool2d, {input}, {wx, wy, sx, sy, px, py, static_cast<Dim>(mode)});
}

namespace detail {

Tensor conv2dBackwardData(const Tensor& gradOutput, const Tensor& weights, const Shape& inputShape,
                          const Conv2DParameters& parameters) {
  FL_API_ENTRY();
  std::vector<Dim> attrs = convAttrs(parameters);
  attrs.insert(attrs.end(), {inputShape.dim(0), inputShape.dim(1)});
  return applyOp(ir::Op::Conv2dBackwardData, {gradOutput, weights}, ir::Attrs(attrs));
}

Tensor conv2dBackwardFilter(const Tensor& gradOutput, const Tensor& input,
                            const Shape& weightsShape, const Conv2DParameters& parameters) {
  FL_API_ENTRY();
  std::vector<Dim> attrs = convAttrs(parameters);
  attrs.insert(attrs.end(), {weightsShape.dim(0), weightsShape.dim(1)});
  return applyOp(ir::Op::Conv2dBackwardFilter, {gradOutput, input}, ir::Attrs(attrs));
}

Tensor gather(const Tensor& x, const Tensor& index, int axis) {
  FL_API_ENTRY();
  return applyOp(ir::Op::Gather, {x, castTo(index, dtype::s64)}, {axis});
}

Tensor pool2dBackward(const Tensor& gradOutput, const Tensor& input, const int wx, const int wy,
                      const int sx, const int sy, const int px, const int py,
                      const PoolingMode mode) {
  FL_API_ENTRY();
  return applyOp(ir::Op::Pool2dBackward, {gradOutput, input},
                 {wx, wy, sx, sy, px, py, static_cast<Dim>(mode)});
}

}  // namespace detail
}  // namespace fl
