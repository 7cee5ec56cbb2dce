#include "fl/base/MinimumCut.h"

#include <algorithm>

namespace fl {

int MinimumCut::addVertex() {
  out_.emplace_back();
  return static_cast<int>(out_.size()) - 1;
}

void MinimumCut::addEdge(int from, int to, int64_t capacity) {
  out_[from].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({to, capacity});
  out_[to].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({from, 0});
}

std::vector<int> MinimumCut::reach() const {
  std::vector<int> by(out_.size(), -1);
  std::vector<int> queue = {kSource};
  for (size_t next = 0; next < queue.size(); ++next) {
    for (const int edge : out_[queue[next]]) {
      const auto& [to, left] = edges_[edge];
      if (left <= 0 || to == kSource || by[to] >= 0) continue;
      by[to] = edge;
      queue.push_back(to);
    }
  }
  return by;
}

std::vector<bool> MinimumCut::sourceSide() {
  std::vector<int> by = reach();
  for (; by[kSink] >= 0; by = reach()) {
    int64_t flow = kNever;
    for (int v = kSink; v != kSource; v = edges_[by[v] ^ 1].to)
      flow = std::min(flow, edges_[by[v]].left);
    for (int v = kSink; v != kSource; v = edges_[by[v] ^ 1].to) {
      edges_[by[v]].left -= flow;
      edges_[by[v] ^ 1].left += flow;
    }
  }
  std::vector<bool> side(out_.size());
  for (size_t v = 0; v < side.size(); ++v) side[v] = v == kSource || by[v] >= 0;
  return side;
}

}  // namespace fl
