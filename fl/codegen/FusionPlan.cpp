// What a fusion plan says about values and accesses, and its text.
#include <algorithm>
#include <map>

#include "fl/base/Error.h"
#include "fl/base/Text.h"
#include "fl/codegen/Fusion.h"
#include "fl/codegen/FusionCost.h"
#include "fl/ir/Text.h"

namespace fl::codegen {

bool isLookedUp(const Node& node, size_t i) {
  return ir::opKind(node.op) == ir::Kind::Index && i == 0;
}

Access operandAccess(const Graph& graph, const FusionPlan& plan, const FusionGroup& group,
                     const Node& node, size_t i, Level level) {
  return operandAccess(graph, plan.values[node.operands[i]].layout, group, node, i, level);
}

Access operandAccess(const Graph& graph, const ir::StridedLayout& layout, const FusionGroup& group,
                     const Node& node, size_t i, Level level) {
  const Shape& shape = graph.type(node.operands[i]).shape;
  if (ir::opKind(node.op) == ir::Kind::Reduce) {
    Access access{layout.offset, {}};
    for (int d = 0; d < shape.ndim(); ++d)
      if (shape[d] != 1) access.strides.push_back(layout.strides[d]);
    return access;
  }
  if (isLookedUp(node, i)) {
    const ir::GatherAccess gather = ir::gatherAccess(layout, shape, node.attrs[0]);
    return groupAccess(group, node, level, gather.layout, gather.shape);
  }
  return groupAccess(group, node, level, layout, shape);
}

Access groupAccess(const FusionGroup& group, const Node& node, Level level,
                   const ir::StridedLayout& layout, const Shape& from) {
  const Shape& shape = node.type.shape;
  const Access wide = broadcastAccess(layout, from, shape);
  Access access{wide.offset, {}};
  int axis = 0;
  for (int i = 0; i < group.space.ndim(); ++i) {
    if (level == Level::Row && group.reduced[i]) {
      access.strides.push_back(0);
      continue;
    }
    while (shape[axis] == 1) ++axis;
    access.strides.push_back(wide.strides[axis++]);
  }
  return access;
}

bool mergesWhereReduced(const FusionGroup& group, const Access& access) {
  for (int a = 1; a < group.space.ndim(); ++a) {
    if (group.reduced[a] && group.reduced[a - 1] &&
        access.strides[a] != access.strides[a - 1] * group.space[a - 1]) {
      return false;
    }
  }
  return true;
}

std::vector<GroupRead> readsOf(const Graph& graph, const FusionPlan& plan,
                               const std::vector<ValueId>& again, ValueId operand) {
  std::optional<std::vector<GroupRead>> reads = findReads(graph, plan, again, operand);
  FL_INTERNAL_CHECK(reads, "reads have strides");
  std::erase_if(*reads, [&](const GroupRead& read) { return plan.inlined[read.operand]; });
  return std::move(*reads);
}

namespace {

// Values stand one on another by more paths than could be walked one by one.
struct ReadFinder {
  using Reads = std::optional<std::vector<GroupRead>>;

  const Reads& of(ValueId operand) {
    const auto found = known.find(operand);
    return found != known.end() ? found->second : known[operand] = find(operand);
  }

  Reads find(ValueId operand) {
    const ResolvedValue& value = plan.values[operand];
    if (graph.isNumber(value.base)) return Reads(std::in_place);
    if (plan.inlined[value.base]) return Reads({{operand, indexLayout(graph.node(value.base))}});
    if (!std::ranges::binary_search(again, value.base)) return Reads({{operand, value.layout}});
    const Shape& shape = graph.type(operand).shape;
    const Node& node = graph.node(value.base);
    if (!sameElements(graph, value, shape)) return std::nullopt;
    Reads reads(std::in_place);
    for (ValueId source : node.operands) {
      const Reads& its = of(source);
      if (!its) return std::nullopt;
      for (const auto& [read, layout] : *its) {
        Access wide = broadcastAccess(layout, graph.type(source).shape, node.type.shape);
        auto seen =
            ir::reshapedLayout({wide.offset, std::move(wide.strides)}, node.type.shape, shape);
        if (!seen) return std::nullopt;
        const GroupRead mine{read, std::move(*seen)};
        if (std::ranges::find(*reads, mine) == reads->end()) reads->push_back(mine);
      }
    }
    return reads;
  }

  const Graph& graph;
  const FusionPlan& plan;
  const std::vector<ValueId>& again;
  std::map<ValueId, Reads> known = {};
};

}  // namespace

std::optional<std::vector<GroupRead>> findReads(const Graph& graph, const FusionPlan& plan,
                                                const std::vector<ValueId>& again,
                                                ValueId operand) {
  return ReadFinder{graph, plan, again}.find(operand);
}

ir::StridedLayout indexLayout(const Node& iota) {
  ir::StridedLayout layout{{}, std::vector<Dim>(iota.type.shape.ndim(), 0)};
  if (!layout.strides.empty()) layout.strides[iota.attrs[1]] = 1;
  return layout;
}

std::vector<bool> storedValues(const Graph& graph, const FusionPlan& plan) {
  std::vector<bool> stored(graph.valueCount(), false);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const ValueId id = graph.idOfNode(i);
    const int group = plan.groupOf[id];
    if (ir::opKind(graph.node(id).op) == ir::Kind::View && plan.values[id].base != id) {
      continue;  // a view needs its base only where it is read itself
    }
    for (ValueId operand : graph.node(id).operands) {
      const ValueId base = plan.values[operand].base;
      if (group < 0) {
        stored[base] = true;
      } else if (plan.groupOf[base] != group) {
        forEachRead(graph, plan, plan.groups[group].again, operand,
                    [&](ValueId read) { stored[plan.values[read].base] = true; });
      }
    }
  }
  for (ValueId result : graph.results()) stored[plan.values[result].base] = true;
  return stored;
}

