// The fusion plan: which nodes share a kernel. A decision as plain data; BuildSchedule.cpp applies
// it.
#pragma once

#include <string>
#include <vector>

#include "fl/ir/Graph.h"
#include "fl/kernel/Strided.h"

namespace fl::codegen {

// Where a value is found: in the memory or registers of its base, a value that is no view.
struct ResolvedValue {
  ir::ValueId base = -1;
  ir::StridedLayout layout;  // of this value in the contiguous base
};

// How a node relates to its group's iteration space: Full nodes have an element for each point,
// Row nodes one for each combination of kept axes.
enum class Level : uint8_t { Full, Row };

struct FusionGroup {
  Shape space;                // without dimensions of size 1
  std::vector<bool> reduced;  // per axis; all false for a map
  std::vector<ir::ValueId> nodes;
  std::vector<Level> levels;  // one a node
  std::vector<int> sweeps;  // one a node: how many sweeps must have ended before its value is known
};

struct FusionPlan {
  bool enabled = true;
  std::vector<ResolvedValue> values;  // one a value of the graph
  std::vector<bool> inlined;          // one a value: computed wherever it is read
  std::vector<int> groupOf;  // one a value; -1 for parameters, views and nodes that run alone
  std::vector<FusionGroup> groups;
};

// The groups as comments in front of the graph, so that it parses back as one.
std::string printFusion(const ir::Graph& graph, const FusionPlan& plan);

// The access of a value of shape `shape` that `node` reads under the group's space.
ir::Access groupAccess(const FusionGroup& group, const ir::Node& node, Level level,
                       const ir::StridedLayout& layout, const Shape& shape);
// That of operand `i` of `node`, which reads it itself or, as a reduction, swept by the group. What
// a gather looks up is accessed as at index 0.
ir::Access operandAccess(const ir::Graph& graph, const FusionPlan& plan, const FusionGroup& group,
                         const ir::Node& node, size_t i, Level level);
// The same for another value of the operand's shape.
ir::Access operandAccess(const ir::Graph& graph, const ir::StridedLayout& layout,
                         const FusionGroup& group, const ir::Node& node, size_t i, Level level);
// True if `node` reads operand `i` at places that data gives.
bool isLookedUp(const ir::Node& node, size_t i);

// True if the value's elements are all of its base's, in order.
bool sameElements(const ir::Graph& graph, const ResolvedValue& value, const Shape& shape);

// The accesses that values of each level have in their own group.
ir::Access levelAccess(const FusionGroup& group, Level level);

}  // namespace fl::codegen
