// Every module: its copies, and what is saved and loaded, compute the same and share nothing. What
// a module says of itself, and that forward reads nothing.
#include <filesystem>

#include "fl/nn/Serialization.h"
#include "tests/CountingBackend.h"
#include "tests/ModuleCopies.h"
#include "tests/contrib/Checks.h"

namespace fl::test {
namespace {

// A copy, and what is loaded, also draw what the original draws.
template <typename T>
void expectEqualTraining(T original, const std::string& path, const std::vector<Variable>& inputs) {
  T copy(original);
  ModulePtr loaded;
  load(path, loaded);
  const auto train = [&](Module& module) {
    module.train();
    setSeed(9);
    return valuesOf(outputOf(module, inputs));
  };
  const std::vector<float> expected = train(original);
  EXPECT_EQ(train(copy), expected);
  EXPECT_EQ(train(*loaded), expected);
  for (const Variable& parameter : loaded->params()) {
    EXPECT_TRUE(parameter.isCalcGrad());
  }
}

// `other`: of the same class, with other sizes.
template <typename T>
void expectCopies(T original, T other, const std::vector<Variable>& inputs) {
  SCOPED_TRACE(original.prettyString());
  original.eval();
  T copy(original);
  expectIndependentCopy(original, copy, inputs);
  other = original;
  expectIndependentCopy(original, other, inputs);
  const std::unique_ptr<Module> clone = original.clone();
  expectIndependentCopy(original, *clone, inputs);

  const std::string path = ::testing::TempDir() + "/module";
  const ModulePtr saved = std::make_shared<T>(original);
  save(path, saved, std::make_shared<T>(original));
  ModulePtr loaded;
  std::shared_ptr<T> loadedAsItself;
  load(path, loaded, loadedAsItself);
  expectIndependentCopy(original, *loaded, inputs);
  expectIndependentCopy(original, *loadedAsItself, inputs);
  expectEqualTraining(original, path, inputs);

  const std::vector<float> expected = valuesOf(outputOf(original, inputs));
  T moved(std::move(original));
  EXPECT_EQ(valuesOf(outputOf(moved, inputs)), expected);
}

Residual residualOf(int size) {
  Residual residual;
  residual.add(Linear(size, size));
  residual.add(ReLU());
  residual.add(Linear(size, size));
  residual.addShortcut(0, 3);
  residual.addShortcut(1, 4, Linear(size, size, false));
  residual.addScale(2, 0.5);
  return residual;
}

TEST(ContribCopies, ComputeTheSame) {
  setSeed(5);
  const Variable x = input(rand({6, 5, 2}));
  expectCopies(Transformer(6, 3, 7, 2, 4, 0.2, 0.1, true, true), Transformer(2, 1, 2, 1, 0, 0, 0),
               {x, noMask()});
  expectCopies(Transformer(6, 3, 7, 2, 0, 0.2, 0.1), Transformer(6, 3, 7, 2, 4, 0, 0),
               {x, noMask()});
  expectCopies(Conformer(6, 3, 7, 2, 5, 3, 0.2, 0.1), Conformer(2, 1, 2, 1, 0, 4, 0),
               {x, noMask()});
  expectCopies(PositionEmbedding(6, 8, 0.3), PositionEmbedding(2, 1), {x});
  expectCopies(SinusoidalPositionEmbedding(6, 2), SinusoidalPositionEmbedding(1), {x});
  expectCopies(residualOf(6), residualOf(2), {x});
  expectCopies(TDSBlock(3, 3, 4, 0.1, 5, 0, false), TDSBlock(1, 1, 1), {input(rand({5, 4, 3, 2}))});
  expectCopies(AsymmetricConv1D(3, 4, 5, 2, PaddingMode::SAME, 0, 1),
               AsymmetricConv1D(1, 1, 1, 1, 0, 0.5, 1, false), {input(rand({5, 4, 3, 2}))});
  expectCopies(AdaptiveEmbedding(8, {3, 5}, 2), AdaptiveEmbedding(1, {1}),
               {input(Tensor::fromVector(std::vector<int>{4, 0, 2, 3}))});
  expectCopies(SpecAugment(0, 2, 1, 3, 1, 1, SpecAugment::MaskingStrategy::GLOBAL_MEAN),
               SpecAugment(0, 0, 0, 0, 0, 0), {x});
  expectCopies(RawWavSpecAugment(0, 1, 1, 2, 1, 1, 2, 2000, 6000),
               RawWavSpecAugment(0, 0, 0, 0, 0, 0), {x});
}

// The parameters of a block are those of its children, before and after loading.
TEST(ContribCopies, ParametersStayHandles) {
  const Variable x = input(rand({6, 5, 2}));
  const auto block = std::make_shared<Transformer>(6, 3, 7, 2, 4, 0, 0);
  const std::string path = ::testing::TempDir() + "/block";
  save(path, block);
  std::shared_ptr<Transformer> loaded;
  load(path, loaded);
  for (Transformer* each : {block.get(), loaded.get()}) {
    ASSERT_EQ(each->numParamTensors(), 11);
    outputOf(*each, {x, noMask()}).backward();
    for (int i = 0; i < each->numParamTensors(); ++i) {
      EXPECT_TRUE(each->param(i).isGradAvailable()) << i;
    }
    each->param(1).tensor() = full(Shape({7, 6}), 2.0);
    EXPECT_EQ(valuesOf(each->module(0)->param(0)), std::vector<float>(42, 2));
    each->eval();
    EXPECT_FALSE(outputOf(*each, {x, noMask()}).isCalcGrad());
  }
}

TEST(ContribModules, SayWhatTheyAre) {
  EXPECT_EQ(Transformer(6, 3, 7, 2, 4, 0.2, 0.1, true, false).prettyString(),
            "Transformer (nHeads: 2), (pDropout: 0.2), (pLayerdrop: 0.1), (bptt: 4), (useMask: 1), "
            "(preLayerNorm: 0)");
  EXPECT_EQ(Conformer(6, 3, 7, 2, 0, 3, 0.2, 0.1).prettyString(),
            "Conformer (modelDim: 6), (mlpDim: 7), (nHeads: 2), (pDropout: 0.2), (pLayerDropout: "
            "0.1), (posEmbContextSize: 0), (convKernelSize: 3) ");
  EXPECT_EQ(TDSBlock(2, 9, 3, 0, 7).prettyString(),
            "Time-Depth Separable Block (9, 3, 2) [6 -> 7 -> 6]");
  EXPECT_EQ(AsymmetricConv1D(3, 4, 5, 2, PaddingMode::SAME).prettyString(),
            "AsymmetricConv1D (Conv2D (3->4, 5x1, 2,1, SAME,0, 1,1) (with bias))");
  EXPECT_EQ(AdaptiveEmbedding(64, {5, 10, 25}).prettyString(),
            "AdaptiveEmbedding (dim: 64), (cutoff: 5, 10, 25), (divValue: 4)");
  EXPECT_EQ(PositionEmbedding(3, 6).prettyString(), "Position Embedding Layer");
  EXPECT_EQ(SinusoidalPositionEmbedding(3, 2).prettyString(),
            "Sinusoidal Position Embedding Layer (embDim: 3), (input scale 2)");
  EXPECT_EQ(SpecAugment(80, 27, 2, 100, 0.2, 1).prettyString(),
            "SpecAugment ( W: 80, F: 27, mF: 2, T: 100, p: 0.2, mT: 1 )");
  EXPECT_EQ(RawWavSpecAugment(0, 1, 2, 3, 0.5, 4).prettyString(),
            "RawWavSpecAugment ( W: 0, F: 1, mF: 2, T: 3, p: 0.5, mT: 4, rawWavNMels: 80, "
            "rawWavLowFreqHz: 0, rawWavHighFreqHz: 8000, rawWavSampleRate: 16000, maxKernelSize: "
            "20000,  )");
}

TEST(ContribModules, ReadNothing) {
  testing::CountingBackend backend(defaultTensorBackend());
  const BackendScope scope(backend);
  Sequential images;
  images.add(TDSBlock(3, 3, 4, 0.1));
  images.add(AsymmetricConv1D(3, 4, 5, 1, PaddingMode::SAME, 0));
  using Strategy = SpecAugment::MaskingStrategy;
  Sequential sounds;
  sounds.add(SpecAugment(0, 2, 1, 3, 1, 1, Strategy::GLOBAL_MEAN));
  sounds.add(RawWavSpecAugment(0, 1, 2, 2, 1, 1, 2, 2000, 6000, 16000, 20000));
  AdaptiveEmbedding words(6, {3, 5}, 2);
  PositionEmbedding learnt(6, 8, 0.3);
  SinusoidalPositionEmbedding fixed(6);
  Transformer transformer(6, 3, 7, 2, 5, 0.2, 0.5, true);
  Conformer conformer(6, 3, 7, 2, 5, 3, 0.2, 0.5);
  const Variable padMask = input(full(Shape({10, 2}), 1.0));
  backend.reads = 0;

  outputOf(images, {input(rand({5, 4, 3, 2}))}).backward();
  outputOf(sounds, {input(rand({5, 4, 2}))});
  Variable x = words(input(Tensor::fromVector(Shape({5, 2}), std::vector<int>(10, 4))));
  x = outputOf(fixed, {outputOf(learnt, {x})});
  x = outputOf(conformer, {outputOf(transformer, {x, padMask}), padMask});
  x.backward();
  EXPECT_EQ(backend.reads, 0);
  EXPECT_EQ(valuesOf(x).size(), 60u);
  EXPECT_GT(backend.reads, 0);
}

}  // namespace
}  // namespace fl::test
