// The operators of AutogradOps.h as an extension of backends (fl/tensor/TensorExtension.h): derive
// from AutogradExtension and register it to run some of them another way. Shapes, dtypes and errors
// are those that AutogradOps.h states; ComposedAutogradExtension.h is the implementation for all
// backends of ours.
#pragma once

#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "fl/autograd/tensor/AutogradOps.h"
#include "fl/tensor/Defines.h"
#include "fl/tensor/TensorBase.h"
#include "fl/tensor/TensorExtension.h"

namespace fl {
namespace detail {

// What a forward function keeps for its backward function; each implementation derives its own.
struct AutogradPayloadData {
  virtual ~AutogradPayloadData() = default;
};

struct AutogradPayload {
  std::shared_ptr<detail::AutogradPayloadData> data;
};

}  // namespace detail

class AutogradExtension : public TensorExtension<AutogradExtension> {
 public:
  static constexpr TensorExtensionType extensionType = TensorExtensionType::Autograd;

  // What chooses among several algorithms by measuring them; null if there is no choice.
  virtual std::shared_ptr<fl::DynamicBenchmark> createBenchmarkOptions() { return nullptr; }

  virtual Tensor conv2d(const Tensor& input, const Tensor& weights, const Tensor& bias,
                        const int sx, const int sy, const int px, const int py, const int dx,
                        const int dy, const int groups,
                        std::shared_ptr<detail::AutogradPayload> payload) = 0;
  virtual Tensor pool2d(const Tensor& input, const int wx, const int wy, const int sx, const int sy,
                        const int px, const int py, const PoolingMode mode,
                        std::shared_ptr<detail::AutogradPayload> payload) = 0;
  virtual Tensor batchnorm(Tensor& saveMean, Tensor& saveVar, const Tensor& input,
                           const Tensor& weight, const Tensor& bias, Tensor& runningMean,
                           Tensor& runningVar, const std::vector<int>& axes, const bool train,
                           const double momentum, const double epsilon,
                           std::shared_ptr<detail::AutogradPayload> payload) = 0;
  virtual std::tuple<Tensor, Tensor, Tensor> rnn(
      const Tensor& input, const Tensor& hiddenState, const Tensor& cellState,
      const Tensor& weights, const int hiddenSize, const int numLayers, const RnnMode mode,
      const bool bidirectional, const float dropout,
      std::shared_ptr<detail::AutogradPayload> payload) = 0;

  virtual Tensor conv2dBackwardData(const Tensor& gradOutput, const Tensor& input,
                                    const Tensor& weight, const int sx, const int sy, const int px,
                                    const int py, const int dx, const int dy, const int groups,
                                    std::shared_ptr<DynamicBenchmark> dataGradBenchmark,
                                    std::shared_ptr<detail::AutogradPayload> payload) = 0;
  virtual std::pair<Tensor, Tensor> conv2dBackwardFilterBias(
      const Tensor& gradOutput, const Tensor& input, const Tensor& weights, const Tensor& bias,
      const int sx, const int sy, const int px, const int py, const int dx, const int dy,
      const int groups, std::shared_ptr<DynamicBenchmark> filterBench,
      std::shared_ptr<DynamicBenchmark> biasBench,
      std::shared_ptr<detail::AutogradPayload> autogradPayload) = 0;
  virtual Tensor pool2dBackward(const Tensor& gradOutput, const Tensor& input,
                                const Tensor& poolOutput, const int wx, const int wy, const int sx,
                                const int sy, const int px, const int py, const PoolingMode mode,
                                std::shared_ptr<detail::AutogradPayload> payload) = 0;
  virtual std::tuple<Tensor, Tensor, Tensor> batchnormBackward(
      const Tensor& gradOutput, const Tensor& saveMean, const Tensor& saveVar, const Tensor& input,
      const Tensor& weight, const std::vector<int>& axes, const bool train, const float epsilon,
      std::shared_ptr<detail::AutogradPayload> payload) = 0;
  virtual std::tuple<Tensor, Tensor, Tensor, Tensor> rnnBackward(
      const Tensor& input, const Tensor& hiddenState, const Tensor& cellState,
      const Tensor& weights, const std::shared_ptr<detail::RNNGradData> gradData,
      const Tensor& output, const int numLayers, const int hiddenSize, const RnnMode mode,
      const bool bidirectional, const float dropProb,
      std::shared_ptr<detail::AutogradPayload> payload) = 0;
};

}  // namespace fl
