#include <gtest/gtest.h>

#include <random>

#include "fl/base/MinimumCut.h"

namespace fl {
namespace {

constexpr int kSource = MinimumCut::kSource, kSink = MinimumCut::kSink;

struct Edge {
  int from, to;
  int64_t capacity;
};

int64_t costOf(const std::vector<Edge>& edges, const std::vector<bool>& side) {
  int64_t cost = 0;
  for (const Edge& edge : edges) {
    cost += side[edge.from] && !side[edge.to] ? edge.capacity : 0;
  }
  return cost;
}

TEST(MinimumCut, TakesTheFewestOfEquallyCheapSides) {
  MinimumCut cut;
  const int a = cut.addVertex(), b = cut.addVertex();
  cut.addEdge(kSource, a, 3);
  cut.addEdge(a, b, 5);
  cut.addEdge(b, kSink, 3);
  EXPECT_EQ(cut.sourceSide(), (std::vector<bool>{true, false, false, false}));
}

TEST(MinimumCut, NeverCutsWhatMayNotBe) {
  MinimumCut cut;
  const int a = cut.addVertex(), b = cut.addVertex();
  cut.addEdge(kSource, a, 7);
  cut.addEdge(a, b, MinimumCut::kNever);
  cut.addEdge(b, kSink, 8);
  EXPECT_EQ(cut.sourceSide(), (std::vector<bool>{true, false, false, false}));
  cut.addEdge(kSource, b, 2);
  EXPECT_EQ(cut.sourceSide(), (std::vector<bool>{true, false, true, true}));
}

// Against all ways to part small networks.
TEST(MinimumCut, IsTheCheapest) {
  constexpr unsigned kSeed = 20261122;
  constexpr int kVertices = 7;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 300; ++round) {
    MinimumCut cut;
    for (int v = 2; v < kVertices; ++v) {
      cut.addVertex();
    }
    std::vector<Edge> edges;
    for (int i = 0; i < 14; ++i) {
      const int from = static_cast<int>(random() % kVertices);
      edges.push_back(
          {from, static_cast<int>(random() % kVertices), static_cast<int64_t>(random() % 10)});
      cut.addEdge(edges.back().from, edges.back().to, edges.back().capacity);
    }
    int64_t least = MinimumCut::kNever;
    for (int choice = 0; choice < 1 << (kVertices - 2); ++choice) {
      std::vector<bool> side = {true, false};
      for (int v = 2; v < kVertices; ++v) {
        side.push_back(choice >> (v - 2) & 1);
      }
      least = std::min(least, costOf(edges, side));
    }
    const std::vector<bool> side = cut.sourceSide();
    EXPECT_TRUE(side[kSource] && !side[kSink]);
    EXPECT_EQ(costOf(edges, side), least) << "seed " << kSeed << ", round " << round;
  }
}

}  // namespace
}  // namespace fl
