#include <algorithm>
#include <set>

#include "fl/codegen/MoveRules.h"
#include "fl/ir/Rewrite.h"

namespace fl::codegen {
namespace {

// Each part is a launch.
constexpr size_t kMostParts = 8;

// More are seldom one kernel.
constexpr size_t kMostMaps = 32;

// By value, whether all that reads it reads memory, or views that end there.
std::vector<bool> endInMemory(const Graph& graph) {
  std::vector<bool> ends(graph.valueCount(), true);
  for (size_t i = graph.nodes().size(); i-- > 0;) {
    const Node& node = graph.nodes()[i];
    const Kind kind = ir::opKind(node.op);
    const bool isFused = ir::isElementwise(node.op) || kind == Kind::Reduce || kind == Kind::Index;
    const bool end = kind == Kind::View ? ends[graph.idOfNode(i)] : !isFused;
    for (const ValueId operand : node.operands) ends[operand] = ends[operand] && end;
  }
  return ends;
}

// What a view is of, or the value.
ValueId baseOf(const Graph& graph, ValueId id) {
  while (!graph.isParameter(id) && ir::opKind(graph.node(id).op) == Kind::View)
    id = graph.node(id).operands[0];
  return id;
}

// Whether a part of the value is read in memory, not computed.
bool isInMemory(const Graph& graph, ValueId id) {
  const ValueId base = baseOf(graph, id);
  if (graph.isParameter(base)) return !graph.isNumber(base);
  const Kind kind = ir::opKind(graph.node(base).op);
  return !ir::isElementwise(graph.node(base).op) && kind != Kind::Source && kind != Kind::Random;
}

bool varies(const Graph& graph, ValueId id, Dim axis) {
  const Shape& shape = graph.type(id).shape;
  return shape.ndim() > axis && shape[axis] != 1;
}

// Whether a kernel for each part costs less than a copy of it. What a library makes is made in its
// place as it is.
bool isWorthMoving(const Graph& graph, const Node& join) {
  return join.operands.size() <= kMostParts && std::ranges::all_of(join.operands, [&](ValueId id) {
           const Shape& shape = graph.type(id).shape;
           Dim run = 1;
           for (Dim axis = 0; axis <= join.attrs[0]; ++axis) run *= shape[axis];
           const ValueId base = baseOf(graph, id);
           const bool isLibrary =
               !graph.isParameter(base) && ir::opKind(graph.node(base).op) == Kind::Library;
           return run >= kShortestRun && !graph.isNumber(id) && !isLibrary;
         });
}

// Whether two concatenations have the same parts.
bool hasPartsOf(const Graph& graph, const Node& join, const Node& other) {
  const auto size = [&](ValueId id) { return graph.type(id).shape[join.attrs[0]]; };
  return join.attrs[0] == other.attrs[0] &&
         std::ranges::equal(join.operands, other.operands, {}, size, size);
}

// The map of a part of each operand that varies along the axis of the concatenation that is one of
// them.
ValueId moveBehind(Graph& graph, const Node& map, const Node& join) {
  const Dim axis = join.attrs[0];
  std::vector<ValueId> results;
  Dim start = 0;
  for (size_t i = 0; i < join.operands.size(); ++i) {
    const Dim size = graph.type(join.operands[i]).shape[axis];
    std::vector<ValueId> operands;
    for (const ValueId operand : map.operands) {
      const Node* const other = producer(graph, operand, Op::Concatenate);
      if (!varies(graph, operand, axis))
        operands.push_back(operand);
      else if (other && hasPartsOf(graph, join, *other))
        operands.push_back(other->operands[i]);
      else
        operands.push_back(sliceAlong(graph, operand, axis, start, size, join.site));
    }
    results.push_back(graph.addNode(map.op, std::move(operands), map.attrs, map.site));
    start += size;
  }
  return graph.addNode(Op::Concatenate, std::move(results), join.attrs, map.site, map.origin);
}

// Of maps, each the only reader of the one before.
class Chains {
 public:
  explicit Chains(const Graph& graph)
      : graph_(graph),
        readers_(graph.valueCount()),
        isResult_(graph.valueCount()),
        ends_(endInMemory(graph)) {
    for (const ValueId id : graph.results()) isResult_[id] = true;
    for (size_t i = 0; i < graph.nodes().size(); ++i)
      for (const ValueId operand : graph.nodes()[i].operands)
        readers_[operand].insert(graph.idOfNode(i));
  }

  // The maps behind a concatenation, up to one that is in memory, and by which operand each has it
  // from the one before, which nothing else may read. None if others would be computed for it.
  std::map<ValueId, size_t> behind(ValueId join) const {
    std::map<ValueId, size_t> chain;
    for (ValueId id = join; id == join || !ends_[id];) {
      if (isResult_[id] || readers_[id].size() != 1 || chain.size() == kMostMaps) return {};
      const ValueId map = *readers_[id].begin();
      if (!isMapOf(map, id, join)) return {};
      const auto& operands = graph_.node(map).operands;
      chain[map] = std::ranges::find(operands, id) - operands.begin();
      id = map;
    }
    return chain;
  }

 private:
  // Whether a node is a map of the shape of `join`, whose operands but `id` are in memory.
  bool isMapOf(ValueId map, ValueId id, ValueId join) const {
    const Node& node = graph_.node(map);
    return ir::isElementwise(node.op) && node.type.shape == graph_.type(join).shape &&
           std::ranges::all_of(node.operands, [&](ValueId operand) {
             return operand == id || !varies(graph_, operand, graph_.node(join).attrs[0]) ||
                    isInMemory(graph_, operand);
           });
  }

  const Graph& graph_;
  std::vector<std::set<ValueId>> readers_;  // of each value
  std::vector<bool> isResult_, ends_;       // by value
};

}  // namespace

JoinMover::JoinMover(const Graph& graph) {
  // Most graphs have none.
  if (std::ranges::find(graph.nodes(), Op::Concatenate, &Node::op) == graph.nodes().end()) return;
  const Chains chains(graph);
  for (ValueId id = 0; id < graph.valueCount(); ++id) {
    const Node* const join = producer(graph, id, Op::Concatenate);
    if (join && isWorthMoving(graph, *join)) moved_.merge(chains.behind(id));
  }
}

ValueId JoinMover::move(Graph& graph, const Node& node) {
  const auto found = moved_.find(static_cast<ValueId>(graph.parameters().size() + next_++));
  if (found == moved_.end()) return -1;
  const Node* const join = producer(graph, node.operands[found->second], Op::Concatenate);
  return join ? moveBehind(graph, node, *join) : -1;
}

}  // namespace fl::codegen
