// Lifetimes, the order that lowers the peak, and budgets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "fl/base/Flags.h"
#include "fl/codegen/Compilation.h"
#include "fl/ir/Text.h"
#include "fl/kernel/Schedule.h"
#include "fl/planner/Memory.h"
#include "fl/planner/Order.h"
#include "fl/planner/Planner.h"
#include "tests/ErrorOf.h"
#include "tests/Seed.h"
#include "tests/planner/Programs.h"

namespace fl::testing {
namespace {

std::string logFile() { return ::testing::TempDir() + "/memory.log"; }

// The log opens its file at the first message, so this comes first.
const bool logs = [] {
  flags().log = "3," + logFile();
  return true;
}();

TEST(Lifetimes, SpanFirstToLastUse) {
  ir::Schedule schedule = ir::parseSchedule(R"(schedule @s arena=0 bound=0 {
  parameter f32[16]
  output f32[16]
  temporary bytes=64 first=0 last=9 offset=0
  temporary bytes=128 first=0 last=9 offset=0
  temporary bytes=256 first=0 last=9 offset=0
  kernel @k0 rank=1 reduced=[] {
    operand input f32 [1]
    operand output f32 [1]
    %0 = load 0 : f32
    stage { store 1 %0 }
  }
  launch 0 extents=[16] operands(p0+0[1], t0+0[1]) numbers=[]
  launch 0 extents=[16] operands(t0+0[1], t1+0[1]) numbers=[]
  launch 0 extents=[16] operands(t1+0[1], t2+0[1]) numbers=[]
  launch 0 extents=[16] operands(t0+0[1], t2+0[1]) numbers=[]
  launch 0 extents=[16] operands(t2+0[1], o0+0[1]) numbers=[]
})");
  planner::computeLifetimes(&schedule);
  const auto& t = schedule.temporaries;
  EXPECT_EQ(std::pair(t[0].first, t[0].last), std::pair(0, 3));
  EXPECT_EQ(std::pair(t[1].first, t[1].last), std::pair(1, 2));
  EXPECT_EQ(std::pair(t[2].first, t[2].last), std::pair(2, 4));
  EXPECT_EQ(schedule.arenaBound, 64u + 128 + 256);
  const auto buffers = ir::stepBuffers(schedule, schedule.steps[1]);
  using Space = ir::BufferRef::Space;
  EXPECT_THAT(buffers.reads, ::testing::ElementsAre(ir::BufferRef{Space::Temporary, 0}));
  EXPECT_THAT(buffers.writes, ::testing::ElementsAre(ir::BufferRef{Space::Temporary, 1}));
}

// Everything is empty, so that no step is left to use the temporary between the products.
TEST(Lifetimes, OfSchedulesWithoutSteps) {
  ir::Graph graph;
  const ir::ValueId x = graph.addParameter({{dtype::f32, Shape({0, 3})}});
  const ir::ValueId y = graph.addParameter({{dtype::f32, Shape({3, 3})}});
  const ir::ValueId product = graph.addNode(ir::Op::Matmul, {x, y}, {0, 0, 0});
  graph.setResults({graph.addNode(ir::Op::Matmul, {product, y}, {0, 0, 0})});
  const ir::Schedule schedule = codegen::compile(graph, {.verify = true}).schedule;
  EXPECT_TRUE(schedule.steps.empty());
  EXPECT_EQ(schedule.temporaries.size(), 1u);
  EXPECT_EQ(schedule.arenaBytes, 0u);
}

// Each runs what a step needs before it, and has the peak that it says. The greedy one is
// lower than the recorded one at times, and depth first lower than that.
TEST(Order, EachKeepsWhatStepsNeed) {
  std::mt19937_64 random(testSeed(10));
  std::map<std::string, int> wins;
  for (int program = 0; program < 300; ++program) {
    const ir::Schedule recorded =
        codegen::compile(randomProducts(random), {.stopAfter = "build", .verify = true}).schedule;
    const std::vector<planner::Order> orders = planner::ordersOf(recorded);
    std::vector<int64_t> peaks;
    for (const planner::Order& order : orders) {
      ir::Schedule ordered = recorded;
      planner::reorder(order, &ordered);
      ASSERT_EQ(ordered.steps.size(), recorded.steps.size());
      ASSERT_NO_THROW(ir::verifySteps(ordered)) << order.name;
      ASSERT_EQ(static_cast<int64_t>(ordered.arenaBound), order.peak) << order.name;
      peaks.push_back(order.peak);
    }
    // Over the recorded order, and over the greedy one.
    for (size_t i = 1; i < orders.size(); ++i) {
      wins[orders[i].name] += peaks[i] < peaks[i == 1 ? 0 : 1];
    }
  }
  for (const char* name : {"greedy", "breadth first", "depth first"}) {
    EXPECT_GT(wins[name], 0) << name;
  }
}

TEST(Order, AllAreTriedOfThousandsOfSteps) {
  const ir::Schedule recorded =
      codegen::compile(deepGraph(5000, 4), {.stopAfter = "build"}).schedule;
  ASSERT_EQ(recorded.steps.size(), 10'000u);
  std::vector<std::string> names;
  for (const planner::Order& order : planner::ordersOf(recorded)) names.push_back(order.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"recorded", "greedy", "breadth first", "depth first"}));
  ir::Schedule larger = codegen::compile(deepGraph(30'000, 4), {.stopAfter = "build"}).schedule;
  EXPECT_EQ(planner::ordersOf(larger).size(), 1u) << "takes too long";
  planner::orderSteps(&larger);
  std::ifstream file(logFile());
  std::string last;
  for (std::string line; std::getline(file, line);) last = line;
  EXPECT_EQ(last, "bytes alive at most: recorded 1920064, and no other of so many uses");
}

// A level of 20 steps, in strips of eight: what they make is added up as it comes.
TEST(Order, BreadthFirstTakesAWideLevelInStrips) {
  ir::Graph graph;
  const ir::ValueId w = graph.addParameter({{dtype::f32, Shape({16, 16})}});
  const ir::ValueId x = graph.addParameter({{dtype::f32, Shape({16, 16})}});
  std::vector<ir::ValueId> level, next;
  for (int i = 0; i < 20; ++i) level.push_back(graph.addNode(ir::Op::Matmul, {w, x}, {0, 0, 0}));
  for (const ir::ValueId value : level) {
    next.push_back(graph.addNode(ir::Op::Matmul, {w, value}, {0, 0, 0}));
  }
  graph.setResults(next);
  const ir::Schedule recorded =
      codegen::compile(graph, {.skip = "cse", .stopAfter = "build"}).schedule;
  ASSERT_EQ(recorded.steps.size(), 40u);
  const std::vector<planner::Order> orders = planner::ordersOf(recorded);
  const auto strips = std::ranges::find(orders, "breadth first", &planner::Order::name);
  ASSERT_NE(strips, orders.end());
  EXPECT_EQ(orders[0].peak, 20 * 1024);
  EXPECT_EQ(strips->peak, 8 * 1024);
}

// openxla/xla#35719 (row E1): all large values of an unrolled loop became alive before the first
// was used. Here they are even recorded so, and two are alive at a time at most.
TEST(Order, E1AnUnrolledLoopKeepsOneStepAlive) {
  constexpr int kSteps = 100;
  constexpr size_t kLarge = 100 * 100 * sizeof(float);
  ir::Graph graph;
  const ir::ValueId v = graph.addParameter({{dtype::f32, Shape({4, 100})}});
  const ir::ValueId w = graph.addParameter({{dtype::f32, Shape({100, 8})}});
  std::vector<ir::ValueId> inputs, large, small;
  for (int i = 0; i < kSteps; ++i) {
    inputs.push_back(graph.addParameter({{dtype::f32, Shape({8, 100})}}));
  }
  for (const ir::ValueId x : inputs) {
    large.push_back(graph.addNode(ir::Op::Matmul, {w, x}, {0, 0, 0}));
  }
  for (const ir::ValueId value : large) {
    small.push_back(graph.addNode(ir::Op::Matmul, {v, value}, {0, 0, 0}));
  }
  graph.setResults(small);
  const ir::Schedule plan = codegen::compile(graph, {.verify = true}).schedule;
  EXPECT_EQ(plan.recordedBound, kSteps * kLarge);
  EXPECT_LE(plan.arenaBytes, 2 * kLarge);
  EXPECT_EQ(plan.arenaBytes, plan.arenaBound);
}

TEST(Order, NeverRaisesTheBound) {
  std::mt19937_64 random(testSeed(7));
  int lowered = 0;
  for (int program = 0; program < 300; ++program) {
    const ir::Graph graph = randomProducts(random);
    const auto recorded = codegen::compile(graph, {.stopAfter = "build", .verify = true}).schedule;
    const auto ordered = codegen::compile(graph, {.verify = true}).schedule;
    EXPECT_EQ(ordered.steps.size(), recorded.steps.size());
    EXPECT_LE(ordered.arenaBound, recorded.arenaBound);
    EXPECT_GE(ordered.arenaBytes, ordered.arenaBound);
    lowered += ordered.arenaBound < recorded.arenaBound;
  }
  EXPECT_GT(lowered, 0);
}

// Of `count` vectors a number each, which is kept as well and of which another one is made for the
// vector's update; and beside them a product that takes 4 * `width`^2 bytes.
ir::Graph graphOfNumbers(int count, int width) {
  const std::string matrix = absl::StrCat("f32[", width, ",", width, "]");
  std::string head = absl::StrCat("graph @f(%k: number f32, %w: ", matrix), body, results = "%q";
  absl::StrAppend(&body, "  %p = matmul %w, %w : ", matrix, "\n  %q = matmul %p, %w : ", matrix,
                  "\n");
  for (int i = 0; i < count; ++i) {
    const std::string vector = absl::StrCat("f32[", 40 + i, "]");
    absl::StrAppend(&head, ", %g", i, ": ", vector, ", %s", i, ": f32[]");
    absl::StrAppend(&body, "  %a", i, " = mul %g", i, ", %g", i, " : ", vector, "\n  %b", i,
                    " = sum %a", i, " {axes=[0]} : f32[]\n  %c", i, " = mul %s", i,
                    ", %k : f32[]\n  %d", i, " = add %c", i, ", %b", i, " : f32[]\n  %e", i,
                    " = sqrt %d", i, " : f32[]\n  %f", i, " = div %g", i, ", %e", i, " : ", vector,
                    "\n");
    absl::StrAppend(&results, ", %d", i, ", %f", i);
  }
  return ir::parseGraph(absl::StrCat(head, ") {\n", body, "  return ", results, "\n}"));
}

// Launches that run together keep all of their numbers alive: as far as the recorded order, with
// the product, takes as much memory.
TEST(Join, NeverRaisesTheBound) {
  std::vector<size_t> launches;
  for (const int width : {4, 24, 64}) {
    const ir::Schedule plan =
        codegen::compile(graphOfNumbers(50, width), {.verify = true}).schedule;
    EXPECT_LE(plan.arenaBound, plan.recordedBound) << width;
    // Neighbours of one kernel run as one.
    std::vector<int> kernels;
    for (const ir::Step& step : plan.steps) {
      const auto* launch = std::get_if<ir::LaunchStep>(&step);
      if (launch && (kernels.empty() || kernels.back() != launch->kernel)) {
        kernels.push_back(launch->kernel);
      }
    }
    launches.push_back(kernels.size());
    const auto roomy =
        codegen::compile(graphOfNumbers(50, width), {.budget = 1 << 30, .verify = true}).schedule;
    EXPECT_LE(roomy.arenaBound, roomy.recordedBound) << width << ", within a budget";
  }
  EXPECT_EQ(launches, (std::vector<size_t>{150, 27, 3}));
}

// ---- Budgets ----

// What a step writes in place is not what steps before it read.
TEST(Budget, ComputesNothingOfWhatIsOverwritten) {
  const char* const kGraphs[] = {
      R"(graph @f(%x: f32[8,100], %w: f32[100,8], %v: f32[100,100], %y: f32[96,96], %s: number s64) {
  %0 = matmul %w, %x : f32[100,100]
  %1 = matmul %v, %0 : f32[100,100]
  %2 = update %0, %y, %s, %s {rank=2, strides=[1,1]} : f32[100,100]
  %3 = matmul %v, %1 : f32[100,100]
  %4 = matmul %v, %3 : f32[100,100]
  %5 = matmul %4, %1 : f32[100,100]
  return %2, %5
})",
      R"(graph @f(%x: f32[8,100], %w: f32[100,8], %v: f32[100,100], %y: f32[96,96], %s: number s64, %q: f32[4,100]) {
  %0 = matmul %w, %x : f32[100,100]
  %1 = matmul %v, %0 : f32[100,100]
  %2 = update %0, %y, %s, %s {rank=2, strides=[1,1]} : f32[100,100]
  %3 = matmul %v, %1 : f32[100,100]
  %4 = matmul %v, %3 : f32[100,100]
  %5 = matmul %q, %4 : f32[4,100]
  %6 = matmul %5, %1 : f32[4,100]
  %7 = matmul %6, %2 : f32[4,100]
  return %7
})"};
  for (const char* text : kGraphs) {
    const ir::Graph graph = ir::parseGraph(text);
    const ir::Schedule whole = codegen::compile(graph, {.verify = true}).schedule;
    const Results want = run(whole);
    for (size_t budget = whole.arenaBytes; budget > 1000; budget -= 1000) {
      try {
        ASSERT_TRUE(run(codegen::compile(graph, {.budget = budget, .verify = true}).schedule) ==
                    want)
            << text << budget;
      } catch (const planner::OverBudget&) {
        break;
      }
    }
  }
}

