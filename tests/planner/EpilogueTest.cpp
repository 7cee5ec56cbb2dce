// What an epilogue does to the memory of the call that it follows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fl/kernel/Schedule.h"
#include "fl/planner/Planner.h"
#include "fl/planner/Reuse.h"
#include "tests/ErrorOf.h"

namespace fl::testing {
namespace {

// o0 = p0 p1; o1 = o0 + `addend`, of the size of all.
std::string schedule(const std::string& addend, const std::string& epilogue) {
  return "schedule @s arena=0 bound=0 {\n"
         "  parameter f32[8,8]\n"
         "  parameter f32[8,8]\n"
         "  parameter f32[8,8]\n"
         "  output f32[8,8]\n"
         "  output f32[8,8]\n"
         "kernel @k0 rank=1 reduced=[] {\n"
         "  operand input f32 [1]\n"
         "  operand input f32 [1]\n"
         "  operand output f32 [1]\n"
         "  %0 = load 0 : f32\n"
         "  %1 = load 1 : f32\n"
         "  %2 = add %0, %1 : f32\n"
         "  stage { store 2 %2 }\n"
         "}\n"
         "  library matmul (p0: f32[8,8], p1: f32[8,8]) -> o0: "
         "f32[8,8]\n"
         "  launch 0 extents=[64] operands(o0+0[1], " +
         addend + "+0[1], o1+0[1]) numbers=[]" + epilogue + "\n}\n";
}

ir::Schedule planned(const std::string& addend) {
  ir::Schedule schedule = ir::parseSchedule(testing::schedule(addend, ""));
  planner::attachEpilogues(&schedule);
  return schedule;
}

TEST(EpilogueTest, IsPartOfTheText) {
  const std::string text = schedule("p2", " epilogue");
  EXPECT_EQ(printSchedule(planned("p2"), "s"), text);
  EXPECT_EQ(printSchedule(ir::parseSchedule(text), "s"), text);
}

// Parts of the call still read the parameter while the epilogue writes.
TEST(EpilogueTest, WritesNotWhereTheCallReads) {
  using Parameters = std::vector<std::vector<int>>;
  const auto reusable = [](const std::string& addend, const std::string& epilogue) {
    return planner::reusableParameters(ir::parseSchedule(schedule(addend, epilogue)));
  };
  EXPECT_EQ(reusable("p2", " epilogue"), (Parameters{{}, {2}}));
  EXPECT_EQ(reusable("p1", ""), (Parameters{{}, {1}}));
  EXPECT_EQ(reusable("p1", " epilogue"), (Parameters{{}, {}}));
  // A launch of its own, which needs no new memory.
  EXPECT_EQ(printSchedule(planned("p1"), "s"), schedule("p1", ""));
}

TEST(EpilogueTest, KeepsTheOperandsOfTheCallAlive) {
  std::string text = schedule("p2", " epilogue");
  const auto replace = [&](const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  replace("arena=0 bound=0", "arena=256 bound=256");
  replace("kernel", "temporary bytes=256 first=0 last=1 offset=0\nkernel");
  replace("  library matmul",
          "  launch 0 extents=[64] operands(p0+0[1], p1+0[1], t0+0[1]) "
          "numbers=[]\n  library matmul");
  replace("(p0: f32[8,8]", "(t0: f32[8,8]");
  const auto error = [&] {
    return test::errorOf<std::exception>([&] { ir::parseSchedule(text); });
  };
  EXPECT_THAT(error(), ::testing::HasSubstr("temporary 0 is not alive at step 2"));
  replace("last=1", "last=2");
  EXPECT_EQ(error(), "");
}

}  // namespace
}  // namespace fl::testing
