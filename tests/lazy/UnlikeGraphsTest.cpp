// Programs whose graphs come once: such a graph is not planned as a whole, and has the values, the
// errors and the memory that it has with a plan.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "fl/runtime/Counters.h"
#include "fl/runtime/MemoryManager.h"
#include "fl/tensor/Composite.h"
#include "fl/tensor/TableOps.h"
#include "fl/tensor/tensor.h"
#include "tests/ErrorOf.h"
#include "tests/FlagScope.h"
#include "tests/lazy/Counts.h"
#include "tests/lazy/FreshEngine.h"

namespace fl::testing {
namespace {

constexpr int kUnlike = 64;  // so many structures tell

Tensor ramp(Dim size) { return (arange(Shape({size}), 0, dtype::f32) - 3.0f) / 4.0f; }

// Operators of few kinds in an order that `draw` decides.
Tensor chain(std::mt19937* draw, Tensor x, int length) {
  const Tensor first = x;
  for (int i = 0; i < length; ++i) {
    switch ((*draw)() % 5) {
      case 0:
        x = tanh(x);
        break;
      case 1:
        x = x * 0.5f + first;
        break;
      case 2:
        x = x - mean(x, {0}, true);
        break;
      case 3:
        x = maximum(x, 0.0f);
        break;
      default:
        x = sin(x) - first;
    }
  }
  return x;
}

using Floats = std::vector<float>;

std::vector<Floats> chains(unsigned seed, int count) {
  std::mt19937 draw(seed);
  std::vector<Floats> values;
  for (int i = 0; i < count; ++i) values.push_back(chain(&draw, ramp(8), 12).toHostVector<float>());
  return values;
}

class UnlikeGraphs : public ::testing::Test {
 protected:
  // Until hardly any structure has come again, and each operator has.
  static void meetThem() { chains(1, 2 * kUnlike); }

