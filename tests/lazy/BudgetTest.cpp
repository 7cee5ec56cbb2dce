// A memory budget: a plan meets it, to the same bits, or is refused before it runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "fl/fl.h"
#include "fl/runtime/Counters.h"
#include "fl/runtime/MemoryManager.h"
#include "tests/ErrorOf.h"
#include "tests/lazy/BufferLog.h"
#include "tests/lazy/Counts.h"

namespace fl::testing {
namespace {

using Values = std::vector<float>;

constexpr Dim kWidth = 64, kBatch = 2048;
constexpr int kLayers = 12;
// Of an activation; weights and what they need are smaller.
constexpr size_t kActivation = kWidth * kBatch * sizeof(float);

// A deep network, whose backward pass reads what each layer of the forward pass made.
class Budget : public ::testing::Test {
 protected:
  Budget() : x_(computed(rand({kWidth, kBatch}))) { makeWeights(); }
  ~Budget() override { setMemoryBudget(0); }

  static Tensor computed(Tensor x) {
    eval(x);
    sync();
    return x;
  }

  void makeWeights() {
    setSeed(11);
    weights_.clear();
    for (int i = 0; i < kLayers; ++i) {
      weights_.emplace_back(computed((rand({kWidth, kWidth}) - 0.5) * 0.3), true);
    }
  }

  // The loss, and the weights after a step of gradient descent in place.
  Variable step() {
    Variable x(x_, false);
    for (const Variable& weight : weights_) {
      x = tanh(matmul(weight, x));
    }
    Variable loss = mean(x * x, {0, 1});
    loss.backward();
    for (Variable& weight : weights_) {
      weight.tensor() -= 0.1 * weight.grad().tensor();
      weight.zeroGrad();
    }
    return loss;
  }

  // The losses of `steps` steps, and the weights then.
  Values train(int steps) {
    Values values;
    for (int i = 0; i < steps; ++i) {
      values.push_back(step().scalar<float>());
    }
    for (const Variable& weight : weights_) {
      const Values trained = weight.tensor().toHostVector<float>();
      values.insert(values.end(), trained.begin(), trained.end());
    }
    return values;
  }

  std::vector<size_t> buffersOfAStep() {
    return buffersMade([&] { step().scalar<float>(); });
  }
  // The largest buffer of a step.
  size_t arena() { return std::ranges::max(buffersOfAStep()); }

