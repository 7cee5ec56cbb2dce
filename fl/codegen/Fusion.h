// The fusion plan: which nodes share a kernel. A decision as plain data; BuildSchedule.cpp applies
// it.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "fl/ir/Graph.h"
#include "fl/kernel/Kernel.h"
#include "fl/kernel/Strided.h"

namespace fl::codegen {

using ir::Access;
using ir::Graph;
using ir::Kind;
using ir::Node;
using ir::Op;
using ir::ValueId;

// Elements that follow one another where a kernel writes a part of another value: fewer fill none
// of its vectors, and are written elsewhere and copied.
inline constexpr Dim kShortestRun = ir::kLanes;

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
  // Values of other groups that this one computes again instead of reading them, ascending.
  std::vector<ir::ValueId> again;
};

// Of one of the group's nodes.
inline size_t position(const FusionGroup& group, ir::ValueId id) {
  return std::ranges::find(group.nodes, id) - group.nodes.begin();
}

struct FusionPlan {
  bool enabled = true;
  std::vector<ResolvedValue> values;  // one a value of the graph
  std::vector<bool> inlined;          // one a value: computed wherever it is read
  std::vector<int> groupOf;  // one a value; -1 for parameters, views and nodes that run alone
  std::vector<FusionGroup> groups;
};

// What a group that computes the values `again` of others reads to have `operand`: views of bases
// in memory, each seen as a value of the operand's shape. Numbers and indices are none.
struct GroupRead {
  ir::ValueId operand;
  ir::StridedLayout layout;  // in the operand's base
  bool operator==(const GroupRead&) const = default;
};
std::vector<GroupRead> readsOf(const ir::Graph& graph, const FusionPlan& plan,
                               const std::vector<ir::ValueId>& again, ir::ValueId operand);
// Calls f(id) for their operands.
template <class F>
void forEachRead(const ir::Graph& graph, const FusionPlan& plan,
                 const std::vector<ir::ValueId>& again, ir::ValueId operand, F&& f) {
  const ir::ValueId base = plan.values[operand].base;
  if (std::ranges::binary_search(again, base)) {
    for (const GroupRead& read : readsOf(graph, plan, again, operand)) f(read.operand);
  } else if (!graph.isNumber(base) && !plan.inlined[operand]) {
    f(operand);
  }
}
// The same reads with indices, whose layout is indexLayout(). None if strides cannot express one.
std::optional<std::vector<GroupRead>> findReads(const ir::Graph& graph, const FusionPlan& plan,
                                                const std::vector<ir::ValueId>& again,
                                                ir::ValueId operand);

// How the elements of `iota` are an index: the stride of each dimension.
ir::StridedLayout indexLayout(const ir::Node& iota);

// One a value: whether it is kept in memory, if a group computes it.
std::vector<bool> storedValues(const ir::Graph& graph, const FusionPlan& plan);

// Throws InternalError unless every member of a group is in it alone and once, behind what it reads
// there, with an element for each point of what its level says. Cycles among groups are found by
// the pass `build`.
void verify(const ir::Graph& graph, const FusionPlan& plan);

// All of them, each once, in ascending order.
std::vector<ir::ValueId> united(std::vector<ir::ValueId> some,
                                const std::vector<ir::ValueId>& others = {});

// The nodes of a group and what it computes again become another's, and it is left without any; and
// groups without nodes are none.
void moveGroup(FusionPlan* plan, int source, int target);
void dropEmptyGroups(FusionPlan* plan);

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
// True if what a kernel loads so can be swept by the group: the reduction tree is defined on merged
// axes.
bool mergesWhereReduced(const FusionGroup& group, const ir::Access& access);
// True if `node` reads operand `i` at places that data gives.
bool isLookedUp(const ir::Node& node, size_t i);

// True if the value's elements are all of its base's, in order.
bool sameElements(const ir::Graph& graph, const ResolvedValue& value, const Shape& shape);

// The group's space without the axes that are reduced.
Shape keptShape(const FusionGroup& group);

// The accesses that values of each level have in their own group.
ir::Access levelAccess(const FusionGroup& group, Level level);

}  // namespace fl::codegen
