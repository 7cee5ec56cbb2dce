// Every module and loss of fl/nn, in all its options, at ordinary, odd and broadcast shapes.
#include "tests/nn/ModuleGradients.h"

#include "fl/nn/nn.h"

namespace fl::test {
namespace {

using Cases = std::vector<GradientCase>;
using Axes = std::vector<int>;

Tensor integers(const Shape& shape, std::vector<int> values) {
  return Tensor::fromVector(shape, std::move(values));
}

Cases activations() {
  const std::vector<Shape> shapes = {{5, 4}, {}, {7}, {2, 1, 3}, {2, 3, 1, 2}};
  const auto wide = each(shapes, -3, 3);
  const std::vector<Shape> planes = {{4, 2}, {2, 4, 1}, {6, 2, 1, 3}};
  return {{FL_MODULE(Sigmoid), wide},
          {FL_MODULE(Log), each(shapes, 0.2, 3)},
          {FL_MODULE(Tanh), wide},
          {FL_MODULE(HardTanh), wide},
          {FL_MODULE(ReLU), wide},
          {FL_MODULE(ReLU6), each(shapes, -3, 9)},
          {FL_MODULE(LeakyReLU), wide},
          {FL_MODULE(LeakyReLU, 0.3), wide},
          {FL_MODULE(PReLU), each({{5, 4}, {1, 1}, {2, 1, 3}}, -3, 3)},
          {FL_MODULE(PReLU, 5, 0.5), each({{5, 4}, {5}, {5, 1, 2}}, -3, 3)},
          {FL_MODULE(ELU), wide},
          {FL_MODULE(ELU, 0.7), wide},
          {FL_MODULE(ThresholdReLU), wide},
          {FL_MODULE(ThresholdReLU, 0.5), wide},
          {FL_MODULE(GatedLinearUnit), each(planes)},
          {FL_MODULE(GatedLinearUnit, 1), each({{3, 4}, {1, 2, 3}})},
          {FL_MODULE(LogSoftmax), each({{5}, {1, 3}, {4, 3, 2}})},
          {FL_MODULE(LogSoftmax, 1), each(planes)},
          {FL_MODULE(Softmax), each({{5}, {1, 3}, {4, 3, 2}})},
          {FL_MODULE(Softmax, 2), each({{2, 4, 3}, {2, 1, 1, 3}})},
          {FL_MODULE(Swish), wide},
          {FL_MODULE(Swish, 1.5), wide},
          {FL_MODULE(GELU), wide}};
}

Cases shapes() {
  const std::pair none(0, 0), before(2, 0), both(1, 3);
  return {
      {FL_MODULE(Identity), each({{5, 4}, {}})},
      {FL_MODULE(
           Transform, [](const Variable& x) { return x * x; }, "square"),
       each({{5, 4}})},
      {FL_MODULE(Dropout, 0.4), each({{5, 4}, {3, 1, 2}}), true},
      {FL_MODULE(Dropout), each({{5, 4}}), true},
      {FL_MODULE(PrecisionCast, dtype::f64), {{randomTensor({3}), randomTensor({2, 2})}}},
      {FL_MODULE(View, Shape({-1, 4})), each({{2, 3, 4}, {8}})},
      {FL_MODULE(View, Shape({0, 6})), each({{2, 3, 2}})},
      {FL_MODULE(Reorder, Shape({2, 0, 1})), each({{2, 3, 4}, {1, 3, 1}})},
      {FL_MODULE(Padding, both, 0.5), each({{3}, {2, 3}})},
      {FL_MODULE(Padding, both, before, 0.5), each({{4, 3, 2}})},
      {FL_MODULE(Padding, none, before, both, -1), each({{1, 3, 2}})},
      {FL_MODULE(Padding, before, none, none, both, 0), each({{2, 1, 3, 1}})},
      {FL_MODULE(Embedding, 3, 5), {{integers({2, 3}, {0, 4, 4, 1, 0, 4})}, {integers({}, {2})}}},
      {FL_MODULE(Normalize, Axes{1}), each({{3, 5}, {2, 3, 1, 2}})},
      {FL_MODULE(Normalize, Axes{0, 2}, 3, 1e-12, 2), each({{3, 2, 2}}, 0.2, 1)},
      {FL_MODULE(Normalize, Axes{0}, 1, 100), each({{3, 2}}, 0.2, 1)}};
}

Cases convolutions() {
  const auto same = PaddingMode::SAME;
  return {{FL_MODULE(Conv2D, 2, 3, 3, 2), each({{4, 3, 2, 2}, {3, 2, 2, 1}})},
          {FL_MODULE(Conv2D, 4, 2, 3, 2, 2, 1, 2, 1, 1, 2, true, 2), each({{5, 4, 4, 2}})},
          {FL_MODULE(Conv2D, 2, 3, 5, 3, 1, 1, same, same, 1, 1, false), each({{4, 3, 2, 1}})},
          {FL_MODULE(Conv2D, 3, 3, 2, 2, 2, 3, same, 1, 2, 1, true, 3), each({{5, 4, 3, 2}})},
          {FL_MODULE(Conv2D, 3, 2, 1, 1), each({{2, 3, 3, 2}, {1, 1, 3, 1}})},
          {FL_MODULE(Conv1D, 4, 2, 3, 2, 2, 2, true, 2), each({{7, 4, 2}})},
          {FL_MODULE(Conv1D, 2, 3, 3, 1, same, 1, false), each({{5, 2, 2}, {1, 2, 1}})},
          {FL_MODULE(ConvTranspose2D, 4, 2, 3, 2, 2, 3, 0, 1, 2, 1, true, 2, 1, 2),
           each({{3, 2, 4, 2}})},
          {FL_MODULE(ConvTranspose2D, 2, 3, 2, 3, 1, 1, 0, 0, 1, 1, false),
           each({{3, 2, 2, 1}, {1, 1, 2, 2}})},
          {FL_MODULE(ConvTranspose2D, 2, 2, 3, 3, 2, 1, 1, 1, 1, 2), each({{3, 3, 2, 2}})}};
}

Cases pools() {
  const auto same = PaddingMode::SAME;
  const auto including = PoolingMode::AVG_INCLUDE_PADDING;
  const auto excluding = PoolingMode::AVG_EXCLUDE_PADDING;
  const std::vector<Shape> images = {{6, 5, 2, 2}, {3, 4, 1, 1}};
  return {{FL_MODULE(Pool2D, 2, 2), each(images)},
          {FL_MODULE(Pool2D, 3, 2, 2, 1, 1, 1), each(images)},
          {FL_MODULE(Pool2D, 3, 3, 2, 2, same, same), each(images)},
          {FL_MODULE(Pool2D, 3, 3, 2, 2, 1, 1, including), each(images)},
          {FL_MODULE(Pool2D, 3, 2, 1, 2, same, 0, including), each(images)},
          {FL_MODULE(Pool2D, 3, 3, 2, 2, 1, 1, excluding), each(images)},
          {FL_MODULE(Pool2D, 2, 3, 2, 1, 0, same, excluding), each(images)}};
}

Sequential smallModel() {
  Sequential model;
  model.add(Linear(4, 3));
  model.add(BatchNorm(0, 3));
  model.add(Tanh());
  model.add(Linear(3, 2));
  return model;
}

Cases layers() {
  const std::vector<Shape> shapes = {{4, 3}, {4}, {4, 1, 2, 2}};
  return {
      {FL_MODULE(Linear, 4, 5), each(shapes)},
      {FL_MODULE(Linear, 4, 5, false), each(shapes)},
      {FL_MODULE(Linear, 1, 1), each({{1}, {1, 3}})},
      {FL_MODULE(WeightNorm, Linear(4, 5), 0), each(shapes), true},
      {FL_MODULE(WeightNorm, Linear(4, 5, false), 1), each(shapes)},
      {FL_MODULE(WeightNorm, Conv2D(2, 3, 2, 3), 3), each({{3, 4, 2, 2}}), true},
      {FL_MODULE(WeightNorm, Conv2D(2, 3, 2, 2, 1, 1, 0, 0, 1, 1, false), 0), each({{3, 3, 2, 1}})},
      {FL_MODULE(Sequential, smallModel()), each({{4, 3}}), true}};
}

Cases normalizations() {
  const Axes planes = {0, 1}, ends = {0, 2};
  return {{FL_MODULE(BatchNorm, 2, 3), each({{3, 2, 3, 2}, {2, 3, 3}}), true},
          {FL_MODULE(BatchNorm, Axes{0, 1}, 6, 0.3), each({{3, 2, 4}}), true},
          {FL_MODULE(BatchNorm, 0, 3, -1, 1e-2), each({{3, 5}}), true},
          {FL_MODULE(BatchNorm, 0, 3, 0.1, 1e-5, false), each({{3, 5}, {3, 1, 4}}), true},
          {FL_MODULE(BatchNorm, 1, 3, 0.1, 1e-5, true, false), each({{2, 3, 4}}), true},
          {FL_MODULE(LayerNorm, 0, 1e-5, true, 6), each({{6, 3}, {6}, {6, 1, 2}})},
          {FL_MODULE(LayerNorm, Axes{0, 1}, 1e-2, true, 6), each({{3, 2, 2, 2}})},
          {FL_MODULE(LayerNorm, Axes{0, 2}), each({{3, 2, 4}, {3, 2, 2, 2}})},
          {FL_MODULE(LayerNorm, Axes{0, 2}, 1e-5, true, 6), each({{3, 2, 2, 3}})},
          {FL_MODULE(LayerNorm, 1, 1e-5, false), each({{3, 4, 2}, {1, 5}})},
          {FL_MODULE(LayerNorm, Axes{0, 1, 2}), each({{2, 3, 1, 2}})},
          {FL_MODULE(GroupNorm, 3, 6), each({{2, 1, 6, 2}, {3, 6, 2}})},
          {FL_MODULE(GroupNorm, 2, 6, 1e-2, false), each({{6, 3}})},
          {FL_MODULE(GroupNorm, 1, 3), each({{2, 3, 1}})},
          {FL_MODULE(RMSNorm, 4), each({{4, 3}, {4}, {4, 1, 2, 2}})},
          {FL_MODULE(RMSNorm, 4, 1e-2, false), each({{4, 3}})}};
}

Cases recurrent() {
  // With none, or up to `states` states (hidden, batch, layers * directions).
  const auto runs = [](Dim hidden, Dim layers, int states) {
    std::vector<Inputs> all;
    for (int count = 0; count <= states; ++count) {
      all.push_back({randomTensor({2, 2, 3})});
      for (int i = 0; i < count; ++i) {
        all.back().push_back(randomTensor({hidden, 2, layers}));
      }
    }
    return all;
  };
  return {{FL_MODULE(RNN, 2, 2, 1, RnnMode::RELU), runs(2, 1, 1)},
          {FL_MODULE(RNN, 2, 1, 2, RnnMode::RELU, true), runs(1, 4, 0)},
          {FL_MODULE(RNN, 2, 1, 2, RnnMode::TANH, true), runs(1, 4, 1)},
          {FL_MODULE(RNN, 2, 2, 1, RnnMode::LSTM), runs(2, 1, 0)},
          {FL_MODULE(RNN, 2, 1, 2, RnnMode::LSTM), runs(1, 2, 2)},
          {FL_MODULE(RNN, 2, 1, 2, RnnMode::LSTM, false, 0.3f), runs(1, 2, 0), true},
          {FL_MODULE(RNN, 2, 1, 2, RnnMode::GRU, true), runs(1, 4, 0)},
          {FL_MODULE(RNN, 2, 1, 1, RnnMode::GRU), runs(1, 1, 1)}};
}

Cases attention() {
  const Tensor query = randomTensor({4, 3, 2}), key = randomTensor({4, 2, 2}),
               value = randomTensor({4, 2, 2}), mask = randomTensor({3, 2});
  return {{FL_MODULE(MultiheadAttention, 4, 2),
           {{query}, {query, key, value}, {query, key, value, mask}}},
          {FL_MODULE(MultiheadAttention, 3, 1, 0.0, false), each({{3, 1, 1}, {3, 2, 2}})},
          {FL_MODULE(MultiheadAttention, 4, 4, 0.3), {{query, key, value, mask}}, true}};
}

Cases losses() {
  const auto pairs = [](double low, double high) {
    std::vector<Inputs> runs;
    for (const Shape& shape : {Shape({4, 3}), Shape(), Shape({2, 1, 2})}) {
      runs.push_back({randomTensor(shape, low, high), randomTensor(shape, low, high)});
    }
    return runs;
  };
  const Tensor targets = integers({3, 2}, {4, 0, 2, 2, 1, 2});
  const std::vector<Inputs> classes = {{randomTensor({5, 3, 2}), targets},
                                       {randomTensor({5}), integers({}, {3})}};
  const std::vector<Inputs> samples = {{randomTensor({4, 3, 2}), targets}};
  const auto softMax = [](ReduceMode mode, int ignored) {
    return std::make_shared<AdaptiveSoftMaxLoss>(
        std::make_shared<AdaptiveSoftMax>(4, std::vector<int>{2, 4, 6}, 2), mode, ignored);
  };
  Cases cases = {{FL_MODULE(MeanSquaredError), pairs(-1, 1)},
                 {FL_MODULE(MeanAbsoluteError), pairs(-1, 1)},
                 {FL_MODULE(BinaryCrossEntropy), pairs(0.1, 0.9)},
                 {FL_MODULE(AdaptiveSoftMax, 4, std::vector<int>{2, 4, 6}, 2), each({{4, 3, 2}})},
                 {FL_MODULE(AdaptiveSoftMax, 4, std::vector<int>{3}), each({{4}, {4, 1, 2}})}};
  for (const ReduceMode mode : {ReduceMode::NONE, ReduceMode::MEAN, ReduceMode::SUM}) {
    for (const int ignored : {-1, 2}) {
      cases.push_back({"CategoricalCrossEntropy",
                       [=] { return std::make_shared<CategoricalCrossEntropy>(mode, ignored); },
                       classes});
      cases.push_back({"AdaptiveSoftMaxLoss", [=] { return softMax(mode, ignored); }, samples});
    }
  }
  return cases;
}

TEST_P(ModuleGradients, InAllOptions) {
  for (const GradientCase& c : GetParam()()) {
    expectGradients(c);
  }
}

constexpr Part kParts[] = {activations,    shapes,    convolutions, pools, layers,
                           normalizations, recurrent, attention,    losses};
INSTANTIATE_TEST_SUITE_P(Parts, ModuleGradients, ::testing::ValuesIn(kParts));

TEST(AllModules, HaveACase) { EXPECT_EQ(modulesIn(kParts), modulesOf("fl/nn")); }

TEST(BinaryCrossEntropyLoss, Weighted) {
  const Shape shape({3, 2});
  expectGradients(
      [](const std::vector<Variable>& v) { return BinaryCrossEntropy().forward(v[0], v[1], v[2]); },
      {randomTensor(shape, 0.1, 0.9), randomTensor(shape, 0.1, 0.9), randomTensor(shape)});
}

}  // namespace
}  // namespace fl::test
