// Packers against the best packing that exists, lifetimes, and the order that lowers the peak.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "fl/codegen/Compilation.h"
#include "fl/kernel/Schedule.h"
#include "fl/planner/Memory.h"
#include "tests/Seed.h"

namespace fl::testing {
namespace {

using planner::Interval;

bool together(const Interval& a, const Interval& b) {
  return a.first <= b.last && b.first <= a.last;
}

size_t arenaOf(const std::vector<Interval>& intervals, const std::vector<size_t>& offsets) {
  size_t bytes = 0;
  for (size_t i = 0; i < intervals.size(); ++i) {
    bytes = std::max(bytes, offsets[i] + intervals[i].bytes);
  }
  return bytes;
}

void expectApart(const std::vector<Interval>& intervals, const std::vector<size_t>& offsets) {
  ASSERT_EQ(offsets.size(), intervals.size());
  for (size_t i = 0; i < intervals.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const bool apart = offsets[i] + intervals[i].bytes <= offsets[j] ||
                         offsets[j] + intervals[j].bytes <= offsets[i];
      EXPECT_TRUE(apart || !together(intervals[i], intervals[j]))
          << j << " and " << i << " overlap";
    }
  }
}

size_t boundOf(const std::vector<Interval>& intervals) {
  size_t most = 0;
  for (const Interval& at : intervals) {
    size_t alive = 0;
    for (const Interval& other : intervals) {
      alive += other.first <= at.first && at.first <= other.last ? other.bytes : 0;
    }
    most = std::max(most, alive);
  }
  return most;
}

// The smallest arena. Placing the intervals of a best packing by rising offset, each as low as
// those placed before allow, gives a packing no larger; so the best over all orders is the optimum.
size_t smallestArena(const std::vector<Interval>& intervals) {
  std::vector<size_t> order(intervals.size());
  std::iota(order.begin(), order.end(), 0);
  size_t best = SIZE_MAX;
  do {
    std::vector<size_t> offsets(intervals.size(), 0);
    for (size_t k = 0; k < order.size(); ++k) {
      const size_t i = order[k];
      for (size_t l = 0; l < k; ++l) {
        const size_t j = order[l];
        if (together(intervals[i], intervals[j])) {
          offsets[i] = std::max(offsets[i], offsets[j] + intervals[j].bytes);
        }
      }
    }
    best = std::min(best, arenaOf(intervals, offsets));
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

std::vector<Interval> randomIntervals(std::mt19937_64& random, size_t count) {
  std::vector<Interval> intervals;
  for (size_t i = 0; i < count; ++i) {
    const int first = static_cast<int>(random() % 8);
    intervals.push_back({(1 + random() % 12) * 64, first, first + static_cast<int>(random() % 4)});
  }
  return intervals;
}

TEST(Packers, AreNearTheOptimum) {
  std::mt19937_64 random(testSeed(5));
  double ratios = 0;
  constexpr int kSets = 200;
  for (int set = 0; set < kSets; ++set) {
    const auto intervals = randomIntervals(random, 2 + set % 6);
    const auto bySize = planner::packBySize(intervals);
    const auto byBirth = planner::packByBirth(intervals);
    expectApart(intervals, bySize);
    expectApart(intervals, byBirth);
    const size_t best = std::min(arenaOf(intervals, bySize), arenaOf(intervals, byBirth));
    const size_t optimum = smallestArena(intervals);
    EXPECT_GE(best, optimum);
    EXPECT_GE(optimum, boundOf(intervals));
    ratios += static_cast<double>(best) / static_cast<double>(optimum);
  }
  EXPECT_LE(ratios / kSets, 1.1);
}

TEST(Packers, ManyIntervalsNeverOverlap) {
  std::mt19937_64 random(testSeed(6));
  for (int set = 0; set < 20; ++set) {
    std::vector<Interval> intervals;
    for (int i = 0; i < 300; ++i) {
      const int first = static_cast<int>(random() % 200);
      // Some are empty.
      intervals.push_back(
          {random() % 5 * 64 * (random() % 40), first, first + static_cast<int>(random() % 30)});
    }
    expectApart(intervals, planner::packBySize(intervals));
    expectApart(intervals, planner::packByBirth(intervals));
  }
}

TEST(Packers, TakeNothing) {
  EXPECT_TRUE(planner::packBySize({}).empty());
  EXPECT_TRUE(planner::packByBirth({}).empty());
}

// Each alone would waste where the other is best.
TEST(Packers, EachHasItsCase) {
  const std::vector<Interval> chain = {{400, 0, 1}, {800, 1, 2}, {480, 2, 3}};
  EXPECT_EQ(arenaOf(chain, planner::packByBirth(chain)), 1680u);
  EXPECT_EQ(arenaOf(chain, planner::packBySize(chain)), 1280u);
  EXPECT_EQ(boundOf(chain), 1280u);
}

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
  EXPECT_EQ(buffers.reads, (std::vector<ir::BufferRef>{{ir::BufferRef::Space::Temporary, 0}}));
  EXPECT_EQ(buffers.writes, (std::vector<ir::BufferRef>{{ir::BufferRef::Space::Temporary, 1}}));
}

// Everything is empty, so that no step is left to use the temporary between the products.
TEST(Lifetimes, OfSchedulesWithoutSteps) {
  ir::Graph graph;
  const ir::ValueId x = graph.addParameter({{dtype::f32, Shape({0, 3})}});
  const ir::ValueId y = graph.addParameter({{dtype::f32, Shape({3, 3})}});
  const ir::ValueId product = graph.addNode(ir::Op::Matmul, {x, y}, {0, 0});
  graph.setResults({graph.addNode(ir::Op::Matmul, {product, y}, {0, 0})});
  const ir::Schedule schedule = codegen::compile(graph, {.verify = true}).schedule;
  EXPECT_TRUE(schedule.steps.empty());
  EXPECT_EQ(schedule.temporaries.size(), 1u);
  EXPECT_EQ(schedule.arenaBytes, 0u);
}

// A random program of matrix products, which neither fuse nor simplify.
ir::Graph randomProducts(std::mt19937_64& random) {
  ir::Graph graph;
  static const Dim kSizes[] = {4, 16, 40, 100};
  std::vector<ir::ValueId> values;
  for (int i = 0; i < 4; ++i) {
    const Shape shape = {kSizes[random() % 4], kSizes[random() % 4]};
    values.push_back(graph.addParameter({{dtype::f32, shape}}));
  }
  for (int tried = 0; tried < 60; ++tried) {
    const ir::ValueId x = values[random() % values.size()], y = values[random() % values.size()];
    const Dim transposeX = static_cast<Dim>(random() % 2),
              transposeY = static_cast<Dim>(random() % 2);
    const Shape a = graph.type(x).shape, b = graph.type(y).shape;
    if (a[transposeX ? 0 : 1] == b[transposeY ? 1 : 0]) {
      values.push_back(graph.addNode(ir::Op::Matmul, {x, y}, {transposeX, transposeY}));
    }
  }
  graph.setResults({values.back(), values[values.size() / 2]});
  return graph;
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

}  // namespace
}  // namespace fl::testing
