// Statements of random programs that call what networks are made of: sparse matrices, batch norm,
// recurrent networks.
#include <algorithm>
#include <memory>

#include "fl/autograd/tensor/AutogradExtension.h"
#include "fl/autograd/tensor/AutogradOps.h"
#include "tests/fuzz/RandomProgram.h"

namespace fl::testing {

// Where the values are is data; how many there are is structure.
bool RandomProgram::applySparse() {
  const dtype type = any().value.tensor.type();
  const Dim rows = 1 + below(9), columns = 1 + below(9), n = below(20);
  const auto storage = static_cast<StorageType>(1 + below(3));
  const auto places = [&](Dim count, Dim bound) {
    std::vector<int> drawn(static_cast<size_t>(count));
    for (int& place : drawn) {
      place = static_cast<int>(data_() % static_cast<uint64_t>(bound));
    }
    return drawn;
  };
  const auto offsets = [&](Dim lines) {
    std::vector<int> begins = places(lines - 1, n + 1);
    std::sort(begins.begin(), begins.end());
    begins.insert(begins.begin(), 0);
    begins.push_back(static_cast<int>(n));
    return begins;
  };
  input({n}, type);
  const Value values = variables_.back().value;
  const auto row = storage == StorageType::CSR ? offsets(rows) : places(n, rows);
  const auto column = storage == StorageType::CSC ? offsets(columns) : places(n, columns);
  const Tensor matrix(rows, columns, values.tensor, Tensor::fromVector(row),
                      Tensor::fromVector(column), storage);
  const std::string name = "sparse(" + Shape({rows, columns}).toString() + ", " +
                           std::to_string(n) + ", " + std::to_string(static_cast<int>(storage)) +
                           ")";
  if (chance(40)) {
    define(tracker_.sums(transpose(transpose(matrix)), values, static_cast<double>(n)), name);
    return true;
  }
  const bool transposes = chance(40);
  input({transposes ? rows : columns, 1 + below(5)}, type);
  const Value dense = variables_.back().value;
  const Tensor product =
      matmul(matrix, dense.tensor, transposes ? MatrixProperty::Transpose : MatrixProperty::None);
  define(tracker_.products(product, values, dense, static_cast<double>(n)),
         "matmul(" + name + (transposes ? "^T, " : ", ") + variables_.back().name + ")");
  return true;
}

// Its statistics may be near 0, so that nothing can be said of how far results are apart.
bool RandomProgram::applyBatchnorm() {
  const Variable& x = any();
  const Tensor image = x.value.tensor;
  const dtype type = image.type();
  if (tame_ || !isFloating(type) || image.ndim() == 0 || image.isEmpty() ||
      image.elements() > 3000) {
    return false;
  }
  const std::string name = x.name;
  const int axis = below(image.ndim());
  const Dim features = image.dim(axis);
  const dtype kept = type == dtype::f16 || type == dtype::bf16 ? dtype::f32 : type;
  const auto drawn = [&] {
    input({features}, kept);
    return variables_.back().value.tensor;
  };
  const Tensor weight = drawn(), bias = drawn();
  Tensor mean = drawn(), variance = drawn(), saveMean, saveVar;
  const bool train = chance(60);
  const Tensor result =
      batchnorm(saveMean, saveVar, image, weight, bias, mean, variance, {axis}, train, 0.1, 1e-5);
  define({result, false}, "batchnorm(" + name + ", " + std::to_string(axis) + ")");
  define({mean, false}, "its running mean");
  define({variance, false}, "its running variance");
  if (chance(50)) {
    input(image.shape(), type);
    const auto [gradInput, gradWeight, gradBias] =
        detail::batchnormBackward(variables_.back().value.tensor, saveMean, saveVar, image, weight,
                                  {axis}, train, 1e-5F, nullptr);
    for (const Tensor& gradient : {gradInput, gradWeight, gradBias}) {
      define({gradient, false}, "a gradient of the batchnorm");
    }
  }
  return true;
}

bool RandomProgram::applyRnn() {
  const dtype type = any().value.tensor.type();
  if (tame_ || !isFloating(type)) {
    return false;
  }
  const auto mode = static_cast<RnnMode>(below(4));
  const Dim inputs = 1 + below(4), size = 1 + below(4), layers = 1 + below(2);
  const bool bothWays = chance(50);
  const Dim directions = bothWays ? 2 : 1, states = layers * directions;
  const Dim rows = size * (mode == RnnMode::LSTM ? 4 : mode == RnnMode::GRU ? 3 : 1);
  // As rnn() states.
  const Dim weightCount = directions * rows * (inputs + size + 2) +
                          (layers - 1) * directions * rows * (directions * size + size + 2);
  const Dim batch = 1 + below(3), time = 1 + below(4);
  const auto drawn = [&](const Shape& shape) {
    input(shape, type);
    return variables_.back().value.tensor;
  };
  const Tensor sequence = drawn({inputs, batch, time}), weights = drawn({weightCount});
  const Tensor hidden = chance(50) ? drawn({size, batch, states}) : Tensor();
  const int layerCount = static_cast<int>(layers), width = static_cast<int>(size);
  const bool backward = chance(50);
  const auto payload = std::make_shared<detail::AutogradPayload>();
  const auto [output, lastHidden, lastCell] =
      backward ? detail::rnn(sequence, hidden, {}, weights, width, layerCount, mode, bothWays, 0,
                             payload)
               : rnn(sequence, hidden, {}, weights, width, layerCount, mode, bothWays, 0);
  const std::string text = "rnn of mode " + std::to_string(static_cast<int>(mode)) + ", " +
                           std::to_string(layers) + " layers of " + std::to_string(size) +
                           (bothWays ? ", both ways" : "");
  define({output, false}, text);
  define({lastHidden, false}, "its hidden state");
  if (mode == RnnMode::LSTM) {
    define({lastCell, false}, "its cell state");
  }
  if (!backward) return true;
  const auto gradients = std::make_shared<detail::RNNGradData>();
  gradients->dy = drawn(output.shape());
  const auto [gradInput, gradHidden, gradCell, gradWeights] =
      detail::rnnBackward(sequence, hidden, Tensor(), weights, gradients, output, layerCount, width,
                          mode, bothWays, 0, payload);
  define({gradInput, false}, "the gradient of the rnn's input");
  define({gradWeights, false}, "the gradient of its weights");
  if (!hidden.isEmpty()) define({gradHidden, false}, "the gradient of its state");
  return true;
}

}  // namespace fl::testing
