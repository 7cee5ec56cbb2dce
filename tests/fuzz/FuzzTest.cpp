// A bounded run of the fuzzer (Differential.h); Fuzz.cpp is the long one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "fl/base/Flags.h"
#include "fl/runtime/Counters.h"
#include "fl/tensor/tensor.h"
#include "tests/fuzz/Differential.h"
#include "tests/fuzz/RandomProgram.h"
#include "tests/tensor/Composites.h"

namespace fl::testing {
namespace {

TEST(Fuzz, EveryModeGivesTheSameBits) {
  flags().check = "verify";
  const uint64_t recomputed = runtime::counters().stepsRecomputed;
  const HeldCounts& held = heldCounts();
  // Of these some compute again within a budget.
  for (uint64_t seed = 241; seed <= 300; ++seed) {
    EXPECT_EQ(checkProgram(seed), "")
        << "replay with bazel run //tests/fuzz -- --programs=1 --seed=" << seed;
  }
  EXPECT_GT(runtime::counters().stepsRecomputed - recomputed, 200u);
  EXPECT_EQ(held.programs, 40u);
  EXPECT_GT(held.withinBudget, 0u);
  EXPECT_GT(held.exact, 250u);
  EXPECT_GT(held.bounded, 100u);
  EXPECT_LT(held.unbounded, held.bounded / 3);
  EXPECT_EQ(held.wild, 20u);
  EXPECT_GT(held.wildExact, 100u);
}

HostValue hostValue(float element, bool exact, double error) {
  std::string bytes(sizeof element, '\0');
  std::memcpy(bytes.data(), &element, sizeof element);
  return {"x", dtype::f32, {1}, bytes, exact, error};
}

TEST(Fuzz, ComparesByTheBoundAndNaNWithNaNAlone) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto isSame = [](float actual, float expected, bool exact, double error) {
    return difference(hostValue(actual, exact, error), hostValue(expected, exact, error), true)
        .empty();
  };
  for (const double error : {0.0, 1.0, kInfinity}) {
    for (const bool exact : {true, false}) {
      EXPECT_TRUE(isSame(NAN, NAN, exact, error));
      EXPECT_TRUE(isSame(NAN, -NAN, exact, error));
      EXPECT_FALSE(isSame(NAN, 1, exact, error)) << error;
      EXPECT_FALSE(isSame(1, NAN, exact, error)) << error;
      EXPECT_EQ(isSame(INFINITY, 1, exact, error), !exact && error == kInfinity);
      EXPECT_EQ(isSame(1, INFINITY, exact, error), !exact && error == kInfinity);
      EXPECT_TRUE(isSame(-0.f, 0.f, exact, error));
      EXPECT_EQ(isSame(3, 1, exact, error), !exact && error >= 1);
      EXPECT_EQ(isSame(4, 1, exact, error), !exact && error > 1);
      EXPECT_TRUE(isSame(2, 2, exact, error));
    }
  }
}

// So that products are made in the midst of buffers, and read there.
TEST(Fuzz, DrawsPartsOfProducts) {
  const BackendScope scope("eager");
  int joined = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    RandomProgram program({seed});
    program.run();
    joined += program.text().find("two such products along") != std::string::npos;
  }
  EXPECT_GT(joined, 3);
}

// What no op table row stands for.
TEST(Fuzz, AsksAndOrders) {
  const BackendScope scope("eager");
  std::string text;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    RandomProgram program({seed});
    program.run();
    text += program.text();
  }
  for (const char* call : {"allClose(", "isInvalidArray(", "print(", "context of ", "sync\n",
                           "the stream waits for ", " waits for the stream", "asContiguousTensor",
                           "fromArray", "gradient of the rnn's input"}) {
    EXPECT_NE(text.find(call), std::string::npos) << call;
  }
}

TEST(Fuzz, KnowsWhatAnInexactConditionChoosesAsInexact) {
  const BackendScope scope("eager");
  const Tracker tracker(/*measures=*/true);
  const Value one{full({2}, 1, dtype::s32)}, two{full({2}, 2, dtype::s32)};
  const Tensor condition = full({2}, true, dtype::b8);
  const Value exact = tracker.where({condition}, one, two);
  EXPECT_TRUE(exact.exact);
  EXPECT_EQ(exact.error, 0);
  const Value inexact = tracker.where({condition, /*exact=*/false}, one, two);
  EXPECT_FALSE(inexact.exact);
  EXPECT_EQ(inexact.error, std::numeric_limits<double>::infinity());
}

TEST(Fuzz, CountsWhatItCalls) {
  checkProgram(1);
  EXPECT_NE(describe(callCounts()).find("\nadd: "), std::string::npos);
  EXPECT_NE(describe(callCounts()).find("\nmean(input, axes, keepDims): "), std::string::npos);
}

TEST(Fuzz, NamesWhatItCallsTooSeldom) {
  CallCounts calls;
  for (auto& ofOp : calls) {
    ofOp.fill(5);
  }
  EXPECT_EQ(thinCells(calls, 5), std::vector<std::string>());
  calls[static_cast<int>(ir::Op::Exp)][static_cast<int>(dtype::bf16)] = 4;
  calls[static_cast<int>(ir::Op::Exp)][static_cast<int>(dtype::s32)] = 0;  // exp casts them first
  EXPECT_EQ(thinCells(calls, 5), std::vector<std::string>{"exp bf16 4"});
  const auto seldom = [&](ir::Op op, dtype type) {
    calls[static_cast<int>(op)][static_cast<int>(type)] = 3;
    return thinCells(calls, 4).size();
  };
  EXPECT_EQ(seldom(ir::Op::Random, dtype::f32), 0u) << "its operand is a seed";
  EXPECT_EQ(seldom(ir::Op::Iota, dtype::f16), 0u) << "made in f32";
  EXPECT_EQ(seldom(ir::Op::Sum, dtype::u8), 0u) << "made in u32";
  EXPECT_EQ(seldom(ir::Op::Pool2d, dtype::s32), 0u) << "images are floats";
  EXPECT_EQ(seldom(ir::Op::Contract, dtype::f16), 1u);
  EXPECT_EQ(seldom(ir::Op::Window, dtype::f32), 2u);
  EXPECT_EQ(seldom(ir::Op::Matmul, dtype::s32), 3u);
}

TEST(Fuzz, NamesCompositesThatItCallsTooSeldom) {
  CallCounts calls{};
  const std::vector<std::string> thin = thinCells(calls, 1);
  const auto isThin = [&](const std::string& cell) { return std::ranges::count(thin, cell) == 1; };
  for (const char* composite : kComposites) {
    EXPECT_TRUE(isThin(std::string(composite) + " f32 0")) << composite;
  }
  EXPECT_TRUE(isThin("sort(input, axis, sortMode) u8 0"));
  EXPECT_TRUE(isThin("sort(values, indices, input, axis, sortMode) b8 0"));
  EXPECT_TRUE(isThin("randn(shape, type) bf16 0"));
  EXPECT_FALSE(isThin("randn(shape, type) s32 0")) << "it refuses integers";
}

}  // namespace
}  // namespace fl::testing