 private:
  const FlagScope plan_{&Flags::plan, "repeated"};
  const FreshEngine engine_;
};

TEST_F(UnlikeGraphs, RunOperatorByOperator) {
  const Counts before;
  chains(1, kUnlike);
  EXPECT_EQ(before.plansBuilt(), uint64_t{kUnlike}) << "which might come again";
  meetThem();
  const Counts counts;
  const std::vector<Floats> values = chains(2, 100);
  EXPECT_EQ(counts.plansBuilt(), 0u);
  EXPECT_EQ(counts.realizes(), 100u);
  EXPECT_GT(counts.launches(), 1000u);
  const FlagScope all(&Flags::plan, "all");
  EXPECT_EQ(chains(2, 100), values) << "the same bits";
  EXPECT_GE(counts.plansBuilt(), 99u);
}

TEST_F(UnlikeGraphs, ArePlannedWhenTheyComeAgain) {
  meetThem();
  const Floats first = chains(3, 1)[0];
  const Counts again;
  EXPECT_EQ(chains(3, 1)[0], first);
  EXPECT_EQ(again.plansBuilt(), 1u);
  EXPECT_EQ(again.realizes(), 1u);
  EXPECT_EQ(chains(3, 1)[0], first);
  EXPECT_EQ(again.plansBuilt(), 1u);
  EXPECT_EQ(again.realizes(), 2u);
}

TEST_F(UnlikeGraphs, ArePlannedWhereManyComeAgain) {
  for (unsigned epoch = 0; epoch < 3; ++epoch) chains(4, kUnlike / 2);
  const Counts counts;
  chains(5, kUnlike / 2);
  EXPECT_EQ(counts.plansBuilt(), uint64_t{kUnlike / 2});
}

TEST_F(UnlikeGraphs, ArePlannedWhereTheyAreLarge) {
  meetThem();
  std::mt19937 draw(6);
  const Counts counts;
  chain(&draw, ramp(100'000), 12).toHostVector<float>();
  EXPECT_EQ(counts.plansBuilt(), 1u);
  EXPECT_EQ(counts.realizes(), 1u);
}

// A plan has the library compute images in another layout, and so other bits.
TEST_F(UnlikeGraphs, ArePlannedWhereTheyHaveLayouts) {
  meetThem();
  const Tensor images = rand({8, 8, 3, 2}), filters = rand({3, 3, 3, 4});
  sync();
  const Counts counts;
  (table::conv2d(images * 2.0f, filters, Tensor(), {}) + 1.0f).toHostVector<float>();
  EXPECT_EQ(counts.plansBuilt(), 1u);
  EXPECT_EQ(counts.realizes(), 1u);
}

// What one by one would copy, for an error that may come.
TEST_F(UnlikeGraphs, ArePlannedWhereTheyWriteInPlace) {
  meetThem();
  constexpr Dim kElements = 5 << 16;
  Tensor table = full({kElements}, 1.0f) * 3.0f;
  table.scalar<float>();
  const uint64_t moved = runtime::counters().bytesMoved;
  for (Dim i = 1; i < 10; ++i) {
    table(range(i, 2 * i)) = ramp(i);
    EXPECT_EQ(tanh(table(range(2 * i, 3 * i)) - 3.0f).scalar<float>(), 0.0f);
  }
  EXPECT_LT(runtime::counters().bytesMoved - moved, kElements * sizeof(float));
}

// Of shapes that are all new no operator has a plan either.
TEST_F(UnlikeGraphs, ArePlannedWhereTheirOperatorsComeOnceToo) {
  meetThem();
  const auto ofLength = [](Dim length) { sum(tanh(ramp(length) * 2.0f) - 1.0f).scalar<float>(); };
  for (Dim length = 1; length <= 1000; ++length) ofLength(length);
  const Counts counts;
  for (Dim length = 1001; length <= 1200; ++length) ofLength(length);
  EXPECT_EQ(counts.plansBuilt(), 200u);
  EXPECT_EQ(counts.realizes(), 200u);
}

// One by one from here on.
class EachOperator : public ::testing::Test {
 private:
  const FlagScope plan_{&Flags::plan, "none"};
  const FreshEngine engine_;
};

TEST_F(EachOperator, OfACallComputesAllItsResultsTogether) {
  const auto both = [](const Tensor& x) {
    const Tensor y = exp(x);
    return std::vector<Tensor>{y + 1, y * 2};
  };
  const Tensor x = ramp(4);
  x.toHostVector<float>();
  const Counts counts;
  const std::vector<Tensor> results = composite("both", both, x);
  const Floats sum = (results[0] + results[1]).toHostVector<float>();
  EXPECT_EQ(counts.launches(), 2u) << "the call and the sum";
  EXPECT_EQ(sum[3], 4.0f);
  EXPECT_EQ(results[1].toHostVector<float>()[3], 2.0f);
  EXPECT_EQ(counts.launches(), 2u);
}

// An error leaves all as it was before, though operators ahead of it have run.
TEST_F(EachOperator, TakesWritesBack) {
  Tensor state = ramp(4) * 4.0f, rate = ramp(4);
  const Floats before = state.toHostVector<float>();
  const Tensor places = Tensor::fromVector(std::vector<int>{0, 1, 2, 9});
  const auto refuses = [&] {
    return test::errorOf([&] { state.toHostVector<float>(); }).find("9 is out of range") !=
           std::string::npos;
  };
  state(span) = state * 0.5f + rate(places);
  state += 1.0f;
  EXPECT_TRUE(refuses());
  EXPECT_EQ(state.toHostVector<float>(), before);
  // Places that are computed of what is written over.
  state(span) = rate((state + 30.0f).astype(dtype::s64));
  EXPECT_NE(test::errorOf([&] { sync(); }), "");
  EXPECT_EQ(state.toHostVector<float>(), before);
  sync();
  // Beside it what is good is computed.
  state(span) = state * 0.5f + rate(places);
  const Tensor other = rate(Tensor::fromVector(std::vector<int>{3})) * 1.0f;
  EXPECT_EQ(other.toHostVector<float>(), Floats{0.0f});
  EXPECT_TRUE(refuses());
  EXPECT_EQ(state.toHostVector<float>(), before);
}

// A tensor that cannot be computed, and is held, holds nothing of others'.
TEST_F(EachOperator, KeepsNothingForAnErrorThatStays) {
  const Tensor rate = ramp(4), bad = rate(Tensor::fromVector(std::vector<int>{9})) * 1.0f;
  Tensor state = full({1 << 16}, 1.0f) * 1.0f;
  const auto liveBytes = [] { return runtime::hostMemoryManager()->stats().liveBytes; };
  size_t first = 0;
  for (int i = 0; i < 40; ++i) {
    state(span) = state * 0.5f + 1.0f;
    state += 1.0f;
    EXPECT_EQ(state(0).scalar<float>(), 4.0f - std::ldexp(3.0f, -i - 1));
    if (i == 4) first = liveBytes();
  }
  EXPECT_LE(liveBytes(), first + (size_t{1} << 18));
  EXPECT_NE(test::errorOf([&] { bad.scalar<float>(); }), "");
}

// Where it can, which is not where the elements lie that an error would leave.
TEST_F(EachOperator, WritesWhereTheElementsAre) {
  constexpr Dim kElements = 1 << 18;
  constexpr size_t kCopy = 2 * kElements * sizeof(float);
  Tensor x = full({kElements}, 1.0f) * 3.0f;
  x.scalar<float>();
  const uint64_t moved = runtime::counters().bytesMoved;
  for (int i = 0; i < 10; ++i) x(i) = static_cast<float>(i);
  x(Tensor::fromVector(std::vector<int>{20, 21})) = 5.0f;
  const Floats values = x.toHostVector<float>();
  EXPECT_EQ(values[9], 9.0f);
  EXPECT_EQ(values[21], 5.0f);
  EXPECT_EQ(values[22], 3.0f);
  EXPECT_LT(runtime::counters().bytesMoved - moved, kCopy + 1024);
}

}  // namespace
}  // namespace fl::testing
