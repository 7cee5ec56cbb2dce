// What a kernel of a fusion plan costs, as a model of its nodes: what is printed, and its limits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fl/codegen/Fusion.h"

namespace fl::codegen {

// The most that a kernel loads: every load wants an address in a register.
inline constexpr size_t kMostLoads = 24;
// And that it computes: fusion looks at the nodes of a group again and again.
inline constexpr size_t kMostNodes = 64;

struct FusionCost {
  int64_t bytes = 0;        // read from memory and written to it, each element once
  int64_t recomputed = 0;   // operations beyond one for each element of each node
  int registers = 0;        // vectors alive at once, without those inside one operator
  double milliseconds = 0;  // of compiling it; measured on Zen 4
  std::string toString() const;
};

// The distinct values that a kernel of `nodes`, in ascending order, reads from memory where it
// computes the values `again` of others.
std::vector<ir::ValueId> loadsOf(const ir::Graph& graph, const FusionPlan& plan,
                                 const std::vector<ir::ValueId>& nodes,
                                 const std::vector<ir::ValueId>& again);
// Whether the rules that were added (Extensions.h) let nodes, in ascending order, share a kernel.
bool rulesAllow(const ir::Graph& graph, const std::vector<ir::ValueId>& nodes);
// By the largest model (Extensions.h). Nodes that several sweeps evaluate count once.
double compileMilliseconds(const ir::Graph& graph, const std::vector<ir::ValueId>& nodes,
                           size_t loads);
// All of a group's, `stored` by storedValues(). Linear in its nodes for each of its sweeps.
FusionCost costOf(const ir::Graph& graph, const FusionPlan& plan, const std::vector<bool>& stored,
                  const FusionGroup& group);

}  // namespace fl::codegen
