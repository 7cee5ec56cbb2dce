// What data holds that is out of range is told by whoever reads the result, with the line that
// recorded it: of lazy tensors, whose values are computed after the call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "fl/fl.h"
#include "fl/lazy/Compile.h"
#include "fl/runtime/MemoryManager.h"
#include "tests/ErrorOf.h"
#include "tests/lazy/Counts.h"

namespace fl::testing {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using test::errorOf;

TEST(LateErrors, OfAViewNameTheIndex) {
  const Tensor f34 = full({3, 4}, 1.0), bad = Tensor::fromVector(std::vector<int>{0, 9});
  const int line = __LINE__ + 1;
  const Tensor view = f34(bad);
  const Tensor copy = view;
  EXPECT_THAT(errorOf([&] { copy.toHostVector<float>(); }),
              EndsWith("LateErrorTest.cpp:" + std::to_string(line)));
}

TEST(LateErrors, OfASparseMatrixNameItsConstruction) {
  const Tensor two = full({2}, 1.0), good = Tensor::fromVector(std::vector<int>{0, 1});
  const Tensor bad = Tensor::fromVector(std::vector<int>{1, 9});
  const int line = __LINE__ + 1;
  const Tensor matrix(2, 3, two, bad, good, StorageType::COO);
  const Tensor read = matrix.astype(dtype::f64);
  EXPECT_EQ(errorOf([&] { read.toHostVector<double>(); }),
            "Tensor: row of a sparse matrix: s64[2]: 9 is out of range for dimension 0 of 2 "
            "elements, at tests/lazy/LateErrorTest.cpp:" +
                std::to_string(line));
}

// Waiting for all work is a read, too.
TEST(LateErrors, AWriteThatFailsIsToldOnce) {
  Tensor x = arange(Shape({4}), 0);
  x(x + 1.0) = 0.0;
  EXPECT_THAT(errorOf([] { sync(); }),
              StartsWith("index: f32[4]: 4 is out of range for dimension 0 of 4 elements, at "));
  sync();
  EXPECT_EQ(x.toHostVector<float>(), (std::vector<float>{0, 1, 2, 3}));
}

// No write by the user, so there are no old elements to go back to.
TEST(LateErrors, AValueThatCannotBeComputedStaysUnreadable) {
  const Tensor row = Tensor::fromVector(std::vector<int>{0, 9});
  const Tensor sparse(2, 3, full({2}, 1.0), row, row - row, StorageType::COO);
  const Tensor dense = sparse + 0.0;
  for (int i = 0; i < 2; ++i) {
    EXPECT_NE(errorOf([&] { dense.toHostVector<float>(); }), "");
  }
}

// Also where the loss is read, for which alone the plan of the whole step is given up, and in a
// call that fl::compile records.
TEST(LateErrors, ABadIndexTakesAStepBack) {
  const BackendScope scope("lazy");
  Tensor table = full({4, 40}, 1.0), steps = full({1}, 0.0);
  std::function<Tensor(const Tensor&)> step = [&](const Tensor& places) {
    const Tensor loss = sum(table(span, places));
    table -= loss / 64;
    steps += 1 + 0 * loss;
    return loss;
  };
  const Tensor good = Tensor::fromVector(std::vector<int>{3, 5});
  const Tensor bad = Tensor::fromVector(std::vector<int>{3, 77});
  const auto refusal = [&](auto run) {
    return errorOf([&] { run(bad).template scalar<float>(); });
  };
  const std::string told = "index: f32[4,40]: 77 is out of range for dimension 1 of 40 elements";
  EXPECT_EQ(refusal(step).find(told), 0u);
  EXPECT_EQ(step(good).scalar<float>(), 8);
  EXPECT_EQ(refusal(compile(step)).find(told), 0u);
  EXPECT_EQ(table(3, 39).scalar<float>(), 1 - 8.0f / 64);
  EXPECT_EQ(step(good).scalar<float>(), 7);
  EXPECT_EQ(steps.scalar<float>(), 2);
}

// What is computed before has not been written over them, and holds none once it is told.
TEST(LateErrors, ABadIndexLeavesTheOldElementsThatOthersRead) {
  const BackendScope scope("lazy");
  const Tensor places = Tensor::fromVector(std::vector<int>{0, 1, 2, 9});
  const std::vector<float> before(1 << 16, 6.0f);
  const auto holds = [] { return runtime::hostMemoryManager()->stats().liveBytes; };
  for (const bool isEvaluated : {true, false}) {
    for (const bool isShared : {true, false}) {
      const size_t first = holds();
      {
        Tensor x = full({1 << 16}, 3.0) * 2;
        x.scalar<float>();
        Tensor other = isShared ? x.copy() : Tensor();
        Tensor half = x * 0.5;
        if (isEvaluated) eval(half);
        x(span) = half + sum(full({4}, 1.0)(places));
        if (isShared) other(span) = half + 1;
        EXPECT_EQ(half(3).scalar<float>(), 3);
        half = Tensor();
        if (isShared) {
          EXPECT_EQ(other(3).scalar<float>(), 4);
        }
        EXPECT_NE(errorOf([&] { x.scalar<float>(); }), "");
        EXPECT_EQ(x.toHostVector<float>(), before);
        x(span) = x * 2;
        EXPECT_EQ(x(3).scalar<float>(), 12);
      }
      EXPECT_LT(holds(), first + 4096);
    }
  }
}

// While somebody holds what has it: steps have the plan that they would have, and leave nothing
// pending. It is told where it is read, and once where all is computed.
TEST(LateErrors, ABadIndexHoldsUpNothingElse) {
  const BackendScope scope("lazy");
  for (const bool isTold : {false, true}) {
    const Tensor bad = full({4}, 1.0)(Tensor::fromVector(std::vector<int>{9})) + 0.0;
    const Tensor worse = bad + 1.0;
    if (isTold) {
      EXPECT_NE(errorOf([&] { bad.scalar<float>(); }), "");
    }
    Tensor average = full({1 << 12}, 0.0);
    std::vector<size_t> held;
    Counts counts;
    for (int step = 0; step < 20; ++step) {
      const Tensor x = Tensor::fromVector(std::vector<float>(1 << 12, 2.0f));
      average = average * 0.5 + x * 0.5;  // read at the end alone
      EXPECT_EQ(mean(x * x).scalar<float>(), 4);
      held.push_back(runtime::hostMemoryManager()->stats().liveBytes);
      if (step == 5) counts = Counts();
    }
    EXPECT_EQ(counts.plansBuilt(), 0u);
    EXPECT_EQ(held[19], held[5]);
    EXPECT_EQ(compile([](const Tensor& y) { return y * 2; })(average)(0).scalar<float>(),
              4 - 1.0f / (1 << 18));
    EXPECT_EQ(errorOf([] { sync(); }) == "", isTold);
    EXPECT_EQ(errorOf([] { sync(); }), "");
    EXPECT_THAT(errorOf([&] { worse.scalar<float>(); }), HasSubstr("9 is out of range"));
  }
}

// Nor where another thread recorded it, who alone is told where all is computed.
TEST(LateErrors, ABadIndexOfAnotherThreadHoldsUpNothingElse) {
  const BackendScope scope("lazy");
  Tensor bad;
  std::thread([&] { bad = full({4}, 1.0)(Tensor::fromVector(std::vector<int>{9})) + 0.0; }).join();
  const Tensor worse = bad + 1.0;
  Counts counts;
  for (int step = 0; step < 10; ++step) {
    EXPECT_EQ((full({4}, step) * 2.0)(3).scalar<float>(), 2 * step);
    if (step == 3) std::thread([] { sync(); }).join();
    if (step == 5) counts = Counts();
  }
  EXPECT_EQ(counts.plansBuilt(), 0u);
  EXPECT_EQ(errorOf([] { sync(); }), "");
  EXPECT_THAT(errorOf([&] { worse.scalar<float>(); }), HasSubstr("9 is out of range"));
}

// They are found a few at a time: what is read meanwhile does not wait for a run of each.
TEST(LateErrors, ManyBadIndicesHoldUpNothingElse) {
  const BackendScope scope("lazy");
  std::vector<Tensor> bad;
  for (int i = 0; i < 40; ++i)
    bad.push_back(full({4}, 1.0)(Tensor::fromVector(std::vector<int>{4 + i})) + 0.0);
  for (int i = 0; i < 20; ++i) {
    const Counts counts;
    EXPECT_EQ((full({3}, i) + 1.0)(2).scalar<float>(), i + 1);
    EXPECT_LE(counts.plansBuilt(), 6u);
  }
  for (int i = 0; i < 40; ++i) {
    EXPECT_THAT(errorOf([&] { bad[i].scalar<float>(); }),
                HasSubstr(std::to_string(4 + i) + " is out of range"));
  }
}

// Of which only another operator that waits held the old elements.
TEST(LateErrors, AWholeWriteThatIsHeldUpGivesBackWhatWasBefore) {
  const BackendScope scope("lazy");
  Tensor x = full({4}, 1.0) * 2.0;
  const Tensor half = x * 0.5;
  x(span) = full({4}, 1.0) + sum(full({4}, 1.0)(Tensor::fromVector(std::vector<int>{9})));
  EXPECT_EQ((full({3}, 1.0) + 1.0)(2).scalar<float>(), 2);
  EXPECT_THAT(errorOf([&] { x.scalar<float>(); }), HasSubstr("9 is out of range"));
  EXPECT_EQ(x.toHostVector<float>(), (std::vector<float>(4, 2)));
  x(span) = x + 1.0;
  EXPECT_EQ(x.toHostVector<float>(), (std::vector<float>(4, 3)));
  EXPECT_EQ(half(0).scalar<float>(), 1);
}

// The library's own writes, as of the gradient of a lookup, are lost with the step.
TEST(LateErrors, ABadIndexLeavesNoPartOfAStep) {
  const BackendScope scope("lazy");
  Variable table(full({2, 4}, 1.0), true);
  SGDOptimizer optimizer({table}, 0.1, /*momentum=*/0.9, /*weightDecay=*/0.1);
  const auto step = [&](int place) {
    optimizer.zeroGrad();
    const Variable words(Tensor::fromVector(std::vector<int>{place, 0}), false);
    Variable loss = mean(tanh(embedding(words, table)), {0, 1});
    loss.backward();
    optimizer.step();
    return loss.scalar<float>();
  };
  step(1);
  const std::vector<float> before = table.tensor().toHostVector<float>();
  EXPECT_NE(errorOf([&] { step(7); }), "");
  EXPECT_EQ(table.tensor().toHostVector<float>(), before);
  EXPECT_NE(errorOf([&] { table.grad().tensor().toHostVector<float>(); }), "");
}

// The thread that reads what has it is told, not one that computes all that is pending.
TEST(LateErrors, ABadIndexIsNotToldToAnotherThread) {
  Tensor x = full({4}, 1.0f) * 2;
  x(Tensor::fromVector(std::vector<long long>{9})) += 5;
  std::string error = "none";
  std::thread([&] { error = errorOf([] { fl::sync(); }); }).join();
  EXPECT_EQ(error, "");
  EXPECT_THAT(errorOf([&] { x.toHostVector<float>(); }), HasSubstr("9 is out of range"));
  EXPECT_EQ(x.toHostVector<float>(), (std::vector<float>(4, 2)));
}

// Nor to the next that records, when its thread has ended.
TEST(LateErrors, ABadIndexOfAThreadThatEndedIsToldToItsReader) {
  Tensor x = full({4}, 1.0f) * 2;
  std::thread([&] { x(Tensor::fromVector(std::vector<long long>{9})) += 5; }).join();
  std::string error = "none";
  std::thread([&] {
    const Tensor other = full({2}, 1.0f) + 1;
    error = errorOf([] { fl::sync(); });
  }).join();
  EXPECT_EQ(error, "");
  EXPECT_THAT(errorOf([&] { x.toHostVector<float>(); }), HasSubstr("9 is out of range"));
}

}  // namespace
}  // namespace fl::testing
