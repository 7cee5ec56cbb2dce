#include <algorithm>

#include "fl/codegen/Fusion.h"
#include "fl/codegen/MoveRules.h"
#include "fl/ir/Rewrite.h"

namespace fl::codegen {
namespace {

using ir::Graph;
using ir::Kind;
using ir::Node;
using ir::Op;
using ir::ValueId;

// Each part is a launch.
constexpr size_t kMostParts = 8;

// By value, whether all that reads it, or what maps and views make of it, is fused with nothing.
std::vector<bool> endInMemory(const Graph& graph) {
  std::vector<bool> ends(graph.valueCount(), true);
  for (size_t i = graph.nodes().size(); i-- > 0;) {
    const Node& node = graph.nodes()[i];
    const Kind kind = ir::opKind(node.op);
    const bool isPassed = ir::isElementwise(node.op) || kind == Kind::View;
    const bool end =
        isPassed ? ends[graph.idOfNode(i)] : kind != Kind::Reduce && kind != Kind::Index;
    for (const ValueId operand : node.operands) ends[operand] = ends[operand] && end;
  }
  return ends;
}

// Whether a part of the value is read in memory, not computed.
bool isInMemory(const Graph& graph, ValueId id) {
  while (!graph.isParameter(id) && ir::opKind(graph.node(id).op) == Kind::View)
    id = graph.node(id).operands[0];
  if (graph.isParameter(id)) return !graph.isNumber(id);
  const Kind kind = ir::opKind(graph.node(id).op);
  return !ir::isElementwise(graph.node(id).op) && kind != Kind::Source && kind != Kind::Random;
}

// Whether a kernel for each part costs less than a copy of it. What a library makes is made in its
// place as it is.
bool isWorthMoving(const Graph& graph, const Node& join) {
  return join.operands.size() <= kMostParts && std::ranges::all_of(join.operands, [&](ValueId id) {
           const Shape& shape = graph.type(id).shape;
           Dim run = 1;
           for (Dim axis = 0; axis <= join.attrs[0]; ++axis) run *= shape[axis];
           const bool isComputed =
               !graph.isParameter(id) && ir::opKind(graph.node(id).op) == Kind::Library;
           return run >= kShortestRun && !graph.isNumber(id) && !isComputed;
         });
}

// Whether two concatenations have the same parts.
bool hasPartsOf(const Graph& graph, const Node& join, const Node& other) {
  const auto size = [&](ValueId id) { return graph.type(id).shape[join.attrs[0]]; };
  return join.attrs[0] == other.attrs[0] &&
         std::ranges::equal(join.operands, other.operands, {}, size, size);
}

// The map of a part of each operand that varies along the axis.
class MovedMap {
 public:
  MovedMap(Graph& graph, const Node& map, const Node& join)
      : graph_(graph), map_(map), join_(join), parts_(join.operands.size()) {}

  // Their concatenation, or -1 if a part of an operand had to be computed.
  ValueId run() {
    if (!std::ranges::all_of(map_.operands, [&](ValueId id) { return addParts(id); })) return -1;
    std::vector<ValueId> results;
    for (std::vector<ValueId>& operands : parts_)
      results.push_back(
          graph_.addNode(map_.op, std::move(operands), map_.attrs, map_.site, map_.origin));
    return graph_.addNode(Op::Concatenate, std::move(results), join_.attrs, join_.site);
  }

 private:
  bool addParts(ValueId operand) {
    const Dim axis = join_.attrs[0];
    const Shape shape = graph_.type(operand).shape;
    const bool varies = shape.ndim() > axis && shape[axis] != 1;
    const Node* const other = producer(graph_, operand, Op::Concatenate);
    const bool hasParts = other && hasPartsOf(graph_, join_, *other);
    if (varies && !hasParts && !isInMemory(graph_, operand)) return false;
    Dim start = 0;
    for (size_t i = 0; i < parts_.size(); ++i) {
      const Dim size = graph_.type(join_.operands[i]).shape[axis];
      if (hasParts)
        parts_[i].push_back(other->operands[i]);
      else
        parts_[i].push_back(varies ? sliceAlong(graph_, operand, axis, start, size, join_.site)
                                   : operand);
      start += size;
    }
    return true;
  }

  Graph& graph_;
  const Node& map_;
  const Node join_;
  std::vector<std::vector<ValueId>> parts_;
};

}  // namespace

JoinMover::JoinMover(const Graph& graph) : isMoved_(endInMemory(graph)) {
  // What else reads a concatenation finds it in memory, and so may the maps.
  const auto keep = [&](ValueId id) {
    if (producer(graph, id, Op::Concatenate)) isMoved_[id] = false;
  };
  std::ranges::for_each(graph.results(), keep);
  for (const Node& node : graph.nodes())
    if (!ir::isElementwise(node.op)) std::ranges::for_each(node.operands, keep);
  for (ValueId id = 0; id < graph.valueCount(); ++id)
    isMoved_[id] = isMoved_[id] && reads(graph, id);
}

bool JoinMover::reads(const Graph& graph, ValueId id) const {
  if (graph.isParameter(id)) return false;
  const Node& node = graph.node(id);
  if (node.op == Op::Concatenate) return isWorthMoving(graph, node);
  return ir::isElementwise(node.op) && std::ranges::any_of(node.operands, [&](ValueId operand) {
           return isMoved_[operand] && graph.type(operand).shape == node.type.shape;
         });
}

ValueId JoinMover::move(Graph& graph, const Node& node) {
  const bool isMoved = isMoved_[graph.parameters().size() + next_++];
  if (!isMoved || node.op == Op::Concatenate) return -1;
  for (const ValueId operand : node.operands) {
    const Node* const join = producer(graph, operand, Op::Concatenate);
    if (join && join->type.shape == node.type.shape) return MovedMap(graph, node, *join).run();
  }
  return -1;
}

}  // namespace fl::codegen
