// FL_CACHE=explain: why a plan is new, as its first difference from the nearest one before it.
#pragma once

#include <deque>
#include <string>

#include "fl/ir/Graph.h"

namespace fl::lazy {

// What of `now` `before` does not have, with the lines that recorded both; empty if they are equal.
std::string firstDifference(const ir::Graph& now, const ir::Graph& before);
// "%1 = exp %0 : f32[3]  // A.cpp:3": the first operator that reads a parameter.
std::string userOf(const ir::Graph& graph, ir::ValueId parameter);

class PlanHistory {
 public:
  // Says what of `graph` no earlier graph had, with the lines that recorded both; then remembers
  // it. The nearest graph is the one with the most equal operators in equal places, of the last
  // 256. Costs as much as comparing with each.
  std::string explain(const ir::Graph& graph);

 private:
  const ir::Graph* nearest(const ir::Graph& graph) const;

  std::deque<ir::Graph> known_;
};

}  // namespace fl::lazy
