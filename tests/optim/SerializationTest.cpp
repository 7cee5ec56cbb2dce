// Optimizers that are saved go on as if they had not been.
#include <gtest/gtest.h>

#include <sstream>

#include "fl/nn/Serialization.h"
#include "fl/tensor/tensor.h"
#include "tests/optim/AllOptimizers.h"

namespace fl::test {
namespace {

std::vector<Variable> startingPoint() {
  return {Variable(Tensor::fromVector(std::vector<float>{1, -2, 0.5}), true),
          Variable(Tensor::fromVector(Shape({2, 2}), std::vector<float>{3, 1, -1, 2}), true)};
}

void train(std::vector<Variable>& parameters, FirstOrderOptimizer& optimizer, int steps) {
  for (int step = 0; step < steps; ++step) {
    optimizer.setLr(optimizer.getLr() * 0.75);
    for (Variable& parameter : parameters) {
      giveGradient(parameter);
    }
    optimizer.step();
  }
}

void expectEqual(const std::vector<Variable>& actual, const std::vector<Variable>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(actual[i].tensor().toHostVector<float>(), expected[i].tensor().toHostVector<float>());
  }
}

TEST(Serialization, ResumedTrainingIsUninterrupted) {
  for (const MakeOptimizer& make : allOptimizers()) {
    std::vector<Variable> through = startingPoint(), first = startingPoint(), resumed;
    const auto uninterrupted = make(through);
    SCOPED_TRACE(uninterrupted->prettyString());
    train(through, *uninterrupted, 7);

    const std::shared_ptr<FirstOrderOptimizer> before = make(first);
    train(first, *before, 4);
    std::stringstream stream;
    save(stream, first, before);
    std::shared_ptr<FirstOrderOptimizer> after;
    load(stream, resumed, after);
    EXPECT_EQ(after->prettyString(), before->prettyString());
    EXPECT_EQ(after->getLr(), before->getLr());
    train(resumed, *after, 3);  // it updates the Variables that were saved with it
    expectEqual(resumed, through);
  }
}

TEST(Serialization, OptimizersAreLoadedInPlace) {
  std::vector<Variable> saved = startingPoint(), other = startingPoint(), loaded;
  AdamOptimizer optimizer(saved, 0.1), target(other, 0.7);
  train(saved, optimizer, 2);
  std::stringstream stream;
  save(stream, saved, optimizer);
  load(stream, loaded, target);
  train(saved, optimizer, 2);
  train(loaded, target, 2);
  expectEqual(loaded, saved);
  expectEqual(other, startingPoint());
}

TEST(Serialization, ScalersGoOn) {
  DynamicScaler scaler(64, 1024, 3), loaded(1, 1, 1);
  std::vector<Variable> parameters = startingPoint();
  const auto step = [&](DynamicScaler& of) {
    giveGradient(parameters[0]);
    of.unscale(parameters);
    of.update();
  };
  step(scaler);
  step(scaler);
  std::stringstream stream;
  save(stream, scaler);
  load(stream, loaded);
  EXPECT_EQ(loaded.getScaleFactor(), 64);
  step(loaded);
  EXPECT_EQ(loaded.getScaleFactor(), 128);
}

}  // namespace
}  // namespace fl::test