// No step makes it.
TEST(Budget, TakesEmptyValues) {
  const ir::Graph graph =
      ir::parseGraph(R"(graph @f(%a: f32[100,0], %b: f32[0,100], %v: f32[100,100]) {
  %0 = exp %a : f32[100,0]
  %1 = matmul %0, %b : f32[100,100]
  %2 = matmul %v, %1 : f32[100,100]
  %3 = matmul %v, %2 : f32[100,100]
  %4 = matmul %v, %3 : f32[100,100]
  %5 = matmul %4, %1 : f32[100,100]
  return %5
})");
  const ir::Schedule within = codegen::compile(graph, {.budget = 100000, .verify = true}).schedule;
  EXPECT_LE(within.arenaBytes, 100000u);
}

// Whether by a budget or all that is possible, what is computed again has the same bits.
TEST(Budget, IsMetOrRefusedAndChangesNoResult) {
  std::mt19937_64 random(testSeed(9));
  int met = 0, refused = 0, recomputed = 0, trimmed = 0;
  for (int program = 0; program < 200; ++program) {
    const ir::Graph graph = randomProducts(random);
    const ir::Schedule whole = codegen::compile(graph, {.verify = true}).schedule;
    const Results want = run(whole);
    const ir::Schedule all = codegen::compile(graph, {.trimAll = true, .verify = true}).schedule;
    ASSERT_EQ(whole.recomputed, 0);
    ASSERT_EQ(all.steps.size(), whole.steps.size() + all.recomputed);
    ASSERT_TRUE(run(all) == want) << "program " << program;
    recomputed += all.recomputed;
    trimmed += all.recomputed > 0;
    for (const size_t percent : {90, 75, 60, 45}) {
      const size_t budget = whole.arenaBytes * percent / 100;
      if (budget == 0) {
        continue;
      }
      try {
        const ir::Schedule within =
            codegen::compile(graph, {.budget = budget, .verify = true}).schedule;
        ASSERT_LE(within.arenaBytes, budget);
        ASSERT_GE(within.steps.size(), whole.steps.size());
        ASSERT_TRUE(run(within) == want) << "program " << program;
        ++met;
      } catch (const planner::OverBudget& error) {
        ASSERT_THAT(error.what(), ::testing::HasSubstr("do not fit the budget of " +
                                                       std::to_string(budget) + " bytes: "));
        ++refused;
      }
    }
  }
  EXPECT_GT(met, 50);
  EXPECT_GT(refused, 50);
  EXPECT_GT(recomputed, 1000);
  EXPECT_GT(trimmed, 150);
}