bool sameElements(const Graph& graph, const ResolvedValue& value, const Shape& shape) {
  return !graph.isNumber(value.base) && ir::isContiguous(value.layout, shape) &&
         shape.elements() == graph.type(value.base).shape.elements();
}

Shape keptShape(const FusionGroup& group) {
  Shape shape;
  for (int i = 0; i < group.space.ndim(); ++i)
    if (!group.reduced[i]) shape.get().push_back(group.space[i]);
  return shape;
}

Access levelAccess(const FusionGroup& group, Level level) {
  return level == Level::Row ? ir::keptAccess(group.space, group.reduced)
                             : ir::contiguousAccess(group.space);
}

void verify(const Graph& graph, const FusionPlan& plan) {
  const size_t count = graph.valueCount();
  FL_INTERNAL_CHECK(
      plan.values.size() == count && plan.inlined.size() == count && plan.groupOf.size() == count,
      "the fusion plan is of another graph");
  size_t members = 0;
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const FusionGroup& group = plan.groups[g];
    const size_t nodes = group.nodes.size();
    members += nodes;
    FL_INTERNAL_CHECK(nodes > 0 && group.levels.size() == nodes && group.sweeps.size() == nodes,
                      "group ", g, " needs a level and sweeps for each node");
    FL_INTERNAL_CHECK(static_cast<int>(group.reduced.size()) == group.space.ndim(), "group ", g,
                      " needs to say of each axis whether it is reduced");
    const Shape kept = keptShape(group);
    for (size_t i = 0; i < nodes; ++i) {
      const ValueId id = group.nodes[i];
      FL_INTERNAL_CHECK(plan.groupOf[id] == static_cast<int>(g), "value ", id, " is in group ", g,
                        " and in group ", plan.groupOf[id]);
      const Shape& points = group.levels[i] == Level::Row ? kept : group.space;
      FL_INTERNAL_CHECK(graph.type(id).shape.elements() == points.elements(), "value ", id,
                        " has no element for each point of group ", g);
      for (ValueId operand : graph.node(id).operands) {
        const ValueId base = plan.values[operand].base;
        FL_INTERNAL_CHECK(plan.groupOf[base] != plan.groupOf[id] || position(group, base) < i,
                          "value ", id, " stands ahead of what it reads in group ", g);
      }
    }
  }
  const auto outside = std::ranges::count_if(plan.groupOf, [](int group) { return group < 0; });
  FL_INTERNAL_CHECK(count - outside == members, "a value's group does not have it");
}

std::vector<ValueId> united(std::vector<ValueId> some, const std::vector<ValueId>& others) {
  some.insert(some.end(), others.begin(), others.end());
  std::ranges::sort(some);
  some.erase(std::ranges::unique(some).begin(), some.end());
  return some;
}

void moveGroup(FusionPlan* plan, int source, int target) {
  FusionGroup &from = plan->groups[source], &to = plan->groups[target];
  for (ValueId member : from.nodes) plan->groupOf[member] = target;
  to.nodes.insert(to.nodes.begin(), from.nodes.begin(), from.nodes.end());
  to.levels.insert(to.levels.begin(), from.levels.begin(), from.levels.end());
  to.sweeps.insert(to.sweeps.begin(), from.sweeps.begin(), from.sweeps.end());
  to.again = united(std::move(to.again), from.again);
  from.nodes.clear();
}

void dropEmptyGroups(FusionPlan* plan) {
  std::erase_if(plan->groups, [](const FusionGroup& group) { return group.nodes.empty(); });
  for (size_t i = 0; i < plan->groups.size(); ++i)
    for (ValueId member : plan->groups[i].nodes) plan->groupOf[member] = static_cast<int>(i);
}

std::string printFusion(const Graph& graph, const FusionPlan& plan) {
  const auto parameters = static_cast<ValueId>(graph.parameters().size());
  const std::vector<bool> stored = storedValues(graph, plan);
  std::string text;
  for (const FusionGroup& group : plan.groups) {
    std::vector<Dim> reduced;
    for (int i = 0; i < group.space.ndim(); ++i)
      if (group.reduced[i]) reduced.push_back(i);
    text += "// fuse space=" + group.space.toString() + " reduced=" + listToString(reduced) + ":";
    const auto append = [&](ValueId id) {
      text +=
          std::string(" ") + ir::opName(graph.node(id).op) + "%" + std::to_string(id - parameters);
    };
    std::ranges::for_each(group.nodes, append);
    if (!group.again.empty()) {
      text += "; again:";
      std::ranges::for_each(group.again, append);
    }
    text += "\n//   " + costOf(graph, plan, stored, group).toString() + "\n";
  }
  return text + printGraph(graph, "g", {.callSites = true});
}

}  // namespace fl::codegen
