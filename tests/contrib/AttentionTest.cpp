// Transformer and Conformer beyond their values: padding, layer drop, modes, initial parameters,
// errors. Embeddings and TDSBlock: the same.
#include <algorithm>
#include <cmath>

#include "fl/autograd/Functions.h"
#include "tests/contrib/Checks.h"

namespace fl::test {
namespace {

// What is padding changes nothing elsewhere, and a mask of another time is resized.
template <typename Block>
void expectPaddingIsNotSeen(Block& block) {
  block.eval();
  const Variable x = input(rand({6, 4, 2}));
  Tensor mask = full(Shape({4, 2}), 1.0);
  mask(range(2, 4), 0) = 0.0;
  const Variable padded = outputOf(block, {x, input(mask)});
  const Variable alone = outputOf(block, {x(span, range(2), range(1)), noMask()});
  const Variable whole = outputOf(block, {x(span, span, range(1, 2)), noMask()});
  const Tensor first = padded.tensor()(span, range(2), range(1));
  EXPECT_TRUE(allClose(first, alone.tensor(), 1e-4));
  EXPECT_TRUE(allClose(padded.tensor()(span, span, range(1, 2)), whole.tensor(), 1e-4));
  const Variable unmasked = outputOf(block, {x, noMask()});
  EXPECT_FALSE(allClose(first, unmasked.tensor()(span, range(2), range(1)), 1e-3));

  Tensor longer = full(Shape({8, 2}), 1.0, dtype::b8), shorter = full(Shape({2, 2}), 1, dtype::s32);
  longer(range(4, 8), 0) = 0.0;
  shorter(1, 0) = 0.0;
  const std::vector<float> expected = valuesOf(padded);
  EXPECT_EQ(valuesOf(outputOf(block, {x, input(longer)})), expected);
  // Of two for four places the nearest are 0, 1, 1, 1: halves are rounded up.
  mask(1, 0) = 0.0;
  EXPECT_EQ(valuesOf(outputOf(block, {x, input(shorter)})),
            valuesOf(outputOf(block, {x, input(mask)})));
}

TEST(Attention, PaddingIsNotSeen) {
  setSeed(3);
  Transformer transformer(6, 3, 7, 2, 4, 0, 0);
  expectPaddingIsNotSeen(transformer);
}

TEST(Attention, ConformerTakesThePaddingOfItsAttention) {
  setSeed(4);
  // Its convolution, of one place, sees no padding either.
  Conformer conformer(6, 3, 7, 2, 4, 1, 0);
  expectPaddingIsNotSeen(conformer);
}

TEST(Attention, DropoutsOnlyInTraining) {
  setSeed(6);
  const Variable x = input(rand({6, 4, 2}));
  Transformer transformer(6, 3, 7, 2, 4, 0.5, 0);
  Conformer conformer(6, 3, 7, 2, 4, 3, 0.5);
  for (Module* module : std::vector<Module*>{&transformer, &conformer}) {
    EXPECT_NE(valuesOf(outputOf(*module, {x, noMask()})),
              valuesOf(outputOf(*module, {x, noMask()})));
    module->eval();
    EXPECT_EQ(valuesOf(outputOf(*module, {x, noMask()})),
              valuesOf(outputOf(*module, {x, noMask()})));
  }
  const std::vector<float> expected = valuesOf(outputOf(transformer, {x, noMask()}));
  transformer.train();
  transformer.setDropout(0);
  EXPECT_EQ(valuesOf(outputOf(transformer, {x, noMask()})), expected);
}

// A dropped layer leaves the residual connections: with preLN the input itself.
TEST(Attention, LayersAreDroppedWhole) {
  setSeed(7);
  const Variable x = input(rand({6, 4, 2}));
  Transformer transformer(6, 3, 7, 2, 4, 0, 1, false, /*preLN=*/true);
  EXPECT_EQ(valuesOf(outputOf(transformer, {x, noMask()})), valuesOf(x));
  Conformer conformer(6, 3, 7, 2, 4, 3, 0, 1);
  LayerNorm norm(std::vector<int>{0}, 1e-5, true, 6);
  EXPECT_EQ(valuesOf(outputOf(conformer, {x, noMask()})), valuesOf(norm(x)));

  transformer.setLayerDropout(0.5);
  int dropped = 0;
  for (int i = 0; i < 40; ++i) {
    dropped += valuesOf(outputOf(transformer, {x, noMask()})) == valuesOf(x);
  }
  EXPECT_GT(dropped, 5);
  EXPECT_LT(dropped, 35);
  transformer.eval();
  EXPECT_NE(valuesOf(outputOf(transformer, {x, noMask()})), valuesOf(x));
}

TEST(Attention, InitialParameters) {
  setSeed(8);
  const Transformer transformer(100, 20, 50, 4, 30, 0, 0);
  const auto largest = [](const Variable& parameter) {
    const std::vector<float> values = valuesOf(parameter);
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    EXPECT_NEAR(-*low, *high, 0.05 * *high);
    return *high;
  };
  EXPECT_EQ(transformer.param(0).shape(), Shape({59, 20}));
  EXPECT_NEAR(largest(transformer.param(0)), 0.1, 0.001);
  EXPECT_EQ(transformer.param(1).shape(), Shape({50, 100}));
  EXPECT_NEAR(largest(transformer.param(1)), std::sqrt(1.0 / 100), 0.001);
  EXPECT_EQ(transformer.param(2).shape(), Shape({100, 50}));
  EXPECT_EQ(transformer.param(3).shape(), Shape({80, 100}));
  EXPECT_EQ(transformer.param(6).shape(), Shape({100, 80}));
  EXPECT_EQ(transformer.param(7).shape(), Shape({1}));
  EXPECT_EQ(Conformer(4, 2, 3, 2, 0, 3, 0).numParamTensors(), 24);
  EXPECT_EQ(Conformer(4, 2, 3, 2, 5, 3, 0).numParamTensors(), 25);
}

// In half precision results keep their dtype and gradients those of the parameters.
TEST(Attention, HalfPrecision) {
  setSeed(9);
  const Variable x = input(rand({6, 4, 2}));
  const Variable half = x.astype(dtype::f16);
  Transformer transformer(6, 3, 7, 2, 4, 0.2, 0.2, true);
  Conformer conformer(6, 3, 7, 2, 4, 3, 0.2, 0.2);
  TDSBlock tds(2, 3, 3);
  PositionEmbedding learnt(6, 8, 0.3);
  SinusoidalPositionEmbedding fixed(6);
  const auto expectClose = [](Module& module, const std::vector<Variable>& inputs) {
    Variable y = outputOf(module, inputs);
    EXPECT_EQ(y.type(), dtype::f16) << module.prettyString();
    y.backward();
    for (const Variable& parameter : module.params()) {
      EXPECT_EQ(parameter.grad().type(), dtype::f32);
    }
    module.eval();
    std::vector<Variable> wide = inputs;
    wide[0] = wide[0].astype(dtype::f32);
    const Tensor expected = outputOf(module, wide).tensor();
    EXPECT_TRUE(allClose(outputOf(module, inputs).tensor().astype(dtype::f32), expected, 0.02))
        << module.prettyString();
  };
  expectClose(transformer, {half, noMask()});
  expectClose(conformer, {half, noMask()});
  expectClose(learnt, {half});
  expectClose(fixed, {half});
  expectClose(tds, {input(rand({4, 3, 2, 2}, dtype::f16))});
}

TEST(Attention, Errors) {
  const Variable x = input(rand({6, 4, 2}));
  Transformer transformer(6, 3, 7, 2, 4, 0, 0);
  expectError("Transformer: sizes must be positive, not modelDim 6, headDim 0, mlpDim 7, nHeads 2",
              [] { Transformer(6, 0, 7, 2, 4, 0, 0); });
  expectError("Transformer: the context of relative positions cannot be -1",
              [] { Transformer(6, 3, 7, 2, -1, 0, 0); });
  expectError("Transformer: a dropout must be in [0, 1], not 1.5",
              [] { Transformer(6, 3, 7, 2, 4, 0, 1.5); });
  expectError("Transformer: a dropout must be in [0, 1], not -1",
              [&] { transformer.setDropout(-1); });
  expectError("a dropout must be in [0, 1], not 2", [&] { transformer.setLayerDropout(2); });
  expectError(
      "takes {input, padding mask} or {previous step, input, padding mask}, not 1 Variables",
      [&] { transformer.forward({x}); });
  expectError("(preLayerNorm: 0): the input must be (6, time, batch), not f32[5,4,2]",
              [&] { transformer.forward({input(rand({5, 4, 2})), noMask()}); });
  expectError("the padding mask must be empty or (time, 2), for the input's batch, not f32[4,3]",
              [&] { transformer.forward({x, input(rand({4, 3}))}); });
  expectError("the previous step f32[6,4,3] does not fit the input f32[6,4,2]",
              [&] { transformer.forward({input(rand({6, 4, 3})), x, noMask()}); });
  expectError("takes no padding mask beside a previous step",
              [&] { transformer.forward({x, x, input(rand({4, 2}))}); });
  // bptt reaches three places back.
  transformer.forward({x(span, range(3)), x, noMask()});
  EXPECT_THROW(transformer.forward({x, x, noMask()}), std::invalid_argument);

  Conformer conformer(6, 3, 7, 2, 4, 3, 0);
  expectError("Conformer: sizes must be positive", [] { Conformer(6, 3, 7, 0, 4, 3, 0); });
  expectError("Conformer: the convolution's kernel must be positive, not 0",
              [] { Conformer(6, 3, 7, 2, 4, 0, 0); });
  expectError("(convKernelSize: 3) : takes {input, padding mask}, not 1 Variables",
              [&] { conformer.forward({x}); });
  expectError("the input must be (6, time, batch), not f32[6,4]",
              [&] { conformer.forward({input(rand({6, 4})), noMask()}); });
}

// ---- TDSBlock, AsymmetricConv1D and embeddings ----

TEST(TDSBlock, KeepsTheShapeAndDropsInTraining) {
  setSeed(10);
  const Variable x = input(rand({7, 3, 2, 2}));
  TDSBlock block(2, 5, 3, 0.5, 0, 1);
  const Variable y = outputOf(block, {x});
  EXPECT_EQ(y.shape(), x.shape());
  EXPECT_NE(valuesOf(outputOf(block, {x})), valuesOf(y));
  block.eval();
  EXPECT_EQ(valuesOf(outputOf(block, {x})), valuesOf(outputOf(block, {x})));
}

TEST(TDSBlock, Errors) {
  TDSBlock block(2, 5, 3);
  expectError("TDSBlock: sizes must be positive, not channels 2, kernelSize 0, width 3, ",
              [] { TDSBlock(2, 0, 3); });
  expectError("TDSBlock: rightPadding 5 is not in [-1, 5), for a kernel of 5",
              [] { TDSBlock(2, 5, 3, 0, 0, 5); });
  expectError(
      "Time-Depth Separable Block (5, 3, 2) [6 -> 6 -> 6]: the input must be (time, 3, 2, "
      "batch), not f32[7,2,3,1]",
      [&] { block.forward({input(rand({7, 2, 3, 1}))}); });
  expectError("[6 -> 6 -> 6]: takes one input, not 2",
              [&] { block.forward({input(rand({7, 3, 2, 1})), noMask()}); });
}

// Around given parameters; without padding it is a Conv2D.
TEST(AsymmetricConv1D, AroundParameters) {
  const Variable w = param(rand({3, 1, 2, 4})), b = param(rand({1, 1, 4, 1}));
  const Variable x = input(rand({6, 2, 2, 1}));
  EXPECT_EQ(valuesOf(AsymmetricConv1D(w, b, 2, 0, 0.f)(x)), valuesOf(Conv2D(w, b, 2)(x)));
  EXPECT_EQ(valuesOf(AsymmetricConv1D(w)(x)), valuesOf(Conv2D(w)(x)));
  EXPECT_EQ(valuesOf(AsymmetricConv1D(w, 1, PaddingMode::SAME)(x)),
            valuesOf(Conv2D(w, 1, 1, PaddingMode::SAME)(x)));
}

// By the whole elements of 2 |0.5 - futurePart| in double, as Flashlight moves.
TEST(AsymmetricConv1D, MovesByWholeElements) {
  const auto moved = [](float futurePart) {
    Tensor filter = full({11, 1, 1, 1}, 0.0), x = full({15, 1, 1, 1}, 0.0);
    filter(5) = 1.0;
    x(7) = 1.0;
    AsymmetricConv1D layer(param(filter), 1, PaddingMode::SAME, futurePart);
    return static_cast<int>(argmax(layer(input(x)).tensor(), 0).asScalar<unsigned>()) - 7;
  };
  EXPECT_EQ(moved(0.5f), 0);
  EXPECT_EQ(moved(0.f), 5);
  EXPECT_EQ(moved(0.2f), 2);
  EXPECT_EQ(moved(1.f), -5);
}

// Where it strides it pads one side alone: 4 before, and no output is dropped.
TEST(AsymmetricConv1D, StridesOverWhatItPads) {
  Tensor filter = full({5, 1, 1, 1}, 0.0);
  filter(4) = 1.0;
  AsymmetricConv1D layer(param(filter), 2, PaddingMode::SAME, 0.f);
  const Variable y = layer(input(reshape(arange(0, 10), {10, 1, 1, 1}).astype(dtype::f32)));
  EXPECT_EQ(y.shape(), Shape({5, 1, 1, 1}));
  EXPECT_EQ(valuesOf(y), (std::vector<float>{0, 2, 4, 6, 8}));
}

TEST(AsymmetricConv1D, Errors) {
  expectError("AsymmetricConv1D: the padding must be 0 or SAME, not 2",
              [] { AsymmetricConv1D(2, 2, 5, 1, 2); });
  expectError("AsymmetricConv1D: futurePart must be in [0, 1], not 1.5",
              [] { AsymmetricConv1D(2, 2, 5, 1, 0, 1.5); });
  expectError("AsymmetricConv1D: weights (3, 2, 2, 2) do not have size 1 in the second dimension",
              [] { AsymmetricConv1D(param(rand({3, 2, 2, 2}))); });
  expectError("AsymmetricConv1D (Conv2D (2->2, 5x1, 1,1, 0,0, 1,1) (with bias)): the input must be",
              [] { AsymmetricConv1D(2, 2, 5)(input(rand({5, 2}))); });
}

TEST(PositionEmbedding, DropsEmbeddingsInTraining) {
  setSeed(12);
  PositionEmbedding module(50, 20, 0.25);
  const Variable x = input(full(Shape({50, 10, 3}), 0.0));
  const std::vector<float> values = valuesOf(outputOf(module, {x}));
  const auto zeros = static_cast<double>(std::count(values.begin(), values.end(), 0.f));
  EXPECT_NEAR(zeros / static_cast<double>(values.size()), 0.25, 0.06);
  EXPECT_NE(std::vector<float>(values.begin(), values.begin() + 500),
            std::vector<float>(values.begin() + 500, values.begin() + 1000));
  module.eval();
  const std::vector<float> table = valuesOf(module.param(0)(span, range(10)));
  EXPECT_EQ(valuesOf(outputOf(module, {x(span, span, range(1))})), table);
}

TEST(Embeddings, Errors) {
  PositionEmbedding learnt(3, 6);
  expectError("PositionEmbedding: sizes must be positive, not 3 and 0",
              [] { PositionEmbedding(3, 0); });
  expectError("PositionEmbedding: the dropout must be in [0, 1], not 2",
              [] { PositionEmbedding(3, 6, 2); });
  expectError(
      "PositionEmbedding: the input must be (3, time, batch) with at most 6 times, not "
      "f32[3,7,1]",
      [&] { learnt.forward({input(rand({3, 7, 1}))}); });
  expectError("PositionEmbedding: takes one input, not 0", [&] { learnt.forward({}); });

  SinusoidalPositionEmbedding fixed(3);
  expectError("SinusoidalPositionEmbedding: layerDim must be positive, not 0",
              [] { SinusoidalPositionEmbedding(0); });
  expectError("SinusoidalPositionEmbedding: the input must be floats (3, time, ...), not f32[4,5]",
              [&] { fixed.forward({input(rand({4, 5}))}); });
  expectError("SinusoidalPositionEmbedding: takes one input, not 0", [&] { fixed.forward({}); });

  expectError("AdaptiveEmbedding: needs a cutoff and a divValue of at least 1, not 0 cutoffs and 4",
              [] { AdaptiveEmbedding(4, {}); });
  expectError("(cutoff: 5, 5), (divValue: 4): bucket 1 has 0 words with embeddings of 2 elements",
              [] { AdaptiveEmbedding(8, {5, 5}); });
  expectError("bucket 2 has 3 words with embeddings of 0 elements; both must be positive",
              [] { AdaptiveEmbedding(8, {5, 7, 10}); });
  // Words of no bucket are an error, of the read at the latest.
  AdaptiveEmbedding words(8, {3, 5});
  for (int word : {-1, 5}) {
    const Variable x = input(Tensor::fromVector(std::vector<int>{0, word}));
    EXPECT_ANY_THROW(valuesOf(words(x))) << word;
  }
}

TEST(AdaptiveEmbedding, InitialParameters) {
  setSeed(13);
  const AdaptiveEmbedding module(64, {200, 500}, 4);
  ASSERT_EQ(module.numParamTensors(), 4);
  EXPECT_EQ(module.param(0).shape(), Shape({200, 64}));
  EXPECT_EQ(module.param(1).shape(), Shape({64, 64}));
  EXPECT_EQ(module.param(2).shape(), Shape({300, 16}));
  EXPECT_EQ(module.param(3).shape(), Shape({64, 16}));
  EXPECT_NEAR(std(module.param(0).tensor()).scalar<float>(), std::sqrt(1.0 / 64), 0.005);
  EXPECT_NEAR(std(module.param(2).tensor()).scalar<float>(), std::sqrt(1.0 / 16), 0.02);
  EXPECT_NEAR(std(module.param(3).tensor()).scalar<float>(), std::sqrt(2.0 / 80), 0.02);
}

}  // namespace
}  // namespace fl::test
