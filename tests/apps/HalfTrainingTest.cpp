// Training in 16 bits: with casts where OptimMode makes them and a scaled loss, models reach the
// loss that they reach in f32, on digits and on the characters of a text, also while the factor of
// the loss overflows now and then.
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "apps/mnist/Mnist.h"
#include "fl/fl.h"
#include "gtest/gtest.h"

namespace fl::app {
namespace {

struct Batch {
  Tensor x;
  Tensor y;
};

struct Task {
  std::function<Sequential()> makeModel;
  std::function<Batch(int step)> makeBatch;
  int steps;
  double learningRate;
  double atMost;  // the loss of f32
};

// What a run computes in: f32 throughout, or 16 bits at a level of OptimMode.
struct Precision {
  const char* name;
  OptimLevel level;
  dtype type;
};

void choose(const Precision& precision) {
  OptimMode::get().setOptimLevel(precision.level);
  OptimMode::get().setType(precision.type);
}

// The mean loss of the second half of the steps. A batch whose gradients overflow is taken once
// more, with the next factor; `factors` gets that of each attempt.
double train(const Task& task, const Precision& precision, DynamicScaler scaler,
             std::vector<double>* factors = nullptr) {
  choose(precision);
  setSeed(1);
  Sequential model = task.makeModel();
  AdamOptimizer optimizer(model.params(), task.learningRate);
  CategoricalCrossEntropy criterion;
  AverageValueMeter average;
  for (int step = 0; step < task.steps;) {
    const auto [x, y] = task.makeBatch(step);
    optimizer.zeroGrad();
    Variable loss = criterion(model(input(x)), noGrad(y));
    scaler.scale(loss).backward();
    const auto finite = scaler.unscale(model.params());
    optimizer.stepIf(finite.tensor());
    scaler.update();
    if (factors) {
      factors->push_back(scaler.getScaleFactor());
      if (!finite) {
        continue;
      }
    }
    if (step >= task.steps / 2) {
      average.add(loss.tensor().astype(dtype::f32));
    }
    ++step;
  }
  choose({"", OptimLevel::DEFAULT, dtype::f16});
  return average.value()[0];
}

double lossInSingle(const Task& task) {
  return train(task, {"", OptimLevel::DEFAULT, dtype::f16}, DynamicScaler(1024));
}

// Without dropout and in large batches, as a small difference must not grow by chance.
Task digits() {
  static constexpr Dim kBatch = 359;
  const auto [images, labels] = loadDataset(digitsDirectory());
  const Dim batches = images.dim(2) / kBatch;
  const auto makeBatch = [=, x = images, y = labels](int step) -> Batch {
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
  return {makeModel, makeBatch, 120, 2e-3, 0.6};
}

// A text that every Debian system has, as numbers of its characters.
struct Text {
  Tensor characters;
  int vocabulary;
};

Text readText() {
  std::ifstream file("/usr/share/common-licenses/GPL-3");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::map<char, int> numbers;
  std::vector<int> characters;
  for (char c : text) {
    characters.push_back(numbers.emplace(c, static_cast<int>(numbers.size())).first->second);
  }
  return {Tensor::fromVector(characters), static_cast<int>(numbers.size())};
}

// `count` strings of `length` characters (length, count), others in each step.
Tensor stringsOf(const Tensor& characters, Dim length, Dim count, int step) {
  const Dim starts = characters.elements() - length;
  const Tensor start = (arange({1, count}, 1, dtype::s64) + step * count) * 7 % starts;
  const Tensor places = start + arange({length, 1}, 0, dtype::s64);
  return reshape(characters(places.flatten()), {length, count});
}

// The next character, of those before it.
Task characters() {
  static constexpr Dim kContext = 8, kBatch = 128, kWidth = 24;
  const auto [text, vocabulary] = readText();
  const auto makeBatch = [text = text](int step) -> Batch {
    const Tensor strings = stringsOf(text, kContext + 1, kBatch, step);
    return {strings(range(0, kContext)), strings(kContext)};
  };
  const auto makeModel = [vocabulary = vocabulary] {
    Sequential model;
    model.add(Embedding(kWidth, vocabulary));
    model.add(View({kContext * kWidth, -1}));
    model.add(Linear(kContext * kWidth, 96));
    model.add(GELU());
    model.add(Linear(96, vocabulary));
    model.add(LogSoftmax());
    return model;
  };
  return {makeModel, makeBatch, 240, 2e-3, 2.6};
}

// The next character at each place of a string, by an LSTM.
Task language() {
  static constexpr Dim kLength = 16, kBatch = 32, kWidth = 24, kHidden = 64;
  const auto [text, vocabulary] = readText();
  const auto makeBatch = [text = text](int step) -> Batch {
    const Tensor strings = transpose(stringsOf(text, kLength + 1, kBatch, step));
    return {strings(span, range(0, kLength)), strings(span, range(1, kLength + 1))};
  };
  const auto makeModel = [vocabulary = vocabulary] {
    Sequential model;
    model.add(Embedding(kWidth, vocabulary));
    model.add(Linear(kWidth, kWidth));  // for the LSTM computes in the type of its input
    model.add(RNN(kWidth, kHidden, 1, RnnMode::LSTM));
    model.add(Linear(kHidden, vocabulary));
    model.add(LogSoftmax());
    return model;
  };
  return {makeModel, makeBatch, 220, 1e-2, 2.6};
}

const std::map<std::string, std::function<Task()>> kTasks = {
    {"digits", digits}, {"characters", characters}, {"language", language}};

// O3 is O2 but for the batch normalization of the digits.
constexpr Precision kPrecisions[] = {
    {"f16_O1", OptimLevel::O1, dtype::f16},   {"f16_O2", OptimLevel::O2, dtype::f16},
    {"f16_O3", OptimLevel::O3, dtype::f16},   {"bf16_O1", OptimLevel::O1, dtype::bf16},
    {"bf16_O2", OptimLevel::O2, dtype::bf16}, {"bf16_O3", OptimLevel::O3, dtype::bf16},
};

class HalfTraining : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Tasks, HalfTraining, ::testing::Values("digits", "characters", "language"),
                         [](const auto& test) { return test.param; });

TEST_P(HalfTraining, ReachesTheLossOfSingle) {
  const Task task = kTasks.at(GetParam())();
  const double single = lossInSingle(task);
  EXPECT_LT(single, task.atMost);
  for (const Precision& precision : kPrecisions) {
    // A factor that is not too large, which would cost the first steps.
    const double half = train(task, precision, DynamicScaler(1024));
    std::cout << single << " in f32, " << half << " in " << precision.name << "\n";
    EXPECT_LE(half, 1.02 * single) << precision.name;
    EXPECT_NE(half, single) << precision.name << ": nothing was computed in 16 bits";
  }
}

TEST(HalfTrainingOfALanguage, RunsTheNetworkIn16Bits) {
  const Task task = language();
  for (const Precision& precision : kPrecisions) {
    choose(precision);
    const Sequential model = task.makeModel();
    Variable x = input(task.makeBatch(0).x);
    for (int layer = 0; layer < 3; ++layer) {
      x = model.module(layer)->forward({x})[0];
    }
    EXPECT_EQ(x.type(), precision.type) << precision.name;
  }
  choose({"", OptimLevel::DEFAULT, dtype::f16});
}

// The factor falls from one that overflows, and tries to grow every few steps. In bf16 no factor
// overflows that f32 can hold.
TEST_P(HalfTraining, ReachesItThroughOverflows) {
  constexpr double kFactor = 1 << 24;
  const Task task = kTasks.at(GetParam())();
  const double single = lossInSingle(task);
  for (const Precision& precision : {kPrecisions[0], kPrecisions[2]}) {
    std::vector<double> factors;
    const double half = train(task, precision, DynamicScaler(kFactor, kFactor, 8), &factors);
    int doublings = 0, halvings = 0;
    double before = kFactor;
    for (const double after : factors) {
      doublings += after == 2 * before;
      halvings += after == before / 2;
      before = after;
    }
    std::cout << single << " in f32, " << half << " in " << precision.name << " with " << halvings
              << " halvings and " << doublings << " doublings\n";
    EXPECT_EQ(static_cast<int>(factors.size()), task.steps + halvings) << precision.name;
    EXPECT_GE(halvings, 3) << precision.name;
    EXPECT_GE(doublings, 3) << precision.name;
    EXPECT_LE(half, 1.02 * single) << precision.name;
  }
}

}  // namespace
}  // namespace fl::app
