// FL_CACHE=explain: the first difference of a new plan from the nearest one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fl/base/Flags.h"
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
                           "tests/lazy/ExplainTest.cpp:[0-9]+\n"));
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

}  // namespace
}  // namespace fl::testing
