// FL_CACHE=explain: why a plan is new, as its first difference from the nearest one before it.
#pragma once

#include <deque>
#include <string>

#include "fl/ir/Graph.h"

namespace fl::plans {

class PlanHistory {
 public:
  // Says what no earlier plan had of `graph`, else of what else its plan depends on, with the lines
  // that asked for both; then remembers it. The nearest plan is the one with the most equal
  // operators in equal places, of the last 256. Costs as much as comparing with each.
  std::string explain(const ir::Graph& graph, size_t budget);

 private:
  struct Known {
    ir::Graph graph;
    size_t budget;           // of memory
    std::string extensions;  // of the compiler
    CallSite site;
  };
  const Known* nearest(const Known& plan) const;
  static std::string firstDifference(const Known& now, const Known& before);

  std::deque<Known> known_;
};

}  // namespace fl::plans