  const Tensor x_;
  std::vector<Variable> weights_;
};

// Row E5.
TEST_F(Budget, E5IsMetToTheSameBits) {
  const Values want = train(3);
  const size_t whole = arena();
  ASSERT_GT(whole, kLayers * kActivation);
  size_t last = whole;
  for (const double part : {0.9, 0.7, 0.5, 0.4}) {
    const auto budget = static_cast<size_t>(part * static_cast<double>(whole));
    setMemoryBudget(budget);
    const Counts counts;
    makeWeights();
    EXPECT_TRUE(train(3) == want) << part;
    const size_t taken = arena();
    EXPECT_LE(taken, budget) << part;
    EXPECT_LT(taken, last) << part;
    EXPECT_EQ(counts.fallbacks(), 0u);
    last = taken;
  }
  // Other plans, not those that a budget made.
  setMemoryBudget(0);
  EXPECT_EQ(arena(), whole);
}

// Without a budget: indices that are computed again are not looked at before they are there.
TEST(Trimming, ComputesIndicesAgain) {
  const auto train = [](const std::string& backend) {
    const BackendScope scope(backend);
    setSeed(5);
    constexpr Dim kSide = 512, kWords = 3000, kLooked = 100'000;
    Tensor table = full({2, kWords}, 1.0), state = full({kSide, kSide}, 1.0);
    const Tensor x = full({kSide, kSide}, 0.01);
    const Tensor places = floor(rand({kLooked}) * kWords).astype(dtype::s32);
    for (const Tensor& given : {table, state, x, places}) given.value()->data();  // computes it
    const auto step = [&] {
      const Tensor rows = table(span, places);
      const Tensor product = matmul(x * sum(rows * rows), x);
      state += (matmul(product, exp(product * 1e-9)) + product) * 1e-9;
      table(span, places) -= tile(reshape(sum(state), {1, 1}), {2, kLooked}) * 1e-12;
      return sum(table);
    };
    Values sums;
    for (int i = 0; i < 2; ++i) sums.push_back(step().scalar<float>());
    return sums;
  };
  const uint64_t before = runtime::counters().stepsRecomputed;
  const Values lazy = train("lazy"), eager = train("eager");
  EXPECT_GT(runtime::counters().stepsRecomputed, before) << "it tests nothing";
  for (size_t i = 0; i < eager.size(); ++i) EXPECT_NEAR(lazy[i] / eager[i], 1, 1e-5);
}

TEST_F(Budget, LeavesUpdatesInPlace) {
  train(2);
  const auto small = [&] {
    std::vector<size_t> made = buffersOfAStep();
    std::erase_if(made, [](size_t bytes) { return bytes > kActivation; });
    return made;
  };
  const std::vector<size_t> want = small();
  EXPECT_EQ(std::ranges::count(want, kWidth * kWidth * sizeof(float)), 0);
  setMemoryBudget(arena() / 2);
  EXPECT_EQ(small(), want);
}

TEST_F(Budget, ThatARefusalNamesIsMet) {
  const Values want = train(2);
  makeWeights();
  setMemoryBudget(kActivation);
  const std::string error = test::errorOf<std::runtime_error>([&] { train(1); });
  const std::string before = "; a budget of ";
  ASSERT_NE(error.find(before), std::string::npos) << error;
  const size_t named = std::stoul(error.substr(error.find(before) + before.size()));
  EXPECT_LT(named, kLayers * kActivation / 2) << "of which the values of all layers take more";
  setMemoryBudget(named);
  makeWeights();
  EXPECT_TRUE(train(2) == want);
}

TEST_F(Budget, IsRefusedBeforeAnythingRuns) {
  const Values want = train(1);
  makeWeights();
  const Variable loss = step();
  setMemoryBudget(2 * kActivation - 1);
  const Counts counts;
  const std::string error = test::errorOf<std::runtime_error>([&] { loss.scalar<float>(); });
  EXPECT_NE(error.find(": 1048576 are needed while tanh at "), std::string::npos) << error;
  EXPECT_NE(error.find("the budget of 1048575 bytes"), std::string::npos) << error;
  EXPECT_NE(error.find("\n  524288 bytes of tanh at tests/lazy/BudgetTest.cpp:"), std::string::npos)
      << error;
  EXPECT_EQ(counts.launches(), 0u);
  EXPECT_EQ(counts.fallbacks(), 0u);
  // What is recorded afterwards is another plan, and the one that is refused is not planned again.
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ((full({4}, 1.0) + 1.0).toHostVector<float>(), Values(4, 2));
  }
  EXPECT_EQ(counts.plansBuilt(), 2u);
  // Nothing is lost.
  setMemoryBudget(0);
  EXPECT_EQ(loss.scalar<float>(), want[0]);
}

constexpr const char* kTold =
    ", which bounds what dies in it: what lives on, as tensors that the program keeps or the "
    "history of a loss that is read before backward(), is not computed again; at "
    "tests/lazy/BudgetTest.cpp:";

// Steps behind it have the plan that they would have, and leave nothing pending.
TEST_F(Budget, WhatIsRefusedHoldsUpNothingElse) {
  setMemoryBudget(kActivation);
  const Variable refused = step();
  EXPECT_NE(test::errorOf<std::runtime_error>([&] { refused.scalar<float>(); }), "");
  Tensor average = full({64}, 0.0);
  std::vector<size_t> held;
  Counts counts;
  for (int step = 0; step < 20; ++step) {
    const Tensor x = Tensor::fromVector(Values(64, 2.0f));
    average = average * 0.5 + x * 0.5;
    EXPECT_EQ(mean(x * x).scalar<float>(), 4);
    held.push_back(runtime::hostMemoryManager()->stats().liveBytes);
    if (step == 5) counts = Counts();
  }
  EXPECT_EQ(counts.plansBuilt(), 0u);
  EXPECT_EQ(held[19], held[5]);
  EXPECT_EQ(average(0).scalar<float>(), 2 - 1.0f / (1 << 19));
  EXPECT_EQ(compile([](const Tensor& y) { return y * 2; })(x_ * 0)(0, 0).scalar<float>(), 0);
}

// None of them is planned again, and each reader has the error that is its own.
TEST_F(Budget, SeveralMayBeRefused) {
  setMemoryBudget(kActivation);
  Tensor bad = full({4}, 1.0)(Tensor::fromVector(std::vector<int>{9})) + 0.0;
  eval(bad);
  std::vector<Variable> refused;
  Tensor state = full({4}, 1.0) * 2.0;
  for (int i = 0; i < 3; ++i) {
    refused.push_back(step());
    EXPECT_NE(test::errorOf<std::runtime_error>([&] { refused[i].scalar<float>(); }), "");
  }
  Counts counts;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ((full({4}, i) + 1.0)(3).scalar<float>(), i + 1);
    if (i == 0) counts = Counts();
  }
  EXPECT_EQ(counts.plansBuilt(), 0u);
  EXPECT_NE(test::errorOf([&] { bad.scalar<float>(); }).find("9 is out of range"),
            std::string::npos);
  // What waits beside them is no part of a function that is recorded.
  auto tenfold = compile([&] { return state * 10.0; });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(tenfold()(0).scalar<float>(), 20);
  state = full({4}, 7.0);
  EXPECT_EQ(tenfold()(0).scalar<float>(), 70);
  for (Variable& each : refused)
    EXPECT_NE(test::errorOf<std::runtime_error>([&] { each.scalar<float>(); }), "");
}

