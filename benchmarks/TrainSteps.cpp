#include "benchmarks/TrainSteps.h"

#include <cmath>
#include <memory>
#include <numbers>
#include <string>
#include <utility>

#include "apps/mnist/Mnist.h"
#include "fl/contrib/contrib.h"
#include "fl/fl.h"

namespace fl::bench {
namespace {

constexpr double kLearningRate = 1e-3;

// A tensor of its own with the elements of `view`, so that no step computes them again.
template <typename T>
Tensor computed(const Tensor& view) {
  return Tensor::fromVector(view.shape(), view.toHostVector<T>());
}

Tensor numbers(const Shape& shape) { return computed<float>(rand(shape) - 0.5); }

Tensor labels(const Shape& shape, int classes) {
  return computed<int>((rand(shape) * (classes - 0.01)).astype(dtype::s32));
}

class Trainer {
 public:
  // The model's outputs are log-probabilities.
  Trainer(Stepping stepping, Sequential model, Tensor x, Tensor y)
      : model_(std::move(model)),
        optimizer_(model_.params(), kLearningRate),
        x_(std::move(x)),
        y_(std::move(y)) {
    step_ = [this] { return losses(); };
    if (stepping == Stepping::Compiled) step_ = fl::compile(step_);
  }

  void step() {
    loss_ = Tensor(step_()).scalar<float>();
    sync();
  }

 private:
  Tensor losses() {
    Variable loss = categoricalCrossEntropy(model_(noGrad(x_)), noGrad(y_));
    loss.backward();
    optimizer_.step();
    optimizer_.zeroGrad();
    return loss.tensor();
  }

