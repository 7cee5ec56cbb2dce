// Which lookups of a schedule are known to be good (planner/Reuse.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fl/kernel/Schedule.h"
#include "fl/planner/Reuse.h"

namespace fl::testing {
namespace {

using ::testing::ElementsAre;

// Looks up indices of p1 by `first`, then all of them; a launch's lookup is of the given origin.
std::vector<bool> again(const std::string& first, int firstOrigin = 7, int lastOrigin = 7) {
  ir::Schedule schedule = ir::parseSchedule(
      "schedule @s arena=0 bound=0 {\n"
      "  parameter f32[30]\n"
      "  parameter s64[2,3]\n"
      "  output f32[6]\n"
      "  output f32[6]\n"
      "kernel @k0 rank=2 reduced=[] {\n"
      "  operand input s64 [*,*]\n"
      "  operand input f32 [0,0]\n"
      "  operand index s64 [0,0]\n"
      "  operand output f32 [1,*]\n"
      "  %0 = load 0 : s64\n"
      "  %1 = load 2 : s64\n"
      "  %2 = gather 1 %0, %0, %1 : f32\n"
      "  stage { store 3 %2 }\n"
      "}\n"
      "  launch 0 " +
      first + ", p0+0[0,0], 30[0,0], o0+0[1,2]) numbers=[]\n" +
      "  launch 0 extents=[2,3] operands(p1+0[1,2], p0+0[0,0], 30[0,0], o1+0[1,2]) numbers=[]\n"
      "}\n");
  std::get<ir::LaunchStep>(schedule.steps[0]).gathers = {firstOrigin};
  std::get<ir::LaunchStep>(schedule.steps[1]).gathers = {lastOrigin};
  return planner::looksUpAgain(schedule);
}

TEST(LookupsTest, AreKnownToBeGoodWhereAllIndicesHaveBeenLookedUp) {
  EXPECT_THAT(again("extents=[2,3] operands(p1+0[1,2]"), ElementsAre(false, true));
  EXPECT_THAT(again("extents=[3,2] operands(p1+0[2,1]"), ElementsAre(false, false));
  EXPECT_THAT(again("extents=[2,2] operands(p1+0[1,2]"), ElementsAre(false, false));
  EXPECT_THAT(again("extents=[2,2] operands(p1+2[1,2]"), ElementsAre(false, false));
  EXPECT_THAT(again("extents=[2,3] operands(p1+0[1,0]"), ElementsAre(false, false));
  EXPECT_THAT(again("extents=[2,3] operands(p1+0[1,1]"), ElementsAre(false, false));
}

TEST(LookupsTest, OfOtherOriginsAreNot) {
  EXPECT_THAT(again("extents=[2,3] operands(p1+0[1,2]", 7, 8), ElementsAre(false, false));
  EXPECT_THAT(again("extents=[2,3] operands(p1+0[1,2]", -1, -1), ElementsAre(false, false));
}

}  // namespace
}  // namespace fl::testing
