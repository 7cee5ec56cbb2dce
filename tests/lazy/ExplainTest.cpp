// FL_CACHE=explain: the first difference of a new plan from the nearest one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fl/base/Flags.h"
#include "fl/codegen/Extensions.h"
#include "fl/runtime/MemoryManager.h"
#include "fl/tensor/tensor.h"

namespace fl::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

template <typename Body>
std::string explained(Body&& body) {
  flags().cache = "explain";
  ::testing::internal::CaptureStderr();
  body();
  flags().cache = "on";
  return ::testing::internal::GetCapturedStderr();
}

Tensor numbers(Dim length) { return Tensor::fromVector(std::vector<float>(length, 2)); }

void compute(Dim length, bool isLong, bool holds) {
  const Tensor x = numbers(length);
  Tensor y = exp(x) + 1;
  Tensor z = tanh(y);
  z = isLong ? z * x : z;
  if (!holds) {
    y = numbers(1);
  }
  z.toHostVector<float>();
}

TEST(Explain, NamesTheFirstDifference) {
  EXPECT_EQ(explained([] { compute(5, false, false); }),
            "fl: a plan of 3 operators is new: it is the first\n");
  EXPECT_EQ(explained([] { compute(5, false, false); }), "") << "known";
  EXPECT_THAT(explained([] { compute(6, false, false); }),
              MatchesRegex("fl: a plan of 3 operators is new: input 0 is f32\\[6\\] and was "
                           "f32\\[5\\]; first read by\n  %0 = exp %p0 : f32\\[6\\]  // "
                           "tests/lazy/ExplainTest.cpp:[0-9]+\nand then by\n  %0 = exp %p0 : "
                           "f32\\[5\\]  // tests/lazy/ExplainTest.cpp:[0-9]+\n"));
  EXPECT_THAT(explained([] { compute(6, true, false); }),
              MatchesRegex("fl: a plan of 4 operators is new: it has 4 operators and the nearest "
                           "3; the first more is\n  %3 = mul %2, %p0 : f32\\[6\\]  // "
                           "tests/lazy/ExplainTest.cpp:[0-9]+\n"));
  EXPECT_THAT(explained([] { compute(6, true, true); }),
              MatchesRegex("fl: a plan of 4 operators is new: a handle now holds the result of\n"
                           "  %1 = add %0, %p1 : f32\\[6\\]  // "
                           "tests/lazy/ExplainTest.cpp:[0-9]+\n"));
}

TEST(Explain, ShowsBothLinesOfAnOperator) {
  const auto run = [](bool cosine) {
    const Tensor x = numbers(9);
    const Tensor y = cosine ? cos(x) : sin(x);
    (y + x).toHostVector<float>();
  };
  explained([&] { run(true); });
  const std::string words = explained([&] { run(false); });
  EXPECT_THAT(words, HasSubstr("operator 0 is\n  %0 = sin %p0 : f32[9]  // tests/lazy/Explain"));
  EXPECT_THAT(words, HasSubstr("\nand was\n  %0 = cos %p0 : f32[9]  // tests/lazy/ExplainTest"));
}

// The nearest one is not the latest where an operator more stands ahead of all others.
TEST(Explain, FindsThePlanThatHasOneMoreInFront) {
  const auto run = [](bool isLonger) {
    const Tensor x = numbers(11);
    Tensor y = isLonger ? sin(x) : x;
    for (int i = 0; i < 5; ++i) y = tanh(y) * x;
    y.toHostVector<float>();
  };
  explained([&] { run(false); });
  explained([] {
    const Tensor other = reshape(numbers(9), {3, 3});
    matmul(other, other).toHostVector<float>();
  });
  const std::string words = explained([&] { run(true); });
  EXPECT_THAT(words, HasSubstr("operator 0 is\n  %0 = sin %p0 : f32[11]"));
  EXPECT_THAT(words, HasSubstr("\nand was\n  %0 = tanh %p0 : f32[11]"));
}

TEST(Explain, ShowsBothReadersOfAnInput) {
  const auto run = [](bool same) {
    const Tensor x = numbers(7), y = numbers(7);
    const Tensor z = exp(x);
    const Tensor read = same ? tanh(x) : tanh(y);
    (z + read).toHostVector<float>();
  };
  explained([&] { run(false); });
  EXPECT_THAT(explained([&] { run(true); }),
              MatchesRegex("fl: a plan of 3 operators is new: operator 1 is\n  %1 = tanh %p0 : "
                           "f32\\[7\\]  // tests/lazy/ExplainTest.cpp:[0-9]+\nand was\n  %1 = "
                           "tanh %p1 : f32\\[7\\]  // tests/lazy/ExplainTest.cpp:[0-9]+\n"));
}

TEST(Explain, NamesTheMemoryBudget) {
  int lines[2];
  const auto run = [&](bool budget) {
    const Tensor x = numbers(11);
    lines[budget] = __LINE__ + 1;
    (exp(x) + 1).toHostVector<float>();
  };
  explained([&] { run(false); });
  runtime::setMemoryBudget(1 << 20);
  const std::string at = " at tests/lazy/ExplainTest.cpp:";
  const std::string words = explained([&] { run(true); });
  runtime::setMemoryBudget(0);
  EXPECT_EQ(words, "fl: a plan of 2 operators is new: the memory budget is 1048576" + at +
                       std::to_string(lines[1]) + " and was 0" + at + std::to_string(lines[0]) +
                       "\n");
  EXPECT_EQ(explained([&] { run(false); }), "") << "known";
}

TEST(Explain, NamesTheExtensionsOfTheCompiler) {
  int line = 0;
  const auto run = [&] {
    const Tensor x = numbers(13);
    line = __LINE__ + 1;
    (exp(x) + 1).toHostVector<float>();
  };
  explained(run);
  codegen::addPass(
      {.name = "ours", .version = 7, .after = "cse", .run = [](codegen::Compilation&) {}});
  const std::string words = explained(run);
  codegen::addedPasses().remove("ours");
  const std::string at = " at tests/lazy/ExplainTest.cpp:" + std::to_string(line);
  const std::string others = "rules\nmodels\npackers\norders\n";
  EXPECT_EQ(words, "fl: a plan of 2 operators is new: the compiler's extensions" + at +
                       " are\nours 7\n" + others + "and" + at + " were\n" + others + "\n");
  EXPECT_THAT(explained(run), HasSubstr("its plan was dropped: too many others, or extensions, "
                                        "came after it"));
}

TEST(Explain, ComparesWithTheNearestPlan) {
  const auto run = [](bool cosine, Dim length) {
    const Tensor x = numbers(length);
    (tanh(cosine ? cos(x) : sin(x)) + x).toHostVector<float>();
  };
  explained([&] { run(true, 17), run(false, 19); });
  EXPECT_THAT(explained([&] { run(false, 17); }), HasSubstr("operator 0 is\n  %0 = sin"));
}

}  // namespace
}  // namespace fl::testing