  std::function<Tensor()> step_;
  Sequential model_;
  AdamOptimizer optimizer_;
  Tensor x_, y_;
  float loss_ = 0;
};

std::string named(Stepping stepping, const std::string& name) {
  return (stepping == Stepping::Compiled ? "compiled " : "") + name;
}

template <class... Arguments>
std::function<void()> training(Arguments&&... arguments) {
  const auto trainer = std::make_shared<Trainer>(std::forward<Arguments>(arguments)...);
  return [trainer] { trainer->step(); };
}

Sequential logProbabilities(Sequential model) {
  model.add(LogSoftmax());
  return model;
}

// ---- the residual networks ----

Conv2D convolution(int from, int to, int size, int stride) {
  const int pad = size / 2;
  return Conv2D(from, to, size, size, stride, stride, pad, pad, 1, 1, /*bias=*/false);
}

struct ConvolutionShape {
  int to, size, stride;
};

// Convolutions with norms and ReLUs, the last of which takes the shortcut, too.
Residual residualBlock(int from, const std::vector<ConvolutionShape>& shapes, int stride) {
  constexpr int kChannelAxis = 2;
  Residual block;
  int channels = from;
  for (const ConvolutionShape& shape : shapes) {
    block.add(convolution(channels, shape.to, shape.size, shape.stride));
    block.add(BatchNorm(kChannelAxis, shape.to));
    block.add(ReLU());
    channels = shape.to;
  }
  const int last = 3 * static_cast<int>(shapes.size());
  if (from == channels && stride == 1) {
    block.addShortcut(0, last);
  } else {
    Sequential shortcut;
    shortcut.add(convolution(from, channels, 1, stride));
    shortcut.add(BatchNorm(kChannelAxis, channels));
    block.addShortcut(0, last, shortcut);
  }
  return block;
}

Residual basicBlock(int from, int to, int stride) {
  return residualBlock(from, {{to, 3, stride}, {to, 3, 1}}, stride);
}

Residual bottleneck(int from, int width, int stride) {
  return residualBlock(from, {{width, 1, 1}, {width, 3, stride}, {4 * width, 1, 1}}, stride);
}

Sequential residualNetwork() {
  Sequential model;
  model.add(convolution(3, 32, 3, 1));
  int from = 32;
  for (const int to : {32, 64, 128}) {
    model.add(basicBlock(from, to, from == to ? 1 : 2));
    model.add(basicBlock(to, to, 1));
    from = to;
  }
  model.add(Pool2D(8, 8, 8, 8, 0, 0, PoolingMode::AVG_INCLUDE_PADDING));
  model.add(View({from, -1}));
  model.add(Linear(from, 10));
  return logProbabilities(std::move(model));
}

Sequential deepResidualNetwork(int image, int channels) {
  constexpr int kChannelAxis = 2;
  Sequential model;
  model.add(convolution(3, channels, 7, 2));
  model.add(BatchNorm(kChannelAxis, channels));
  model.add(ReLU());
  model.add(Pool2D(3, 3, 2, 2, 1, 1));
  int from = channels, width = channels;
  for (const int blocks : {3, 4, 6, 3}) {
    for (int i = 0; i < blocks; ++i) {
      model.add(bottleneck(from, width, i == 0 && width > channels ? 2 : 1));
      from = 4 * width;
    }
    width *= 2;
  }
  const int last = image / 32;
  model.add(Pool2D(last, last, last, last, 0, 0, PoolingMode::AVG_INCLUDE_PADDING));
  model.add(View({from, -1}));
  model.add(Linear(from, 1000));
  return logProbabilities(std::move(model));
}

// ---- the transformer ----

constexpr int kHeads = 4, kVocabulary = 1000;

// GELU by the error function, as a program has it that writes functions in operators.
Variable geluInOperators(const Variable& x) { return x * (1 + erf(x * std::sqrt(0.5))) * 0.5; }

Sequential transformer(int layers, int width) {
  Sequential model;
  model.add(Embedding(width, kVocabulary));
  for (int layer = 0; layer < layers; ++layer) {
    Residual attention;
    attention.add(LayerNorm(0, 1e-5, true, width));
    attention.add(MultiheadAttention(width, kHeads));
    attention.addShortcut(0, 3);
    model.add(std::move(attention));
    Residual feedForward;
    feedForward.add(LayerNorm(0, 1e-5, true, width));
    feedForward.add(Linear(width, 4 * width));
    feedForward.add(Transform(geluInOperators, "GELU"));
    feedForward.add(Linear(4 * width, width));
    feedForward.addShortcut(0, 5);
    model.add(std::move(feedForward));
  }
  model.add(LayerNorm(0, 1e-5, true, width));
  model.add(Linear(width, kVocabulary));
  return logProbabilities(std::move(model));
}

}  // namespace

Workload perceptronStep(int batch, Stepping stepping) {
  return {.name = named(stepping, "MLP 784-512-512-10, batch " + std::to_string(batch)),
          .make =
              [=] {
                Sequential model;
                model.add(Linear(784, 512));
                model.add(ReLU());
                model.add(Linear(512, 512));
                model.add(ReLU());
                model.add(Linear(512, 10));
                return training(stepping, logProbabilities(std::move(model)), numbers({784, batch}),
                                labels({batch}, 10));
              },
          .hasFloor = true};
}

Workload mnistStep(Stepping stepping) {
  return {.name = named(stepping, "MNIST CNN 28x28, batch 64"),
          .make =
              [=] {
                return training(stepping, app::makeModel(28, 28), numbers({28, 28, 64}),
                                labels({64}, 10));
              },
          .hasFloor = true};
}

Workload digitsStep() {
  return {.name = "MNIST CNN, digits 8x8, batch 32",
          .make =
              [] {
                const auto [x, y] = app::loadDataset(app::digitsDirectory());
                const range batch(0, 32);
                return training(Stepping::Recorded, app::makeModel(8, 8),
                                computed<float>(x(span, span, batch)), computed<int>(y(batch)));
              },
          .hasFloor = true};
}

Workload residualStep(Stepping stepping) {
  return {.name = named(stepping, "residual CNN 32-64-128, 3x32x32, batch 32"),
          .make =
              [=] {
                return training(stepping, residualNetwork(), numbers({32, 32, 3, 32}),
                                labels({32}, 10));
              },
          .hasFloor = true};
}

Workload deepResidualStep(int image, int channels, Stepping stepping) {
  const std::string size = std::to_string(image);
  const std::string suffix = channels == 64 ? "" : ", " + std::to_string(channels) + " channels";
  const std::string name = "ResNet-50, 3x" + size + "x" + size + ", batch 4" + suffix;
  return {.name = named(stepping, name), .make = [=] {
            return training(stepping, deepResidualNetwork(image, channels),
                            numbers({image, image, 3, 4}), labels({4}, 1000));
          }};
}

Workload transformerStep(int layers, int width, int length, Stepping stepping) {
  const std::string name = "transformer " + std::to_string(layers) + " layers, width " +
                           std::to_string(width) + ", 8 x " + std::to_string(length);
  return {.name = named(stepping, name),
          .make =
              [=] {
                const Tensor tokens = labels({length, 8}, kVocabulary);
                return training(stepping, transformer(layers, width), tokens,
                                computed<int>(roll(tokens, -1, 0)));
              },
          .hasFloor = true};
}

void trainBatches(std::span<const int> batches) {
  for (const int batch : batches) {
    const auto step = perceptronStep(batch).make();
    for (int i = 0; i < 3; ++i) step();
  }
}

}  // namespace fl::bench
