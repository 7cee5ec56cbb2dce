// Training in 16 bits: with casts where OptimMode makes them and a scaled loss, models reach the
// loss that they reach in f32, on digits and on the characters of a text.
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <string>

#include "apps/mnist/Mnist.h"
#include "fl/fl.h"
#include "gtest/gtest.h"

namespace fl::app {
namespace {

struct Batch {
  Tensor x;
  Tensor y;
};
using MakeBatch = std::function<Batch(int step)>;

// What a run computes in: f32 throughout, or 16 bits at a level of OptimMode.
struct Precision {
  const char* name;
  OptimLevel level;
  dtype type;
};

class HalfTraining : public ::testing::TestWithParam<Precision> {
 protected:
  ~HalfTraining() override { choose({"", OptimLevel::DEFAULT, dtype::f16}); }

  static void choose(const Precision& precision) {
    OptimMode::get().setOptimLevel(precision.level);
    OptimMode::get().setType(precision.type);
  }

  // The mean loss of the second half of the steps.
  static double train(const std::function<Sequential()>& makeModel, const MakeBatch& makeBatch,
                      int steps, const Precision& precision) {
    choose(precision);
    setSeed(1);
    Sequential model = makeModel();
    AdamOptimizer optimizer(model.params(), 2e-3);
    DynamicScaler scaler(1024);  // not too large, which would cost the first steps
    CategoricalCrossEntropy criterion;
    AverageValueMeter average;
    for (int step = 0; step < steps; ++step) {
      const auto [x, y] = makeBatch(step);
      optimizer.zeroGrad();
      Variable loss = criterion(model(input(x)), noGrad(y));
      scaler.scale(loss).backward();
      const auto finite = scaler.unscale(model.params());
      optimizer.stepIf(finite.tensor());
      scaler.update();
      if (step >= steps / 2) {
        average.add(loss.tensor().astype(dtype::f32));
      }
    }
    return average.value()[0];
  }

  static void expectLossOfSingle(const std::function<Sequential()>& makeModel,
                                 const MakeBatch& makeBatch, int steps, double atMost) {
    const double single = train(makeModel, makeBatch, steps, {"", OptimLevel::DEFAULT, dtype::f16});
    const double half = train(makeModel, makeBatch, steps, GetParam());
    std::cout << single << " in f32, " << half << " in 16 bits\n";
    EXPECT_LT(single, atMost);
    EXPECT_LE(half, 1.02 * single);
    EXPECT_NE(half, single) << "nothing was computed in 16 bits";
  }
};

INSTANTIATE_TEST_SUITE_P(Levels, HalfTraining,
                         ::testing::Values(Precision{"f16_O1", OptimLevel::O1, dtype::f16},
                                           Precision{"bf16_O1", OptimLevel::O1, dtype::bf16},
                                           Precision{"f16_O2", OptimLevel::O2, dtype::f16}),
                         [](const auto& test) { return std::string(test.param.name); });

// Without dropout and in large batches, as a small difference must not grow by chance.
TEST_P(HalfTraining, Digits) {
  constexpr Dim kBatch = 359;
  const auto [images, labels] = loadDataset(digitsDirectory());
  const Dim batches = images.dim(2) / kBatch;
  const auto makeBatch = [&, &x = images, &y = labels](int step) -> Batch {
    const Dim begin = step % batches * kBatch;
    return {x(span, span, range(begin, begin + kBatch)), y(range(begin, begin + kBatch))};
  };
  const auto makeModel = [] {
    Sequential model;
    model.add(View({8, 8, 1, -1}));
    model.add(Conv2D(1, 8, 3, 3, 1, 1, PaddingMode::SAME, PaddingMode::SAME));
    model.add(BatchNorm(2, 8));
    model.add(ReLU());
    model.add(Pool2D(2, 2, 2, 2));
    model.add(View({4 * 4 * 8, -1}));
    model.add(Linear(4 * 4 * 8, kMnistClasses));
    model.add(LogSoftmax());
    return model;
  };
  expectLossOfSingle(makeModel, makeBatch, 120, 0.6);
}

// A text that every Debian system has, as numbers of its characters.
std::vector<int> readText(int* vocabulary) {
  std::ifstream file("/usr/share/common-licenses/GPL-3");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::map<char, int> numbers;
  std::vector<int> characters;
  for (char c : text) {
    characters.push_back(numbers.emplace(c, static_cast<int>(numbers.size())).first->second);
  }
  *vocabulary = static_cast<int>(numbers.size());
  return characters;
}

TEST_P(HalfTraining, CharactersOfAText) {
  constexpr Dim kContext = 8, kBatch = 128, kWidth = 24;
  int vocabulary = 0;
  const std::vector<int> text = readText(&vocabulary);
  ASSERT_GT(text.size(), 30000u);
  const Tensor characters = Tensor::fromVector(text);
  const Dim count = static_cast<Dim>(text.size()) - kContext;
  const auto makeBatch = [&](int step) -> Batch {
    const Tensor starts = (arange({1, kBatch}, 1, dtype::s64) + step * kBatch) * 7 % count;
    const Tensor places = starts + arange({kContext, 1}, 0, dtype::s64);
    return {reshape(characters(places.flatten()), {kContext, kBatch}),
            characters((starts + kContext).flatten())};
  };
  const auto makeModel = [&] {
    Sequential model;
    model.add(Embedding(kWidth, vocabulary));
    model.add(View({kContext * kWidth, -1}));
    model.add(Linear(kContext * kWidth, 96));
    model.add(GELU());
    model.add(Linear(96, vocabulary));
    model.add(LogSoftmax());
    return model;
  };
  expectLossOfSingle(makeModel, makeBatch, 240, 2.6);
}

}  // namespace
}  // namespace fl::app