// Two products make one value, of which a call reads a part: both run again for the last reader.
TEST(Budget, ComputesPartsAgain) {
  const ir::Graph graph = ir::parseGraph(
      R"(graph @f(%x: f32[8,100], %w: f32[100,8], %v: f32[100,100], %s: number s64, %t: number s64) {
  %0 = matmul %w, %x : f32[100,100]
  %1 = matmul %v, %v : f32[100,100]
  %2 = concatenate %0, %1 {axis=1} : f32[100,200]
  %3 = slice %2, %s, %t {rank=2, sizesThenStrides=[100,100,1,1]} : f32[100,100]
  %4 = matmul %v, %3 : f32[100,100]
  %5 = matmul %v, %4 : f32[100,100]
  %6 = matmul %v, %5 : f32[100,100]
  %7 = matmul %6, %2 : f32[100,200]
  return %7
})");
  const ir::Schedule whole = codegen::compile(graph, {.verify = true}).schedule;
  EXPECT_EQ(whole.arenaBytes, 160'000u);
  EXPECT_EQ(whole.steps.size(), 6u) << "nothing is copied";
  const ir::Schedule within = codegen::compile(graph, {.budget = 120'000, .verify = true}).schedule;
  EXPECT_EQ(within.arenaBytes, 120'000u);
  EXPECT_EQ(within.recomputed, 2);
  EXPECT_TRUE(run(within) == run(whole));
}

// Row E5: of a chain as much comes back as its values exceed the budget, one step each.
TEST(Budget, E5ComputesAChainAgainOnce) {
  for (const bool isForward : {false, true}) {
    for (const int depth : {200, 2500, 20'000}) {
      const ir::Graph graph = deepGraph(depth, 64, isForward);
      const size_t whole = codegen::compile(graph, {.skip = "budget"}).schedule.arenaBytes;
      for (const size_t percent : {98, 91, 75, 50}) {
        const size_t budget = whole * percent / 100;
        const ir::Schedule within = codegen::compile(graph, {.budget = budget}).schedule;
        EXPECT_LE(within.arenaBytes, budget);
        EXPECT_NEAR(within.recomputed, depth * (100.0 - static_cast<double>(percent)) / 100, 3)
            << depth << " at " << percent;
      }
    }
  }
}

// What a step writes beside a result is never computed again. Here that dies early, and what is
// made of it has to stay, but not what is made of that.
TEST(Budget, ComputesAgainWhatIsMadeOfWhatStays) {
  ir::Graph graph;
  const ir::ValueType type = {dtype::f32, Shape({16, 16})};
  const ir::ValueId w = graph.addParameter({type}), x = graph.addParameter({type});
  const ir::ValueId held = graph.addNode(ir::Op::Exp, {x}, {});
  std::vector<ir::ValueId> values = {graph.addNode(ir::Op::Sin, {held}, {})};
  const auto multiply = [&](ir::ValueId a, ir::ValueId b) {
    return graph.addNode(ir::Op::Sin, {graph.addNode(ir::Op::Matmul, {a, b}, {0, 0, 0})}, {});
  };
  for (int i = 0; i < 100; ++i) values.push_back(multiply(w, values.back()));
  ir::ValueId back = values.back();
  for (size_t i = values.size(); --i > 0;) back = multiply(back, values[i]);
  graph.setResults({back, held});
  const ir::Schedule whole = codegen::compile(graph, {.verify = true}).schedule;
  const Results want = run(whole);
  for (const size_t percent : {98, 75, 50, 25}) {
    const size_t budget = whole.arenaBytes * percent / 100;
    const ir::Schedule within =
        codegen::compile(graph, {.budget = budget, .verify = true}).schedule;
    EXPECT_LE(within.arenaBytes, budget);
    EXPECT_TRUE(run(within) == want) << percent;
  }
}

// Without recursion: of what each step of the way back reads, nothing is there at first.
TEST(Budget, ComputesAHundredThousandStepsAgain) {
  const ir::Graph graph = deepGraph(50'000, 4);
  const ir::Schedule all = codegen::compile(graph, {.trimAll = true}).schedule;
  EXPECT_GT(all.recomputed, 100'000);
  EXPECT_EQ(all.steps.size(), 100'000u + all.recomputed);
}

// The budget that is met, as the refusal of `budget` says.
size_t leastAsNamed(const ir::Graph& graph, size_t budget) {
  const std::string error =
      test::errorOf<planner::OverBudget>([&] { codegen::compile(graph, {.budget = budget}); });
  return metAsToldBy(planner::OverBudget(error));
}

// Where no search would end in time, a part of the values is kept, or a refusal names a budget that
// is met. Of values that are read again in the order in which they were made, few are enough. The
// sines of products are never infinite, and no two are equal.
TEST(Budget, E5IsMetOfLongChains) {
  for (const bool isForward : {false, true}) {
    const ir::Graph graph = deepGraph(10'000, 4, isForward, /*isOfSines=*/true);
    const ir::Schedule whole = codegen::compile(graph, {.skip = "budget"}).schedule;
    const Results want = run(whole);
    const auto expectMet = [&](size_t budget, int mostRecomputed) {
      const ir::Schedule within = codegen::compile(graph, {.budget = budget}).schedule;
      EXPECT_LE(within.arenaBytes, budget);
      EXPECT_LE(within.recomputed, mostRecomputed);
      EXPECT_TRUE(run(within) == want) << budget;
    };
    expectMet(whole.arenaBytes / 33, 20'000);
    expectMet(isForward ? whole.arenaBytes / 1000 : 14'000, 20'000);
    if (isForward) continue;
    const size_t least = leastAsNamed(graph, 3'000);
    EXPECT_LE(least, 5'500u);
    expectMet(least, 40'000);
  }
}

// What values take is not found afresh for each that is dropped: a bounded search gets far.
TEST(Budget, IsMetWhereMuchHangsTogether) {
  const ir::Graph graph = gridGraph();
  const ir::Schedule whole = codegen::compile(graph, {.verify = true}).schedule;
  EXPECT_EQ(whole.arenaBytes, 820'224u);
  const size_t budget = whole.arenaBytes * 11 / 100;
  const ir::Schedule within = codegen::compile(graph, {.budget = budget, .verify = true}).schedule;
  EXPECT_LE(within.arenaBytes, budget);
  EXPECT_LE(within.recomputed, 2500);
  EXPECT_TRUE(run(within) == run(whole));
  // Refusals name what is near that, however many tries of less are given up.
  const size_t least = leastAsNamed(graph, whole.arenaBytes * 8 / 100);
  EXPECT_LE(least, 90'000u);
  EXPECT_LE(codegen::compile(graph, {.budget = least}).schedule.arenaBytes, least);
}

TEST(Budget, RefusalsNameOneThatIsMet) {
  std::mt19937_64 random(testSeed(17));
  int refused = 0;
  for (int program = 0; program < 200; ++program) {
    const ir::Graph graph = randomProducts(random);
    const ir::Schedule whole = codegen::compile(graph, {}).schedule;
    for (const size_t percent : {1, 45, 75}) {
      try {
        codegen::compile(graph, {.budget = whole.arenaBytes * percent / 100 + 1});
      } catch (const planner::OverBudget& refusal) {
        const size_t budget = metAsToldBy(refusal);
        EXPECT_LE(budget, whole.arenaBytes);
        EXPECT_LE(codegen::compile(graph, {.budget = budget}).schedule.arenaBytes, budget);
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100);
  // Not that of the whole, but one that is near the least.
  const ir::Graph chain = deepGraph(200, 64);
  const std::string error =
      test::errorOf<planner::OverBudget>([&] { codegen::compile(chain, {.budget = 30'000}); });
  EXPECT_THAT(error, ::testing::HasSubstr("do not fit the budget of 30000 bytes: 32768 are needed "
                                          "while matmul runs; a budget of "));
  const size_t budget = metAsToldBy(planner::OverBudget(error));
  EXPECT_LE(budget, 200'000u);  // of 3.3 MB
  EXPECT_LE(codegen::compile(chain, {.budget = budget}).schedule.arenaBytes, budget);
}

// Where many values are alive, they may fit a budget while what they are packed into does not.
TEST(Budget, RefusalsSayTheLeastArena) {
  std::mt19937_64 random(testSeed(17));
  int packed = 0;
  for (int program = 0; program < 40; ++program) {
    const ir::Graph graph = randomProducts(random, 600);
    const size_t whole = codegen::compile(graph, {}).schedule.arenaBytes;
    for (size_t percent = 40; percent < 100; percent += 5) {
      const size_t budget = whole * percent / 100 + 1;
      try {
        EXPECT_LE(codegen::compile(graph, {.budget = budget}).schedule.arenaBytes, budget);
      } catch (const planner::OverBudget& refusal) {
        const size_t least = leastAsToldBy(refusal);
        if (least == 0) continue;
        EXPECT_GT(least, budget);
        EXPECT_LE(least, metAsToldBy(refusal)) << refusal.what();
        ++packed;
      }
    }
  }
  EXPECT_GT(packed, 0);
}

// Of each layer the way back reads a product and a cheap map of it.
TEST(Budget, TrimsPlansOfThousandsOfSteps) {
  ir::Graph graph;
  const ir::ValueType type = {dtype::f32, Shape({256, 256})};
  const ir::ValueId w = graph.addParameter({type});
  std::vector<ir::ValueId> values = {graph.addParameter({type})};
  for (int i = 0; i < 1500; ++i) {
    values.push_back(graph.addNode(ir::Op::Matmul, {w, values.back()}, {0, 0, 0}));
    values.push_back(graph.addNode(ir::Op::Negative, {values.back()}, {}));
  }
  ir::ValueId back = w;
  for (size_t i = values.size(); i-- > 0;) {
    back = graph.addNode(ir::Op::Matmul, {back, values[i]}, {0, 0, 0});
  }
  graph.setResults({back});
  const ir::Schedule whole = codegen::compile(graph, {.skip = "budget"}).schedule;
  const ir::Schedule trimmed = codegen::compile(graph, {}).schedule;
  EXPECT_EQ(whole.steps.size(), 6001u);
  EXPECT_EQ(whole.recomputed, 0);
  EXPECT_GT(trimmed.recomputed, 100);
  EXPECT_LT(static_cast<double>(trimmed.arenaBytes), 0.95 * static_cast<double>(whole.arenaBytes));
}

TEST(Budget, TellsInItsTextWhatItComputesAgain) {
  const ir::Graph graph =
      ir::parseGraph(R"(graph @f(%x: f32[8,100], %w: f32[100,8], %v: f32[100,100]) {
  %0 = matmul %w, %x : f32[100,100]
  %1 = matmul %v, %0 : f32[100,100]
  %2 = matmul %v, %1 : f32[100,100]
  %3 = matmul %v, %2 : f32[100,100]
  %4 = matmul %3, %0 : f32[100,100]
  return %4
})");
  const ir::Schedule all = codegen::compile(graph, {.trimAll = true}).schedule;
  EXPECT_EQ(all.recomputed, 1);
  const std::string text = printSchedule(all, "s");
  EXPECT_THAT(text, ::testing::StartsWith(
                        "schedule @s arena=80000 bound=80000 recorded=120000 unplanned=160000 "
                        "recomputed=1 {\n"));
  EXPECT_EQ(ir::parseSchedule(text).recomputed, 1);
}

}  // namespace
}  // namespace fl::testing
