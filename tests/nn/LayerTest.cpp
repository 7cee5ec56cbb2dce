// What single layers do beyond the answers of tests/reference/modules.npz: how they begin, their
// state, their errors.
#include <cmath>
#include <functional>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "fl/autograd/Functions.h"
#include "fl/autograd/Utils.h"
#include "fl/nn/nn.h"
#include "fl/tensor/Random.h"
#include "tests/nn/ModuleChecks.h"

namespace fl::test {
namespace {

Variable vectorOf(const std::vector<float>& values) {
  return Variable(Tensor::fromVector(values), true);
}

// Without the user's line.
template <typename Call>
std::string wordsOf(const Call& call) {
  const std::string words = errorOf(call);
  return words.substr(0, words.find(", at "));
}

void expectConstant(const Variable& variable, const Shape& shape, float value) {
  EXPECT_EQ(variable.shape(), shape);
  EXPECT_EQ(valuesOf(variable.tensor()), std::vector<float>(shape.elements(), value));
}

// ---- Activations ----

// The positive side's slope at 0, as in Flashlight, and no NaN where a factor is 0.
TEST(Layers, RectifiersAtZeroAndInfinity) {
  const float inf = std::numeric_limits<float>::infinity();
  PReLU prelu;
  ELU elu(0.5);
  for (UnaryModule* module : {static_cast<UnaryModule*>(&prelu), static_cast<UnaryModule*>(&elu)}) {
    const Variable x = vectorOf({0, inf, 2});
    Variable y = (*module)(x);
    EXPECT_EQ(valuesOf(y.tensor()), (std::vector<float>{0, inf, 2}));
    y.backward();
    EXPECT_EQ(valuesOf(x.grad().tensor()), (std::vector<float>{1, 1, 1}));
  }
  EXPECT_EQ(valuesOf(elu(vectorOf({-inf})).tensor()), (std::vector<float>{-0.5}));
}

TEST(Layers, PReLUBeginsWithOneSlopeForAll) {
  expectConstant(PReLU().param(0), Shape({1, 1}), 0.25);
  expectConstant(PReLU(3, 0.5).param(0), Shape({3, 1}), 0.5);
  PReLU perChannel(param(full(Shape({1, 1, 2}), 2.0)));
  EXPECT_EQ(valuesOf(perChannel(input(full(Shape({1, 1, 2, 1}), -1.0))).tensor()),
            (std::vector<float>{-2, -2}));
  EXPECT_EQ(wordsOf([] { PReLU(0); }), "PReLU: the size must be positive, not 0");
}

// ---- Normalisation ----

TEST(Layers, BatchNormBegins) {
  setSeed(3);
  const BatchNorm layer(0, 1000);
  ASSERT_EQ(layer.numParamTensors(), 2);
  EXPECT_EQ(layer.param(0).shape(), Shape({1000}));
  expectUniform(layer.param(0).tensor() * 2.0 - 1.0, 1, 0.98);
  expectConstant(layer.param(1), Shape({1000}), 0);
  EXPECT_EQ(BatchNorm(0, 4, 0.1, 1e-5, /*affine=*/false).numParamTensors(), 0);
  EXPECT_EQ(wordsOf([] { BatchNorm(0, 0); }),
            "BatchNorm: the number of features must be positive, not 0");
}

// The running statistics after the batches {0, 2} and {4, 8}, seen as what evaluation does to 0 and
// 1: with means 1 and 6 and variances (divided by N - 1) 2 and 8.
void expectStatistics(double momentum, double mean, double variance) {
  BatchNorm layer(0, 1, momentum, /*eps=*/0, /*affine=*/false);
  const auto row = [](const std::vector<float>& values) {
    return input(Tensor::fromVector(Shape({1, 2}), values));
  };
  layer(row({0, 2}));
  layer(input(full({1, 0}, 0.0)));  // tells nothing
  layer(row({4, 8}));
  layer.eval();
  const std::vector<float> values = valuesOf(layer(row({0, 1})).tensor());
  EXPECT_NEAR(values[0], -mean / std::sqrt(variance), 1e-5);
  EXPECT_NEAR(values[1], (1 - mean) / std::sqrt(variance), 1e-5);
  EXPECT_EQ(valuesOf(layer(row({0, 1})).tensor()), values);
}

TEST(Layers, BatchNormTracksStatistics) {
  expectStatistics(0.5, 0.5 * 0.5 + 0.5 * 6, 0.5 * (0.5 + 0.5 * 2) + 0.5 * 8);
  expectStatistics(-1, 3.5, 5);  // the average of the batches
}

// Statistics are f32 and 16-bit floats are normalised in it; everything else in the input's type.
TEST(Layers, NormalizationsOfOtherTypes) {
  const Tensor x = rand({4, 6, 3}) * 100.0;
  const std::vector<std::function<ModulePtr()>> modules = {
      [] { return std::make_shared<BatchNorm>(1, 6); },
      [] { return std::make_shared<LayerNorm>(std::vector<int>{0, 2}); },
      [] { return std::make_shared<GroupNorm>(2, 6); },
      [] { return std::make_shared<RMSNorm>(4); }};
  for (const auto& make : modules) {
    const ModulePtr module = make();
    const Tensor expected = module->forward({input(x)})[0].tensor();
    for (const auto& [type, tolerance] :
         {std::pair(dtype::f16, 2e-2), std::pair(dtype::bf16, 2e-1), std::pair(dtype::f64, 1e-4)}) {
      SCOPED_TRACE(module->prettyString() + " of " + dtypeToString(type));
      const Tensor actual = module->forward({input(x.astype(type))})[0].tensor();
      EXPECT_EQ(actual.type(), type);
      EXPECT_TRUE(allClose(actual.astype(dtype::f32), expected, tolerance));
    }
  }
}

// More than f16 holds.
TEST(Layers, NormalizationsSumTheirParametersGradientsInF32) {
  constexpr float kCount = 120000;
  GroupNorm groups(1, 1);
  const Variable images(full({300, 1, 400}, 1.0, dtype::f16), true);
  groups(images).backward();
  EXPECT_EQ(valuesOf(groups.param(0).grad().tensor()), (std::vector<float>{0}));
  EXPECT_EQ(valuesOf(groups.param(1).grad().tensor()), (std::vector<float>{kCount}));
  RMSNorm squares(2, /*eps=*/0);
  squares(Variable(full({2, 120000}, 1.0, dtype::f16), true)).backward();
  EXPECT_EQ(valuesOf(squares.param(0).grad().tensor()), (std::vector<float>{kCount, kCount}));
}

TEST(Layers, NormalizationsOfNothing) {
  const std::vector<std::function<ModulePtr()>> modules = {
      [] { return std::make_shared<BatchNorm>(0, 2); },
      [] { return std::make_shared<LayerNorm>(0, 1e-5, true, 2); },
      [] { return std::make_shared<GroupNorm>(1, 2); },
      [] { return std::make_shared<RMSNorm>(2); }};
  for (const auto& make : modules) {
    const ModulePtr module = make();
    SCOPED_TRACE(module->prettyString());
    const Variable x(full({2, 0}, 1.0), true);
    module->forward({x})[0].backward();
    EXPECT_EQ(x.grad().shape(), x.shape());
    for (const Variable& parameter : module->params()) expectConstant(parameter.grad(), {2}, 0);
  }
}

TEST(Layers, NormalizationErrors) {
  EXPECT_EQ(wordsOf([] { LayerNorm(std::vector<int>{0, 0}); }),
            "LayerNorm: axes { 0 0 } are not different ones of 4");
  EXPECT_EQ(wordsOf([] { LayerNorm(4); }), "LayerNorm: axes { 4 } are not different ones of 4");
  EXPECT_EQ(wordsOf([] { LayerNorm(std::vector<int>{0, 1, 2, 3}); }),
            "LayerNorm: no axis is left to tell samples apart");
  EXPECT_EQ(wordsOf([] { LayerNorm(0, 1e-5, true, 0); }),
            "LayerNorm: the size must be positive or kLnVariableAxisSize, not 0");
  EXPECT_EQ(wordsOf([] { LayerNorm(0)(input(full(Shape({1, 1, 1, 1, 2}), 1.0))); }),
            "LayerNorm ( axis : { 0 } , size : -1): the input must have at most 4 dimensions, not "
            "f32[1,1,1,1,2]");
  EXPECT_EQ(wordsOf([] { LayerNorm(0, 1e-5, true, 3)(input(full(Shape({4, 2}), 1.0))); }),
            "LayerNorm ( axis : { 0 } , size : 3): the input f32[4,2] has 4 elements to normalise, "
            "not 3");
  EXPECT_EQ(wordsOf([] { GroupNorm(4, 6); }), "GroupNorm: 4 groups do not divide 6 channels");
  EXPECT_EQ(wordsOf([] { GroupNorm(2, 6)(input(full(Shape({6}), 1.0))); }),
            "GroupNorm ( groups : 2, size : 6 ): the input must be (..., 6, N), not f32[6]");
  EXPECT_EQ(wordsOf([] { RMSNorm(0); }), "RMSNorm: the size must be positive, not 0");
  EXPECT_EQ(wordsOf([] { RMSNorm(2)(input(full(Shape({3, 2}), 1.0))); }),
            "RMSNorm ( size : 2 ): the input must be (2, ...), not f32[3,2]");
}

// ---- Convolution ----

TEST(Layers, OtherConvolutionsBegin) {
  setSeed(4);
  const Conv1D sequence(4, 60, 5, 1, PaddingMode::SAME, 1, true, 2);
  EXPECT_EQ(sequence.param(0).shape(), Shape({5, 1, 2, 60}));
  expectUniform(sequence.param(0).tensor(), std::sqrt(3.0 / 10), 0.98);
  expectUniform(sequence.param(1).tensor(), std::sqrt(1.0 / 10), 0.9);
  EXPECT_EQ(Conv1D(sequence)(input(rand({7, 4, 3}))).shape(), Shape({7, 60, 3}));
  EXPECT_EQ(sequence.prettyString(), "Conv1D (4->60, 5, 1, SAME, 1) (with bias)");

  const ConvTranspose2D images(4, 60, 5, 2);
  EXPECT_EQ(images.param(0).shape(), Shape({5, 2, 60, 4}));
  expectUniform(images.param(0).tensor(), std::sqrt(3.0 / 600), 0.98);
  expectUniform(images.param(1).tensor(), std::sqrt(1.0 / 600), 0.9);
}

TEST(Layers, OtherConvolutionsCheck) {
  EXPECT_EQ(wordsOf([] { Conv1D(4, 6, 0); }),
            "Conv1D: channels and filter must be positive, not 4->6, 0x1");
  EXPECT_EQ(wordsOf([] { Conv1D(4, 6, 1, 1, 0, 1, true, 4); }),
            "Conv1D: 4 groups do not divide 4->6 channels");
  EXPECT_EQ(wordsOf([] { Conv1D(2, 2, 1)(input(full(Shape({5, 2}), 1.0))); }),
            "Conv1D (2->2, 1, 1, 0, 1) (with bias): the input must be (W, C, N), not f32[5,2]");
  EXPECT_EQ(wordsOf([] { ConvTranspose2D(2, 0, 1, 1); }),
            "ConvTranspose2D: channels and filter must be positive, not 2->0, 1x1");
  EXPECT_EQ(wordsOf([] { ConvTranspose2D(2, 3, 1, 1, 1, 1, 0, 0, 1, 1, true, 2); }),
            "ConvTranspose2D: 2 groups do not divide 2->3 channels");
  EXPECT_EQ(wordsOf([] { ConvTranspose2D(2, 2, 1, 1, 2, 2, 0, 0, 1, 1, true, 1, 2, 0); }),
            "ConvTranspose2D: extra positions 2,0 must be smaller than the strides 2,2");
  ConvTranspose2D layer(2, 2, 1, 1, 1, 1, 1, 1, 1, 1, false);
  const std::string name = layer.prettyString();
  EXPECT_EQ(wordsOf([&] { layer(input(full(Shape({2, 5, 2, 1}), 1.0))); }),
            name + ": the input (2, 5, 2, 1) leaves nothing between the paddings");
  EXPECT_EQ(wordsOf([&] { layer(input(full(Shape({5, 5, 3, 1}), 1.0))); }),
            name + ": the input f32[5,5,3,1] must have 2 channels");
  EXPECT_EQ(wordsOf([&] { layer(input(full(Shape({5, 5, 2}), 1.0))); }),
            name + ": the input must be (W, H, C, N), not f32[5,5,2]");
}

// ---- WeightNorm ----

TEST(Layers, WeightNormKeepsTheWeightAtFirst) {
  const auto linear = std::make_shared<Linear>(4, 3);
  const Variable x = input(rand({4, 2}));
  const Tensor expected = (*linear)(x).tensor();
  WeightNorm layer(linear, 0);
  ASSERT_EQ(layer.numParamTensors(), 3);
  EXPECT_EQ(layer.param(1).shape(), Shape({3, 1}));
  EXPECT_TRUE(allClose(layer.forward({x})[0].tensor(), expected, 1e-6));
  EXPECT_EQ(layer.module(), linear);
  // The bias is the module's; the weight follows v and g.
  layer.setParams(param(full(Shape({3}), 1.0)), 2);
  EXPECT_EQ(valuesOf(linear->param(1).tensor()), std::vector<float>(3, 1));
  layer.setParams(param(layer.param(1).tensor() * 2.0), 1);
  layer.eval();
  EXPECT_FALSE(linear->param(0).isCalcGrad());
  layer.setParams(param(full(Shape({3}), 0.0)), 2);
  EXPECT_EQ(layer.forward({x})[0].shape(), Shape({3, 2}));
}

TEST(Layers, WeightNormTakesLinearAndConv2D) {
  EXPECT_EQ(wordsOf([] { WeightNorm(ReLU(), 0); }),
            "WeightNorm: takes a Linear or a Conv2D, not ReLU");
  EXPECT_EQ(wordsOf([] { WeightNorm(ModulePtr(), 0); }),
            "WeightNorm: takes a Linear or a Conv2D, not null");
  EXPECT_EQ(wordsOf([] { WeightNorm(Linear(2, 3), 2); }),
            "WeightNorm: no dimension 2 in the weight f32[3,2]");
}

// ---- RNN ----

TEST(Layers, RNNBegins) {
  setSeed(6);
  const RNN layer(30, 40, 2, RnnMode::GRU, true);
  EXPECT_EQ(layer.param(0).elements(), 2 * 3 * 40 * (30 + 40 + 2) + 2 * 3 * 40 * (2 * 40 + 40 + 2));
  expectUniform(layer.param(0).tensor(), std::sqrt(1.0 / 40), 0.99);
  EXPECT_EQ(detail::getNumRnnParams(3, 4, 1, RnnMode::LSTM, false), 4 * 4 * (3 + 4 + 2));
  EXPECT_EQ(RNN(3, 4, 2, RnnMode::TANH, false, 0.25).prettyString(),
            "RNN (tanh) (3->4) (2-layer) (dropout=0.25)");
}

TEST(Layers, RNNGivesAsMuchAsItIsGiven) {
  RNN layer(3, 4, 1, RnnMode::LSTM);
  const Variable x = input(rand({3, 2, 5}));
  const Variable none;
  const Variable alone = layer(x);
  const auto [two, hidden] = layer(x, none);
  const auto [three, sameHidden, cell] = layer(x, none, none);
  EXPECT_EQ(alone.shape(), Shape({4, 2, 5}));
  EXPECT_EQ(hidden.shape(), Shape({4, 2, 1}));
  EXPECT_EQ(cell.shape(), Shape({4, 2, 1}));
  EXPECT_TRUE(allClose(alone, two));
  EXPECT_TRUE(allClose(alone, three));
  EXPECT_TRUE(allClose(hidden, sameHidden));
  // It goes on where it stopped.
  const auto [first, h, c] = layer(x(span, span, range(0, 2)), none, none);
  const auto [rest, lastH, lastC] = layer(x(span, span, range(2, 5)), h, c);
  EXPECT_TRUE(allClose(lastH, hidden));
  EXPECT_TRUE(allClose(lastC, cell));
  EXPECT_EQ(wordsOf([&] { layer(std::vector<Variable>{}); }),
            "LSTM (3->4): takes one to three inputs, not 0");
  EXPECT_EQ(wordsOf([] { RNN(3, 0, 1, RnnMode::RELU); }),
            "RNN: sizes and layers must be positive, not 3, 0 and 1");
}

TEST(Layers, RNNDropsInTrainingAlone) {
  RNN layer(3, 20, 2, RnnMode::TANH, false, 0.5);
  const Variable x = input(rand({3, 2, 5}));
  EXPECT_NE(valuesOf(layer(x).tensor()), valuesOf(layer(x).tensor()));
  layer.eval();
  EXPECT_EQ(valuesOf(layer(x).tensor()), valuesOf(layer(x).tensor()));
}

// ---- Attention ----

TEST(Layers, MultiheadAttentionDropsInTrainingAlone) {
  MultiheadAttention layer(6, 2, 0.5, /*bias=*/false);
  ASSERT_EQ(layer.numParamTensors(), 4);
  const std::vector<Variable> x = {input(rand({6, 50, 2}))};
  const auto values = [&] { return valuesOf(layer.forward(x)[0].tensor()); };
  EXPECT_NE(values(), values());
  layer.eval();
  EXPECT_EQ(values(), values());
}

TEST(Layers, MultiheadAttentionErrors) {
  EXPECT_EQ(wordsOf([] { MultiheadAttention(6, 4); }),
            "MultiheadAttention: 4 heads do not divide 6 features");
  EXPECT_EQ(wordsOf([] { MultiheadAttention(6, 2, 2); }),
            "MultiheadAttention: the ratio must be in [0, 1], not 2");
  MultiheadAttention layer(6, 2);
  const std::string name = layer.prettyString();
  const Variable x = input(full(Shape({6, 4, 1}), 1.0)), other = input(full(Shape({4, 6}), 1.0));
  EXPECT_EQ(wordsOf([&] { layer({x, x}); }), name + ": takes one, three or four inputs, not 2");
  EXPECT_EQ(wordsOf([&] { layer.forward(x, other, x); }),
            name + ": an input must be (6, T, N), not f32[4,6]");
}

// ---- Others ----

TEST(Layers, EmbeddingBegins) {
  setSeed(8);
  const Embedding layer(25, 1000);
  EXPECT_EQ(layer.param(0).shape(), Shape({25, 1000}));
  expectUniform(layer.param(0).tensor(), std::sqrt(1.0 / 25), 0.99);
  EXPECT_EQ(Embedding(param(full(Shape({2, 3}), 1.0))).prettyString(),
            "Embedding (embeddings: 3) (dim: 2)");
  EXPECT_EQ(wordsOf([] { Embedding(0, 3); }), "Embedding: sizes must be positive, not 0 and 3");
  EXPECT_EQ(wordsOf([] { Embedding(param(full(Shape({2}), 1.0))); }),
            "Embedding: the table f32[2] must have two dimensions");
}

TEST(Layers, PrecisionCastCastsThereAndBack) {
  PrecisionCast layer(dtype::f64);
  const Variable x = vectorOf({1, 2});
  const std::vector<Variable> outputs = layer(std::vector<Variable>{x, x});
  ASSERT_EQ(outputs.size(), 2u);
  Variable y = layer(x);
  EXPECT_EQ(y.type(), dtype::f64);
  EXPECT_EQ(outputs[1].type(), dtype::f64);
  y.backward();
  EXPECT_EQ(x.grad().type(), dtype::f32);
}

TEST(Layers, AdaptiveSoftMaxIsADistribution) {
  AdaptiveSoftMax layer(8, {2, 5, 9}, 2);
  ASSERT_EQ(layer.numParamTensors(), 5);
  EXPECT_EQ(layer.param(0).shape(), Shape({4, 8}));
  EXPECT_EQ(layer.param(3).shape(), Shape({2, 8}));
  EXPECT_EQ(layer.param(4).shape(), Shape({4, 2}));
  EXPECT_EQ(layer.getCutoff(), (std::vector<int>{2, 5, 9}));
  const Variable x = input(rand({8, 5}) * 10.0);
  const Variable logs = layer(x);
  EXPECT_TRUE(allClose(sum(exp(logs.tensor()), {0}), full(Shape({5}), 1.0), 1e-5));
  const Variable predicted = layer.predict(x);
  EXPECT_EQ(predicted.shape(), Shape({1, 5}));
  EXPECT_EQ(predicted.tensor().toHostVector<unsigned>(),
            argmax(logs.tensor(), 0).toHostVector<unsigned>());
}

// Which an AdaptiveEmbedding has, too.
TEST(Layers, AdaptiveSoftMaxDividesByWholeNumbers) {
  const AdaptiveSoftMax layer(100, {10, 20, 40}, 2.5f);
  EXPECT_EQ(layer.param(1).shape(), Shape({50, 100}));
  EXPECT_EQ(layer.param(3).shape(), Shape({20, 100}));
}

TEST(Layers, PReLUKeepsTheShape) {
  for (const Shape& shape : {Shape(), Shape({5}), Shape({5, 2})}) {
    Variable x(full(shape, -2.0), true);
    Variable y = PReLU(1)(x);
    EXPECT_EQ(y.shape(), shape);
    y.backward(Variable(full(shape, 1.0), false));
    EXPECT_TRUE(allClose(x.grad().tensor(), full(shape, 0.25)));
  }
  EXPECT_EQ(PReLU(5)(input(full({5}, 1.0))).shape(), Shape({5}));
}

TEST(Layers, AdaptiveSoftMaxErrors) {
  EXPECT_EQ(wordsOf([] { AdaptiveSoftMax(8, {}); }),
            "AdaptiveSoftMax: needs positive cut-offs, not { }");
  EXPECT_EQ(wordsOf([] { AdaptiveSoftMax(8, {2, 2}); }),
            "AdaptiveSoftMax: the cut-offs { 2 2 } must ascend");
  EXPECT_EQ(wordsOf([] { AdaptiveSoftMax(8, {2, 4, 8}); }),
            "AdaptiveSoftMax: the rank of cluster 1, 8 / 16, must be positive");
  EXPECT_EQ(wordsOf([] { AdaptiveSoftMax(8, {2, 4})(input(full(Shape({7, 2}), 1.0))); }),
            "Adaptive Softmax (2, 4): the input must be (8, ...), not f32[7,2]");
  EXPECT_EQ(wordsOf([] { AdaptiveSoftMaxLoss(std::shared_ptr<AdaptiveSoftMax>()); }),
            "AdaptiveSoftMaxLoss: needs an AdaptiveSoftMax");
}

// The loss and its activation stay one, also in a copy and in a file.
TEST(Losses, AdaptiveSoftMaxLossSharesItsParameters) {
  const AdaptiveSoftMaxLoss loss(std::make_shared<AdaptiveSoftMax>(8, std::vector<int>{2, 4}));
  AdaptiveSoftMaxLoss copy(loss);
  copy.setParams(param(full(Shape({3, 8}), 2.0)), 0);
  EXPECT_EQ(valuesOf(copy.getActivation()->param(0).tensor()), std::vector<float>(24, 2));
  EXPECT_FALSE(allParamsClose(loss, copy));
  std::stringstream stream;
  save(stream, copy);
  AdaptiveSoftMaxLoss loaded;
  load(stream, loaded);
  loaded.param(0).tensor() += 1;
  EXPECT_EQ(valuesOf(loaded.getActivation()->param(0).tensor()), std::vector<float>(24, 3));
}

TEST(Losses, BinaryCrossEntropyTakesWeights) {
  BinaryCrossEntropy loss;
  const Variable x = vectorOf({0.5, 0.25}), y = vectorOf({1, 0}), w = vectorOf({3, 1});
  EXPECT_NEAR(loss(x, y).scalar<float>(), -(std::log(0.5) + std::log(0.75)) / 2, 1e-6);
  EXPECT_NEAR(loss.forward(x, y, w).scalar<float>(), -(3 * std::log(0.5) + std::log(0.75)) / 2,
              1e-6);
  EXPECT_EQ(wordsOf([&] { loss(x, vectorOf({1})); }),
            "BinaryCrossEntropy: inputs f32[2] and targets f32[1] differ in shape");
  EXPECT_EQ(wordsOf([&] { loss.forward(x, y, vectorOf({1, 1, 1})); }),
            "BinaryCrossEntropy: inputs f32[2] and weights f32[3] differ in shape");
}

// ---- Freezing ----

void descend(const std::vector<Variable>& parameters) {
  for (const Variable& parameter : parameters) {
    if (parameter.isGradAvailable()) {
      parameter.tensor() -= parameter.grad().tensor();
    }
  }
}

TEST(Freeze, TrainingLeavesAFrozenModuleAlone) {
  Sequential model;
  const auto frozen = std::make_shared<Sequential>();
  frozen->add(WeightNorm(Linear(3, 4), 0));
  frozen->add(BatchNorm(0, 4));
  frozen->add(Dropout(0.5));
  model.add(frozen);
  model.add(Linear(4, 2));
  const Variable x = input(rand({3, 5}));
  const auto gradients = [&] {
    sum(model(x), {}).backward();
    std::vector<bool> available;
    for (const Variable& parameter : model.params()) {
      available.push_back(parameter.isGradAvailable());
    }
    return available;
  };
  freeze(*frozen);
  const std::vector<bool> expected = {false, false, false, false, false, true, true};
  EXPECT_EQ(gradients(), expected);
  model.eval();
  model.train();
  frozen->module(0)->train();
  EXPECT_EQ(gradients(), expected);
  // Neither does it drop or track statistics.
  EXPECT_EQ(valuesOf(model(x).tensor()), valuesOf(model(x).tensor()));

  Sequential copy(model);
  copy.train();
  EXPECT_FALSE(copy.param(0).isCalcGrad());
  EXPECT_TRUE(copy.param(6).isCalcGrad());
  std::stringstream stream;
  save(stream, model);
  Sequential loaded;
  load(stream, loaded);
  EXPECT_FALSE(loaded.param(0).isCalcGrad());
  loaded.train();
  EXPECT_TRUE(loaded.param(0).isCalcGrad());
}

// Nor where it is loaded into one that is.
TEST(Freeze, LoadingIntoAFrozenModuleThawsIt) {
  Sequential model;
  model.add(Linear(2, 2));
  std::stringstream stream;
  save(stream, model);
  freeze(model);
  load(stream, model);
  model.train();
  EXPECT_TRUE(model.param(0).isCalcGrad());
  EXPECT_TRUE(model.module(0)->param(0).isCalcGrad());
}

// Also of a module that is held by one that is no container.
TEST(Freeze, WhoeverHoldsAFrozenModule) {
  const auto activation = std::make_shared<AdaptiveSoftMax>(8, std::vector<int>{2, 4});
  AdaptiveSoftMaxLoss loss(activation);
  Sequential model;
  model.add(std::make_shared<AdaptiveSoftMaxLoss>(loss));
  freeze(*activation);
  loss.train();
  AdaptiveSoftMaxLoss copy(loss), assigned;
  copy.train();
  assigned = loss;
  assigned.train();
  for (const AdaptiveSoftMaxLoss* each : {&loss, &copy, &assigned}) {
    for (const Variable& parameter : each->params()) {
      EXPECT_FALSE(parameter.isCalcGrad());
    }
  }
  EXPECT_TRUE(model.param(0).isCalcGrad()) << "a copy from before";
  freeze(*static_cast<AdaptiveSoftMaxLoss&>(*model.module(0)).getActivation());
  model.train();
  EXPECT_FALSE(model.param(0).isCalcGrad());
}

TEST(Freeze, TheModuleOfAWeightNorm) {
  for (const bool runsBefore : {false, true}) {
    const auto linear = std::make_shared<Linear>(3, 2);
    WeightNorm layer(linear, 0);
    const Variable x = input(rand({3, 4}));
    if (runsBefore) {
      layer.forward({x});
    }
    freeze(*linear);
    layer.train();
    const auto before = valuesOf(layer.forward({x})[0].tensor());
    sum(layer.forward({param(x.tensor())})[0], {}).backward();
    descend(layer.params());
    EXPECT_EQ(valuesOf(layer.forward({x})[0].tensor()), before);
    EXPECT_FALSE(linear->param(0).isCalcGrad());
    EXPECT_FALSE(linear->param(1).isCalcGrad());
  }
}

TEST(Freeze, ParametersThatOthersShare) {
  Linear frozen(2, 2);
  Linear tied(frozen.param(0), frozen.param(1));
  freeze(frozen);
  tied.train();
  EXPECT_FALSE(tied.param(0).isCalcGrad());
  const Variable other = param(rand({2, 2}));
  frozen.setParams(other, 0);
  EXPECT_FALSE(other.isCalcGrad());

  Sequential model;
  freeze(model);
  model.add(Linear(2, 2));
  model.train();
  EXPECT_FALSE(model.param(0).isCalcGrad());
}

TEST(Freeze, TakesPointersToo) {
  const ModulePtr layer = std::make_shared<Linear>(2, 2);
  freeze(layer);
  layer->train();
  EXPECT_FALSE(layer->param(0).isCalcGrad());
  Linear assigned(2, 2);
  assigned = static_cast<Linear&>(*layer);
  assigned.train();
  EXPECT_FALSE(assigned.param(1).isCalcGrad());
}

// ---- Init ----

TEST(Init, ErfinvInverts) {
  std::vector<double> values;
  for (int i = -99; i <= 99; ++i) {
    values.push_back(i / 100.0);
  }
  values.insert(values.end(), {1e-20, -1e-5, 0.999999, -0.9999999999});
  const Tensor y = Tensor::fromVector(values);
  EXPECT_LE(amax(absolute(erf(detail::erfinv(y)) - y)).scalar<double>(), 1e-15);
  const Tensor y32 = y.astype(dtype::f32);
  EXPECT_EQ(detail::erfinv(y32).type(), dtype::f32);
  EXPECT_LE(amax(absolute(erf(detail::erfinv(y32)) - y32)).scalar<float>(), 3e-7);
  const float inf = std::numeric_limits<float>::infinity();
  const auto ends = valuesOf(detail::erfinv(Tensor::fromVector(std::vector<float>{0, 1, -1, 2})));
  EXPECT_EQ(std::vector<float>(ends.begin(), ends.end() - 1), (std::vector<float>{0, inf, -inf}));
  EXPECT_TRUE(std::isnan(ends[3]));
}

TEST(Init, TruncNormal) {
  setSeed(7);
  // Wide cut-offs leave the distribution as it is; narrow ones make it nearly uniform.
  expectNormal(truncNormal(Shape({100, 100}), 2, 3, -20, 20).tensor(), 3, 2);
  expectUniform(truncNormal(Shape({100, 100}), 100, 0, -1, 1).tensor(), 1, 0.999);
  // Of a standard normal within two deviations, 0.8796^2 is the variance.
  const Variable cut = truncNormal(Shape({100, 100}));
  expectNormal(cut.tensor(), 0, 0.8796);
  EXPECT_LE(amax(absolute(cut.tensor())).scalar<float>(), 2);
  EXPECT_EQ(truncNormal(Shape({2}), 1, 0, -2, 2, dtype::f16, false).type(), dtype::f16);
  EXPECT_EQ(wordsOf([] { truncNormal(Shape({2}), 0, 0, 2, 1); }),
            "truncNormal: the deviation must be positive, not 0, and the cut-offs in order, not 2 "
            "and 1");
}

}  // namespace
}  // namespace fl::test
