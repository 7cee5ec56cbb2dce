// Neural-network operators on plain tensors, with Flashlight's names and signatures; those of
// detail:: also go backward, and keep what they need for that in a payload. Each goes to the
// AutogradExtension of its input's backend (AutogradExtension.h); fl/autograd/Functions.h makes
// differentiable functions of them.
// Layouts: images (W,H,C,N), filters (KW,KH,C/groups,O), bias (1,1,O,1), sequences
// (features, batch, time). Float types. Errors are thrown at the call (std::invalid_argument).
#pragma once

#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "fl/tensor/Defines.h"
#include "fl/tensor/TensorBase.h"

namespace fl {

class DynamicBenchmark;

namespace detail {
struct AutogradPayload;

// state = value, of the same shape, in place: where memory is too short to compute the value, the
// state is what it was (docs/memory.md).
inline void setState(Tensor& state, const Tensor& value) { std::move(state) = value; }
}  // namespace detail

// Cross-correlation; out = 1 + (in + 2 pad - ((kernel - 1) dilation + 1)) / stride. The bias may be
// empty.
Tensor conv2d(const Tensor& input, const Tensor& weights, const int sx = 1, const int sy = 1,
              const int px = 0, const int py = 0, const int dx = 1, const int dy = 1,
              const int groups = 1);
Tensor conv2d(const Tensor& input, const Tensor& weights, const Tensor& bias, const int sx = 1,
              const int sy = 1, const int px = 0, const int py = 0, const int dx = 1,
              const int dy = 1, const int groups = 1);

// out = 1 + (in + 2 pad - window) / stride; padding is -inf for MAX.
Tensor pool2d(const Tensor& input, const int wx, const int wy, const int sx = 1, const int sy = 1,
              const int px = 0, const int py = 0, const PoolingMode mode = PoolingMode::MAX);

// (input - mean) / sqrt(variance + epsilon) * weight + bias, one mean, variance, weight and bias
// for each index along `axes`: the axes that are kept, not those that are averaged over. They must
// be neighbours. Weight, bias and the running statistics have as many elements, or are empty (1, 0,
// not kept), and the input's dtype, or f32 for 16-bit floats; the result has the input's.
//
// Training takes mean and variance (divided by the count N) of the input, and updates the running
// statistics r to (1 - momentum) r + momentum b, where b is the mean, or the variance divided by
// N - 1. Otherwise the running statistics are taken and stay; then they must not be empty.
// saveMean and saveVar receive the mean and 1 / sqrt(variance + epsilon) that were taken.
// Ioffe and Szegedy, Batch Normalization, arXiv 1502.03167. Cost: three reads of the input.
Tensor batchnorm(const Tensor& input, const Tensor& weight, const Tensor& bias, Tensor& runningMean,
                 Tensor& runningVar, const std::vector<int>& axes, const bool train,
                 const double momentum, const double epsilon);
Tensor batchnorm(Tensor& saveMean, Tensor& saveVar, const Tensor& input, const Tensor& weight,
                 const Tensor& bias, Tensor& runningMean, Tensor& runningVar,
                 const std::vector<int>& axes, const bool train, const double momentum,
                 const double epsilon);

// A recurrent network of numLayers layers over a sequence. With H = hiddenSize and D = 2 directions
// if bidirectional, else 1:
//   input        (inSize, batch, time); missing dimensions are 1
//   hiddenState  (H, batch, numLayers * D), before the first step; empty for zeros
//   cellState    the same for LSTM; empty for zeros, and for all other modes
//   weights      all of them, in any shape, packed as cuDNN packs them (see below)
//   results      output (H * D, batch, time); hidden and, for LSTM, cell state after the last step,
//                shaped as above (the cell state is empty for all other modes)
// All have one dtype. State (and so cuDNN's "pseudo layer") l * D + d is layer l's direction d; a
// layer's input is the output of the one below, its directions one after the other in the first
// dimension. Before every layer but the first, elements are dropped with probability `dropout` and
// the others scaled by 1 / (1 - dropout), at training and at evaluation alike.
//
// The cells, where a = W x + bW and q = R h + bR have H rows for each of G gates, in this order:
//   RELU, TANH (G = 1)  h' = f(a + q)
//   LSTM (G = 4)        i, f, o = sigmoid(a + q), g = tanh(a + q), gates i f g o;
//                       c' = f c + i g, h' = o tanh(c')
//   GRU (G = 3)         r, z = sigmoid(a + q), n = tanh(a + r q), gates r z n;
//                       h' = (1 - z) n + z h
// Packing: for each pseudo layer W, gate by gate, each gate's rows one after the other (so that
// W^T is a (K, G H) tensor, K the size of the layer's input), then R^T (H, G H); after those of all
// pseudo layers, for each again bW and bR (G H each). These are
//   D G H (inSize + H + 2) + (numLayers - 1) D G H (D H + H + 2)   elements.
//
// Cost: a product for all steps' W x of a layer and direction, and for each step a product with R
// and one elementwise kernel.
std::tuple<Tensor, Tensor, Tensor> rnn(const Tensor& input, const Tensor& hiddenState,
                                       const Tensor& cellState, const Tensor& weights,
                                       const int hiddenSize, const int numLayers,
                                       const RnnMode mode, const bool bidirectional,
                                       const float dropout);

namespace detail {

// With a payload they keep in it what their backward function needs, which must be given the same
// one; without (nullptr) nothing is kept.
Tensor conv2d(const Tensor& input, const Tensor& weights, const Tensor& bias, const int sx,
              const int sy, const int px, const int py, const int dx, const int dy,
              const int groups, std::shared_ptr<detail::AutogradPayload> payload);
Tensor batchnorm(Tensor& saveMean, Tensor& saveVar, const Tensor& input, const Tensor& weight,
                 const Tensor& bias, Tensor& runningMean, Tensor& runningVar,
                 const std::vector<int>& axes, const bool train, const double momentum,
                 const double epsilon, std::shared_ptr<detail::AutogradPayload> payload);
Tensor pool2d(const Tensor& input, const int wx, const int wy, const int sx, const int sy,
              const int px, const int py, const PoolingMode mode,
              std::shared_ptr<detail::AutogradPayload> payload);
std::tuple<Tensor, Tensor, Tensor> rnn(const Tensor& input, const Tensor& hiddenState,
                                       const Tensor& cellState, const Tensor& weights,
                                       const int hiddenSize, const int numLayers,
                                       const RnnMode mode, const bool bidirectional,
                                       const float dropout,
                                       std::shared_ptr<detail::AutogradPayload> payload);

// The gradient of the input; of `input` itself only shape and dtype are used.
Tensor conv2dBackwardData(const Tensor& gradOutput, const Tensor& input, const Tensor& weight,
                          const int sx, const int sy, const int px, const int py, const int dx,
                          const int dy, const int groups,
                          std::shared_ptr<DynamicBenchmark> dataGradBenchmark,
                          std::shared_ptr<detail::AutogradPayload> payload);
// The gradients of the weights and of the bias, empty if the bias is.
std::pair<Tensor, Tensor> conv2dBackwardFilterBias(
    const Tensor& gradOutput, const Tensor& input, const Tensor& weights, const Tensor& bias,
    const int sx, const int sy, const int px, const int py, const int dx, const int dy,
    const int groups, std::shared_ptr<DynamicBenchmark> filterBench,
    std::shared_ptr<DynamicBenchmark> biasBench, std::shared_ptr<detail::AutogradPayload> payload);
// poolOutput, the result of pool2d, may be empty.
Tensor pool2dBackward(const Tensor& gradOutput, const Tensor& input, const Tensor& poolOutput,
                      const int wx, const int wy, const int sx, const int sy, const int px,
                      const int py, const PoolingMode mode,
                      std::shared_ptr<detail::AutogradPayload> payload);
// The gradients of input, weight and bias, the last two of as many elements as there are features,
// in one dimension. saveMean and saveVar are batchnorm's; without `train` they count as constants.
std::tuple<Tensor, Tensor, Tensor> batchnormBackward(
    const Tensor& gradOutput, const Tensor& saveMean, const Tensor& saveVar, const Tensor& input,
    const Tensor& weight, const std::vector<int>& axes, const bool train, const float epsilon,
    std::shared_ptr<detail::AutogradPayload> payload);

// The gradients of rnn's three results; an empty one counts as zeros.
struct RNNGradData {
  fl::Tensor dy;
  fl::Tensor dhy;
  fl::Tensor dcy;
};
// The gradients of input, hidden state, cell state and weights, in their shapes. The payload must
// be one that rnn() was given with the same arguments.
std::tuple<Tensor, Tensor, Tensor, Tensor> rnnBackward(
    const Tensor& input, const Tensor& hiddenState, const Tensor& cellState, const Tensor& weights,
    const std::shared_ptr<detail::RNNGradData> gradData, const Tensor& output, const int numLayers,
    const int hiddenSize, const RnnMode mode, const bool bidirectional, const float dropProb,
    std::shared_ptr<detail::AutogradPayload> payload);

}  // namespace detail
}  // namespace fl
