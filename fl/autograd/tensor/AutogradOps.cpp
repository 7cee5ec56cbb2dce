#include "fl/autograd/tensor/AutogradOps.h"

#include "fl/autograd/tensor/AutogradExtension.h"
#include "fl/base/CallSite.h"

namespace fl {
namespace {

AutogradExtension& extensionOf(const Tensor& tensor) {
  return tensor.backend().getExtension<AutogradExtension>();
}

}  // namespace

Tensor conv2d(const Tensor& input, const Tensor& weights, const int sx, const int sy, const int px,
              const int py, const int dx, const int dy, const int groups) {
  FL_API_ENTRY();
  return conv2d(input, weights, Tensor(input.type()), sx, sy, px, py, dx, dy, groups);
}

Tensor conv2d(const Tensor& input, const Tensor& weights, const Tensor& bias, const int sx,
              const int sy, const int px, const int py, const int dx, const int dy,
              const int groups) {
  FL_API_ENTRY();
  return detail::conv2d(input, weights, bias, sx, sy, px, py, dx, dy, groups, nullptr);
}

Tensor pool2d(const Tensor& input, const int wx, const int wy, const int sx, const int sy,
              const int px, const int py, const PoolingMode mode) {
  FL_API_ENTRY();
  return detail::pool2d(input, wx, wy, sx, sy, px, py, mode, nullptr);
}

Tensor batchnorm(const Tensor& input, const Tensor& weight, const Tensor& bias, Tensor& runningMean,
                 Tensor& runningVar, const std::vector<int>& axes, const bool train,
                 const double momentum, const double epsilon) {
  FL_API_ENTRY();
  Tensor saveMean, saveVar;
  return batchnorm(saveMean, saveVar, input, weight, bias, runningMean, runningVar, axes, train,
                   momentum, epsilon);
}

Tensor batchnorm(Tensor& saveMean, Tensor& saveVar, const Tensor& input, const Tensor& weight,
                 const Tensor& bias, Tensor& runningMean, Tensor& runningVar,
                 const std::vector<int>& axes, const bool train, const double momentum,
                 const double epsilon) {
  FL_API_ENTRY();
  return detail::batchnorm(saveMean, saveVar, input, weight, bias, runningMean, runningVar, axes,
                           train, momentum, epsilon, nullptr);
}

std::tuple<Tensor, Tensor, Tensor> rnn(const Tensor& input, const Tensor& hiddenState,
                                       const Tensor& cellState, const Tensor& weights,
                                       const int hiddenSize, const int numLayers,
                                       const RnnMode mode, const bool bidirectional,
                                       const float dropout) {
  FL_API_ENTRY();
  return detail::rnn(input, hiddenState, cellState, weights, hiddenSize, numLayers, mode,
                     bidirectional, dropout, nullptr);
}

namespace detail {

Tensor conv2d(const Tensor& input, const Tensor& weights, const Tensor& bias, const int sx,
              const int sy, const int px, const int py, const int dx, const int dy,
              const int groups, std::shared_ptr<AutogradPayload> payload) {
  FL_API_ENTRY();
  return extensionOf(input).conv2d(input, weights, bias, sx, sy, px, py, dx, dy, groups,
                                   std::move(payload));
}

Tensor batchnorm(Tensor& saveMean, Tensor& saveVar, const Tensor& input, const Tensor& weight,
                 const Tensor& bias, Tensor& runningMean, Tensor& runningVar,
                 const std::vector<int>& axes, const bool train, const double momentum,
                 const double epsilon, std::shared_ptr<AutogradPayload> payload) {
  FL_API_ENTRY();
  return extensionOf(input).batchnorm(saveMean, saveVar, input, weight, bias, runningMean,
                                      runningVar, axes, train, momentum, epsilon,
                                      std::move(payload));
}

Tensor pool2d(const Tensor& input, const int wx, const int wy, const int sx, const int sy,
              const int px, const int py, const PoolingMode mode,
              std::shared_ptr<AutogradPayload> payload) {
  FL_API_ENTRY();
  return extensionOf(input).pool2d(input, wx, wy, sx, sy, px, py, mode, std::move(payload));
}

std::tuple<Tensor, Tensor, Tensor> rnn(const Tensor& input, const Tensor& hiddenState,
                                       const Tensor& cellState, const Tensor& weights,
                                       const int hiddenSize, const int numLayers,
                                       const RnnMode mode, const bool bidirectional,
                                       const float dropout,
                                       std::shared_ptr<AutogradPayload> payload) {
  FL_API_ENTRY();
  return extensionOf(input).rnn(input, hiddenState, cellState, weights, hiddenSize, numLayers, mode,
                                bidirectional, dropout, std::move(payload));
}

Tensor conv2dBackwardData(const Tensor& gradOutput, const Tensor& input, const Tensor& weight,
                          const int sx, const int sy, const int px, const int py, const int dx,
                          const int dy, const int groups,
                          std::shared_ptr<DynamicBenchmark> dataGradBenchmark,
                          std::shared_ptr<AutogradPayload> payload) {
  FL_API_ENTRY();
  return extensionOf(gradOutput)
      .conv2dBackwardData(gradOutput, input, weight, sx, sy, px, py, dx, dy, groups,
                          std::move(dataGradBenchmark), std::move(payload));
}

std::pair<Tensor, Tensor> conv2dBackwardFilterBias(
    const Tensor& gradOutput, const Tensor& input, const Tensor& weights, const Tensor& bias,
    const int sx, const int sy, const int px, const int py, const int dx, const int dy,
    const int groups, std::shared_ptr<DynamicBenchmark> filterBench,
    std::shared_ptr<DynamicBenchmark> biasBench, std::shared_ptr<AutogradPayload> payload) {
  FL_API_ENTRY();
  return extensionOf(gradOutput)
      .conv2dBackwardFilterBias(gradOutput, input, weights, bias, sx, sy, px, py, dx, dy, groups,
                                std::move(filterBench), std::move(biasBench), std::move(payload));
}

Tensor pool2dBackward(const Tensor& gradOutput, const Tensor& input, const Tensor& poolOutput,
                      const int wx, const int wy, const int sx, const int sy, const int px,
                      const int py, const PoolingMode mode,
                      std::shared_ptr<AutogradPayload> payload) {
  FL_API_ENTRY();
  return extensionOf(gradOutput)
      .pool2dBackward(gradOutput, input, poolOutput, wx, wy, sx, sy, px, py, mode,
                      std::move(payload));
}

std::tuple<Tensor, Tensor, Tensor> batchnormBackward(const Tensor& gradOutput,
                                                     const Tensor& saveMean, const Tensor& saveVar,
                                                     const Tensor& input, const Tensor& weight,
                                                     const std::vector<int>& axes, const bool train,
                                                     const float epsilon,
                                                     std::shared_ptr<AutogradPayload> payload) {
  FL_API_ENTRY();
  return extensionOf(gradOutput)
      .batchnormBackward(gradOutput, saveMean, saveVar, input, weight, axes, train, epsilon,
                         std::move(payload));
}

std::tuple<Tensor, Tensor, Tensor, Tensor> rnnBackward(
    const Tensor& input, const Tensor& hiddenState, const Tensor& cellState, const Tensor& weights,
    const std::shared_ptr<RNNGradData> gradData, const Tensor& output, const int numLayers,
    const int hiddenSize, const RnnMode mode, const bool bidirectional, const float dropProb,
    std::shared_ptr<AutogradPayload> payload) {
  FL_API_ENTRY();
  return extensionOf(input).rnnBackward(input, hiddenState, cellState, weights, gradData, output,
                                        numLayers, hiddenSize, mode, bidirectional, dropProb,
                                        std::move(payload));
}

}  // namespace detail
}  // namespace fl
