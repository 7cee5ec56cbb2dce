// Budgets of devices with memory of their own: values that move to the host and back, in plans that
// run on the CPU, to the same bits.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "fl/codegen/Compilation.h"
#include "tests/planner/Programs.h"

namespace fl::testing {
namespace {

// A device that moves a byte to the host while it moves so many in its memory.
ir::Schedule planned(const ir::Graph& graph, size_t budget, double bytesAMove) {
  return codegen::compile(graph,
                          {.budget = budget, .device = {.bytesAMove = bytesAMove}, .verify = true})
      .schedule;
}

struct Moves {
  int toHost = 0, back = 0;
  bool operator==(const Moves&) const = default;
};
Moves movesOf(const ir::Schedule& schedule) {
  Moves moves;
  for (const ir::Step& step : schedule.steps) {
    const auto* call = std::get_if<ir::LibraryStep>(&step);
    if (!call || !isMove(schedule, *call)) continue;
    const bool toHost = schedule.temporaries[call->result.buffer.index].onHost;
    ++(toHost ? moves.toHost : moves.back);
    EXPECT_NE(schedule.temporaries[call->operands[0].buffer.index].onHost, toHost);
  }
  return moves;
}

void expectSameWithin(size_t budget, const ir::Graph& graph, const ir::Schedule& schedule) {
  EXPECT_LE(schedule.arenaBytes, budget);
  EXPECT_LE(schedule.arenaBound, schedule.arenaBytes);
  EXPECT_EQ(run(schedule), run(codegen::compile(graph, {}).schedule));
}

constexpr Dim kWidth = 64;
constexpr size_t kMatrix = kWidth * kWidth * sizeof(float);

// Eight products are made on the way there, and read on the way back. Where that begins it works on
// three matrices: one of the others is still there, and five have gone to the host.
TEST(Offload, MovesWhatIsDearToCompute) {
  const ir::Graph graph = deepGraph(8, kWidth);
  const ir::Schedule schedule = planned(graph, 4 * kMatrix, 0.01);
  expectSameWithin(4 * kMatrix, graph, schedule);
  const Moves moves = movesOf(schedule);
  EXPECT_EQ(moves, (Moves{5, 5}));
  EXPECT_EQ(schedule.recomputed, 0);
  EXPECT_EQ(schedule.steps.size(), 16u + 10);
}

TEST(Offload, ComputesAgainWhatIsDearToMove) {
  const ir::Graph graph = deepGraph(8, kWidth);
  const ir::Schedule schedule = planned(graph, 4 * kMatrix, 1e6);
  expectSameWithin(4 * kMatrix, graph, schedule);
  EXPECT_EQ(movesOf(schedule), Moves());
  EXPECT_GT(schedule.recomputed, 0);
}

// Trimming, which no budget asks for, moves nothing.
TEST(Offload, IsForABudget) {
  const ir::Graph graph = deepGraph(8, 512);
  EXPECT_EQ(movesOf(planned(graph, 0, 0.01)), Moves());
}

// A value that is read twice on the way back goes to the host once.
TEST(Offload, KeepsTheCopyOnTheHost) {
  const ir::Graph graph = ir::parseGraph(R"(graph @f(%w: f32[64,64], %x: f32[64,64]) {
    %0 = matmul %w, %x : f32[64,64]
    %1 = matmul %w, %0 : f32[64,64]
    %2 = matmul %1, %1 : f32[64,64]
    %3 = matmul %2, %1 : f32[64,64]
    %4 = matmul %3, %0 : f32[64,64]
    %5 = matmul %4, %4 : f32[64,64]
    %6 = matmul %5, %4 : f32[64,64]
    %7 = matmul %6, %0 : f32[64,64]
    return %7
  })");
  const ir::Schedule schedule = planned(graph, 3 * kMatrix, 0.01);
  expectSameWithin(3 * kMatrix, graph, schedule);
  const Moves moves = movesOf(schedule);
  EXPECT_EQ(moves.toHost, 1);
  EXPECT_EQ(moves.back, 2);
}

// To compute values of a grid again takes ever more others.
TEST(Offload, MeetsBudgetsThatComputingAgainDoesNot) {
  const ir::Graph graph = gridGraph();
  const size_t budget = 26 * 16 * 16 * sizeof(float);
  EXPECT_THROW(planned(graph, budget, 0), planner::OverBudget);
  expectSameWithin(budget, graph, planned(graph, budget, 64));
}

TEST(Offload, KeepsTheBitsOfRandomPrograms) {
  std::mt19937_64 random(7);
  Moves all;
  for (int i = 0; i < 100; ++i) {
    SCOPED_TRACE(i);
    const ir::Graph graph = randomProducts(random, /*tries=*/150);
    const double bytesAMove = std::pow(10.0, static_cast<int>(random() % 5) - 2);
    const size_t whole = codegen::compile(graph, {}).schedule.arenaBytes;
    try {
      const size_t budget = whole * (4 + random() % 5) / 10;
      const ir::Schedule schedule = planned(graph, budget, bytesAMove);
      expectSameWithin(budget, graph, schedule);
      const Moves moves = movesOf(schedule);
      all = {all.toHost + moves.toHost, all.back + moves.back};
      const std::string text = printSchedule(schedule, "s");
      EXPECT_EQ(printSchedule(ir::parseSchedule(text), "s"), text);
    } catch (const planner::OverBudget&) {  // what one step needs
    }
  }
  EXPECT_GT(all.toHost, 50);
  EXPECT_GE(all.back, all.toHost);
}

}  // namespace
}  // namespace fl::testing
