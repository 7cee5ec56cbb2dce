// Scratch memory of steps: a part of the plan, for its order, its budget and its arena.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "fl/codegen/Compilation.h"
#include "fl/ir/Text.h"
#include "fl/library/Library.h"
#include "tests/ErrorOf.h"
#include "tests/Seed.h"
#include "tests/planner/Programs.h"

namespace fl::testing {
namespace {

ir::ScratchBytes ofEachCall(size_t bytes) {
  return [bytes](const ir::Schedule& schedule, int step) {
    return std::holds_alternative<ir::LibraryStep>(schedule.steps[step]) ? bytes : 0;
  };
}

TEST(Scratch, IsATemporaryOfOneStep) {
  const ir::Graph graph = deepGraph(3, 16);
  const ir::Schedule without = codegen::compile(graph, {.verify = true}).schedule;
  const ir::Schedule schedule =
      codegen::compile(graph, {.device = {ofEachCall(1000)}, .verify = true}).schedule;
  ASSERT_EQ(schedule.steps.size(), 6u);
  for (int i = 0; i < std::ssize(schedule.steps); ++i) {
    const ir::Temporary& scratch = schedule.temporaries.at(ir::scratchOf(schedule.steps[i]));
    EXPECT_EQ(std::tuple(scratch.bytes, scratch.first, scratch.last), std::tuple(1024u, i, i));
  }
  EXPECT_EQ(schedule.arenaBound, without.arenaBound + 1024);
  EXPECT_EQ(schedule.arenaBytes, without.arenaBytes + 1024);
  EXPECT_EQ(schedule.recordedBound, without.recordedBound + 1024);
  EXPECT_EQ(schedule.unplannedBytes, without.unplannedBytes + 6 * 1024);
  const std::string text = printSchedule(schedule, "s");
  EXPECT_EQ(printSchedule(ir::parseSchedule(text), "s"), text);
  EXPECT_EQ(run(schedule), run(without));
}

// What needs much runs before much is alive.
TEST(Scratch, CountsInTheOrder) {
  const ir::Graph graph = ir::parseGraph(
      R"(graph @f(%x: f32[8,100], %w: f32[100,8], %v: f32[100,4], %s: f32[4,4]) {
  %0 = matmul %w, %x : f32[100,100]
  %1 = matmul %s, %s : f32[4,4]
  %2 = matmul %0, %v : f32[100,4]
  %3 = matmul %2, %1 : f32[100,4]
  return %3
})");
  const auto ofTheSmall = [](const ir::Schedule& schedule, int step) -> size_t {
    const auto& call = std::get<ir::LibraryStep>(schedule.steps[step]);
    return call.resultType.shape == Shape({4, 4}) ? 100'000 : 0;
  };
  const ir::Schedule schedule =
      codegen::compile(graph, {.device = {ofTheSmall}, .verify = true}).schedule;
  EXPECT_EQ(schedule.recordedBound, 40'000u + 64 + 100'032);
  EXPECT_EQ(schedule.arenaBound, 64u + 100'032);
  EXPECT_EQ(schedule.arenaBytes, 64u + 100'032);
}

TEST(Scratch, LivesAsLongAsTheEpilogue) {
  const ir::Graph graph = ir::parseGraph(R"(graph @f(%x: f32[16,16], %w: f32[16,16]) {
  %0 = matmul %w, %x : f32[16,16]
  %1 = negative %0 : f32[16,16]
  %2 = matmul %1, %x : f32[16,16]
  return %2
})");
  const ir::Schedule schedule =
      codegen::compile(graph, {.device = {ofEachCall(640)}, .verify = true}).schedule;
  ASSERT_EQ(schedule.steps.size(), 3u);
  ASSERT_TRUE(std::get<ir::LaunchStep>(schedule.steps[1]).epilogue);
  const ir::Temporary& scratch = schedule.temporaries.at(ir::scratchOf(schedule.steps[0]));
  EXPECT_EQ(std::pair(scratch.first, scratch.last), std::pair(0, 1));
  EXPECT_EQ(schedule.arenaBytes, 1024u + 640);
  // So does what is added to a plan that has its epilogues.
  ir::Schedule later = codegen::compile(graph, {.verify = true}).schedule;
  later.device = {ofEachCall(640)};
  EXPECT_TRUE(planner::addScratch(&later));
  EXPECT_FALSE(planner::addScratch(&later)) << "it has all that it wants";
  planner::packTemporaries(&later);
  ir::verify(later);
  EXPECT_EQ(later.temporaries.at(ir::scratchOf(later.steps[0])).last, 1);
  EXPECT_EQ(later.arenaBytes, 1024u + 640);
}

TEST(Scratch, ThatIsLargerThanABudgetIsRefused) {
  const ir::Graph graph = deepGraph(2, 16);
  const std::string error = test::errorOf<planner::OverBudget>(
      [&] { codegen::compile(graph, {.budget = 20'000, .device = {ofEachCall(50'000)}}); });
  EXPECT_THAT(error, ::testing::HasSubstr("do not fit the budget of 20000 bytes: "));
  EXPECT_THAT(error, ::testing::HasSubstr(" are needed while matmul runs; a budget of "));
  EXPECT_THAT(error, ::testing::HasSubstr("\n  50048 bytes of scratch memory of matmul"));
  const size_t budget = metAsToldBy(planner::OverBudget(error));
  EXPECT_GT(budget, 50'048u);
  EXPECT_LE(codegen::compile(graph, {.budget = budget, .device = {ofEachCall(50'000)}})
                .schedule.arenaBytes,
            budget);
}

// What is computed again has scratch memory again.
TEST(Scratch, IsWithinBudgets) {
  const ir::Graph graph = deepGraph(24, 16);
  const Results want = run(codegen::compile(graph, {}).schedule);
  const ir::Schedule whole = codegen::compile(graph, {.device = {ofEachCall(3000)}}).schedule;
  for (const size_t percent : {80, 60, 45}) {
    const size_t budget = whole.arenaBytes * percent / 100;
    ir::Schedule within =
        codegen::compile(graph, {.budget = budget, .device = {ofEachCall(3000)}, .verify = true})
            .schedule;
    EXPECT_LE(within.arenaBytes, budget);
    EXPECT_GT(within.recomputed, 0);
    for (int i = 0; i < std::ssize(within.steps); ++i) {
      const ir::Temporary& scratch = within.temporaries.at(ir::scratchOf(within.steps[i]));
      EXPECT_EQ(std::tuple(scratch.bytes, scratch.first, scratch.last), std::tuple(3008u, i, i));
    }
    EXPECT_FALSE(planner::addScratch(&within));
    EXPECT_EQ(run(within), want);
  }
}

TEST(Scratch, OfRandomProgramsOverlapsNothing) {
  std::mt19937_64 random(testSeed(18));
  const auto wanted = [](const ir::Schedule& schedule, int step) -> size_t {
    return stepBytes(schedule, schedule.steps[step]) % 7 * 3000;
  };
  for (int program = 0; program < 100; ++program) {
    const ir::Graph graph = randomProducts(random);
    const ir::Schedule without = codegen::compile(graph, {}).schedule;
    ir::Schedule with = codegen::compile(graph, {.device = {wanted}, .verify = true}).schedule;
    ASSERT_LE(with.arenaBound, with.arenaBytes);
    ASSERT_LE(with.arenaBound, with.recordedBound);
    size_t most = 0;
    for (int i = 0; i < std::ssize(with.steps); ++i) most = std::max(most, wanted(with, i));
    ASSERT_GE(with.arenaBound, most);
    ASSERT_FALSE(planner::addScratch(&with));
    ASSERT_EQ(run(with), run(without));
  }
}

// A convolution and a sort on the CPU.
TEST(Scratch, OfTheCpuIsItsLibrarys) {
  const ir::Graph graph = ir::parseGraph(
      R"(graph @f(%x: f32[32,32,16,4], %w: f32[3,3,16,16], %y: f32[1000]) {
  %0 = conv2d %x, %w {strideX=1, strideY=1, padX=1, padY=1, dilationX=1, dilationY=1, groups=1} : f32[32,32,16,4]
  %1 = argsort %y {axis=0, count=1000} : s64[1000]
  return %0, %1
})");
  const auto device = runtime::makeDevice("cpu");
  const ir::Schedule schedule =
      codegen::compile(graph, {.device = device->traits(), .verify = true}).schedule;
  size_t most = 0;
  for (const ir::Step& step : schedule.steps) {
    const auto& call = std::get<ir::LibraryStep>(step);
    const size_t bytes =
        library::prepareLibrary({call.op, call.attrs, call.operandTypes, call.resultType})
            ->scratchBytes();
    ASSERT_GT(bytes, 0u) << ir::opName(call.op);
    const ir::Temporary& scratch = schedule.temporaries.at(call.scratch);
    EXPECT_EQ(scratch.bytes, (bytes + 63) / 64 * 64);
    EXPECT_EQ(scratch.first, scratch.last);
    most = std::max(most, scratch.bytes);
  }
  EXPECT_EQ(schedule.temporaries.size(), 2u);
  EXPECT_EQ(schedule.arenaBytes, most) << "one after the other in the same place";
  // A plan that was made for no device gets it when it is loaded.
  runtime::KernelCache kernels;
  ir::Schedule without = codegen::compile(graph, {}).schedule;
  EXPECT_EQ(without.arenaBytes, 0u);
  EXPECT_EQ(device->load(without, &kernels)->schedule().arenaBytes, most);
}

}  // namespace
}  // namespace fl::testing
