// Where schedules begin, turn, end and join; their shapes are held against PyTorch's by
// ReferenceTest.cpp.
#include <gtest/gtest.h>

#include "fl/optim/optim.h"
#include "tests/ErrorOf.h"

namespace fl::test {
namespace {

TEST(LrSchedules, BeginAndEnd) {
  const LrSchedule steps = stepDecay(2, 3);
  EXPECT_DOUBLE_EQ(steps(2), 2);
  EXPECT_DOUBLE_EQ(steps(3), 0.2);
  EXPECT_DOUBLE_EQ(steps(8), 0.02);
  const LrSchedule cosine = cosineAnnealing(2, 10, 1);
  EXPECT_DOUBLE_EQ(cosine(0), 2);
  EXPECT_DOUBLE_EQ(cosine(5), 1.5);
  EXPECT_DOUBLE_EQ(cosine(10), 1);
  EXPECT_DOUBLE_EQ(cosine(1000), 1) << "it stays";
  const LrSchedule cycle = oneCycle(2, 21, 10 / 21.0, 10, 100);
  EXPECT_DOUBLE_EQ(cycle(0), 0.2);
  EXPECT_DOUBLE_EQ(cycle(9), 2);
  EXPECT_DOUBLE_EQ(cycle(20), 0.002);
  EXPECT_DOUBLE_EQ(cycle(1000), 0.002) << "it stays";
  EXPECT_DOUBLE_EQ(oneCycle(2, 10, 0.1)(0), 2) << "the warm-up is one step, at the peak";
}

TEST(LrSchedules, JoinAfterAWarmUp) {
  const LrSchedule schedule = linearWarmup(4, cosineAnnealing(2, 10));
  EXPECT_EQ(schedule(0), 0);
  EXPECT_DOUBLE_EQ(schedule(1), 0.5);
  EXPECT_DOUBLE_EQ(schedule(4), 2);
  EXPECT_DOUBLE_EQ(schedule(9), 1);
  EXPECT_NEAR(schedule(14), 0, 1e-15);
  EXPECT_DOUBLE_EQ(linearWarmup(4, stepDecay(2, 3), 0.5)(2), 1.5);
}

TEST(LrSchedules, Misuse) {
  EXPECT_EQ(errorOf([] { stepDecay(1, 0); })
                .find("stepDecay: the number of steps must be at "
                      "least 1, not 0"),
            0u);
  EXPECT_EQ(errorOf([] { cosineAnnealing(1, -2); }).find("cosineAnnealing: the number of steps"),
            0u);
  EXPECT_EQ(errorOf([] { linearWarmup(1, nullptr); }).find("linearWarmup: no schedule follows"),
            0u);
  EXPECT_EQ(errorOf([] { linearWarmup(0, stepDecay(1, 1)); }).find("linearWarmup: the number of"),
            0u);
  for (const double share : {0.05, 1.0}) {
    EXPECT_NE(errorOf([&] {
                oneCycle(1, 10, share);
              }).find("oneCycle: the peak must lie within the 10 steps, which a warm-up of "),
              std::string::npos);
  }
}

}  // namespace
}  // namespace fl::test
