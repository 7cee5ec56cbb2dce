#include "fl/autograd/tensor/ComposedAutogradExtension.h"

#include "fl/base/Error.h"
#include "fl/tensor/TableOps.h"
#include "fl/tensor/TensorBackend.h"

namespace fl {

FL_REGISTER_TENSOR_EXTENSION(ComposedAutogradExtension, Eager);
FL_REGISTER_TENSOR_EXTENSION(ComposedAutogradExtension, Jit);

namespace {
// Dimensions that are missing are 1.
Tensor asImages(const Tensor& input) {
  Shape shape = input.shape();
  if (shape.ndim() >= 4) return input;
  shape.get().resize(4, 1);
  return reshape(input, shape);
}
}  // namespace

Tensor ComposedAutogradExtension::conv2d(const Tensor& input, const Tensor& weights,
                                         const Tensor& bias, const int sx, const int sy,
                                         const int px, const int py, const int dx, const int dy,
                                         const int groups,
                                         std::shared_ptr<detail::AutogradPayload>) {
  return table::conv2d(input, weights, bias, {sx, sy, px, py, dx, dy, groups});
}

Tensor ComposedAutogradExtension::pool2d(const Tensor& input, const int wx, const int wy,
                                         const int sx, const int sy, const int px, const int py,
                                         const PoolingMode mode,
                                         std::shared_ptr<detail::AutogradPayload>) {
  checkEnumerator("pool2d", "PoolingMode", mode, PoolingMode::AVG_EXCLUDE_PADDING);
  return table::pool2d(asImages(input), {wx, wy, sx, sy, px, py, mode});
}

Tensor ComposedAutogradExtension::conv2dBackwardData(const Tensor& gradOutput, const Tensor& input,
                                                     const Tensor& weight, const int sx,
                                                     const int sy, const int px, const int py,
                                                     const int dx, const int dy, const int groups,
                                                     std::shared_ptr<DynamicBenchmark>,
                                                     std::shared_ptr<detail::AutogradPayload>) {
  return table::conv2dBackwardData(gradOutput, weight, input.shape(),
                                   {sx, sy, px, py, dx, dy, groups});
}

std::pair<Tensor, Tensor> ComposedAutogradExtension::conv2dBackwardFilterBias(
    const Tensor& gradOutput, const Tensor& input, const Tensor& weights, const Tensor& bias,
    const int sx, const int sy, const int px, const int py, const int dx, const int dy,
    const int groups, std::shared_ptr<DynamicBenchmark>, std::shared_ptr<DynamicBenchmark>,
    std::shared_ptr<detail::AutogradPayload>) {
  Tensor filter = table::conv2dBackwardFilter(gradOutput, input, weights.shape(),
                                              {sx, sy, px, py, dx, dy, groups});
  if (bias.isEmpty()) {
    return {std::move(filter), Tensor(bias.type())};
  }
  const Tensor total = sum(gradOutput, {0, 1, 3}).astype(bias.type());
  return {std::move(filter), reshape(total, bias.shape())};
}

Tensor ComposedAutogradExtension::pool2dBackward(const Tensor& gradOutput, const Tensor& input,
                                                 const Tensor&, const int wx, const int wy,
                                                 const int sx, const int sy, const int px,
                                                 const int py, const PoolingMode mode,
                                                 std::shared_ptr<detail::AutogradPayload>) {
  checkEnumerator("pool2dBackward", "PoolingMode", mode, PoolingMode::AVG_EXCLUDE_PADDING);
  const Tensor grad =
      table::pool2dBackward(gradOutput, asImages(input), {wx, wy, sx, sy, px, py, mode});
  return reshape(grad, input.shape());
}

}  // namespace fl
