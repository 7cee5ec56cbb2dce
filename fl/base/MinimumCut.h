// The cheapest way to part a network: every vertex goes to the source's side or to the sink's, and
// each edge from the first side to the second costs its capacity.
#pragma once

#include <cstdint>
#include <vector>

namespace fl {

class MinimumCut {
 public:
  static constexpr int kSource = 0, kSink = 1;
  static constexpr int64_t kNever = INT64_MAX / 2;

  int addVertex();
  void addEdge(int from, int to, int64_t capacity);

  // By vertex, whether it is on the source's side; of equally cheap ways, that with the fewest
  // there. Augments the shortest path (Edmonds and Karp), so that it ends after vertices * edges
  // of them at most.
  std::vector<bool> sourceSide();

 private:
  struct Edge {
    int to;
    int64_t left;
  };
  // The edge by which each vertex is reached from the source; -1 where none is left.
  std::vector<int> reach() const;

  std::vector<std::vector<int>> out_ = {{}, {}};
  std::vector<Edge> edges_;  // edge i ^ 1 goes back along edge i
};

}  // namespace fl