// What a plan leaves for a later one is no temporary: a loss that is read before backward() makes
// results of every layer's values. They are told of, once, and not bounded.
TEST_F(Budget, IsOfAPlanAndTellsOfResultsBeyondIt) {
  const auto forward = [&] {
    Variable x(x_, false);
    for (const Variable& weight : weights_) x = tanh(matmul(weight, x));
    return mean(x * x, {0, 1});
  };
  step().scalar<float>();
  const size_t whole = arena();
  setMemoryBudget(whole / 2);
  ::testing::internal::CaptureStderr();
  EXPECT_LE(arena(), whole / 2);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "")
      << "new weights are in the old ones' place";
  for (const bool isFirst : {true, false}) {
    ::testing::internal::CaptureStderr();
    Variable loss;
    const std::vector<size_t> made = buffersMade([&] {
      loss = forward();
      loss.scalar<float>();
    });
    const std::string told = ::testing::internal::GetCapturedStderr();
    const size_t results = std::accumulate(made.begin(), made.end(), size_t{0});
    EXPECT_GE(results, kLayers * kActivation);
    EXPECT_EQ(told.find("the results of a plan take ") != std::string::npos, isFirst) << told;
    EXPECT_EQ(told.find(absl::StrCat(" bytes beside the memory budget of ", whole / 2, kTold)) !=
                  std::string::npos,
              isFirst)
        << told;
    loss.backward();
    const std::vector<size_t> behind = buffersMade([&] { weights_[0].grad().scalar<float>(); });
    EXPECT_LE(std::ranges::max(behind), whole / 2);
    for (Variable& weight : weights_) weight.zeroGrad();
  }
}

TEST_F(Budget, TellsOfResultsWithoutAGradient) {
  setMemoryBudget(kActivation / 2);
  ::testing::internal::CaptureStderr();
  const Tensor kept = computed(matmul(weights_[0].tensor(), x_));
  const std::string told = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find(absl::StrCat("the results of a plan take ", kActivation,
                                   " bytes beside the memory budget of ", kActivation / 2, kTold)),
            std::string::npos)
      << told;
}

}  // namespace
}  // namespace fl::testing
