// What a fusion plan says about values and accesses, and its text.
#include "fl/codegen/Fusion.h"
#include "fl/codegen/FusionCost.h"
#include "fl/ir/Text.h"

namespace fl::codegen {

using ir::Access;
using ir::Graph;
using ir::Node;
using ir::ValueId;

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
    for (int d = 0; d < shape.ndim(); ++d) {
      if (shape[d] != 1) {
        access.strides.push_back(layout.strides[d]);
      }
    }
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
    while (shape[axis] == 1) {
      ++axis;
    }
    access.strides.push_back(wide.strides[axis++]);
  }
  return access;
}

bool sameElements(const Graph& graph, const ResolvedValue& value, const Shape& shape) {
  return !graph.isNumber(value.base) && ir::isContiguous(value.layout, shape) &&
         shape.elements() == graph.type(value.base).shape.elements();
}

Access levelAccess(const FusionGroup& group, Level level) {
  Access access;
  Dim stride = 1;
  for (int i = 0; i < group.space.ndim(); ++i) {
    const bool skipped = level == Level::Row && group.reduced[i];
    access.strides.push_back(skipped ? 0 : stride);
    stride *= skipped ? 1 : group.space[i];
  }
  return access;
}

std::string printFusion(const Graph& graph, const FusionPlan& plan) {
  const auto parameters = static_cast<ValueId>(graph.parameters().size());
  const Uses uses(graph, plan);
  std::string text;
  for (const FusionGroup& group : plan.groups) {
    text += "// fuse space=" + group.space.toString() + " reduced=[";
    const char* separator = "";
    for (size_t i = 0; i < group.reduced.size(); ++i) {
      if (group.reduced[i]) {
        text += separator + std::to_string(i);
        separator = ",";
      }
    }
    text += "]:";
    for (ValueId id : group.nodes) {
      text +=
          std::string(" ") + ir::opName(graph.node(id).op) + "%" + std::to_string(id - parameters);
    }
    text += "\n//   " + costOf(graph, plan, uses, group).toString() + "\n";
  }
  return text + printGraph(graph, "g", {.callSites = true});
}

}  // namespace fl::codegen
