#include <map>
#include <set>

#include "fl/base/Error.h"
#include "fl/codegen/MoveRules.h"
#include "fl/ir/Graph.h"

namespace fl::codegen {
namespace {

using ir::Graph;
using ir::Node;
using ir::Op;
using ir::ValueId;

// Operators are computed again for what is looked up if that is at most one in so many elements,
// and for so many operators.
constexpr Dim kOneIn = 4;
constexpr size_t kMostMoved = 32;

struct Axis {
  Dim number;
  Dim size;

  // False for values that are the same along the axis.
  bool isOf(const Graph& graph, ValueId id) const {
    const Shape& shape = graph.type(id).shape;
    return !graph.isNumber(id) && shape.ndim() > number && shape[number] == size;
  }
};

// `id` and the elementwise operators before it that vary along the axis, operands first.
std::set<ValueId> mapsBefore(const Graph& graph, ValueId id, const Axis& axis) {
  std::set<ValueId> maps;
  std::vector<ValueId> waiting = {id};
  while (!waiting.empty() && maps.size() < kMostMoved) {
    const ValueId next = waiting.back();
    waiting.pop_back();
    const bool isMap = !graph.isParameter(next) && ir::isElementwise(graph.node(next).op);
    if (isMap && axis.isOf(graph, next) && maps.insert(next).second) {
      const auto& operands = graph.node(next).operands;
      waiting.insert(waiting.end(), operands.begin(), operands.end());
    }
  }
  return maps;
}

// The same lookup in another table, which may have fewer dimensions than the first.
ValueId lookUp(Graph& graph, ValueId table, const Node& gather) {
  const Shape& index = graph.type(gather.operands[1]).shape;
  std::vector<Dim> dims = graph.type(table).shape.get();
  if (static_cast<int>(dims.size()) < index.ndim()) {
    dims.resize(index.ndim(), 1);
    table = graph.addNode(Op::Reshape, {table}, ir::Attrs(dims), gather.site);
  }
  for (int i = 0; i < index.ndim(); ++i)
    dims[i] = i == gather.attrs[0] || dims[i] == 1 ? index[i] : dims[i];
  Node moved = gather;  // an error finds its call by it
  moved.operands[0] = table;
  moved.type = {graph.type(table).type, Shape(dims)};
  return graph.addNode(std::move(moved));
}

}  // namespace

ValueId moveLookup(Graph& graph, const Node& node) {
  if (node.op != Op::Gather) return -1;
  const ValueId source = node.operands[0];
  const Shape from = graph.type(source).shape;
  const Axis axis{node.attrs[0], from[node.attrs[0]]};
  const std::set<ValueId> maps = mapsBefore(graph, source, axis);
  if (maps.empty() || axis.size == 1 || node.type.shape.elements() * kOneIn > from.elements())
    return -1;
  std::map<ValueId, ValueId> moved;
  const auto lookedUp = [&](ValueId id) {
    if (!axis.isOf(graph, id)) return id;
    const auto [place, isNew] = moved.try_emplace(id, -1);
    if (isNew) place->second = lookUp(graph, id, node);
    return place->second;
  };
  for (const ValueId id : maps) {
    const Node map = graph.node(id);
    std::vector<ValueId> operands;
    for (const ValueId operand : map.operands) operands.push_back(lookedUp(operand));
    moved[id] = graph.addNode(map.op, std::move(operands), map.attrs, map.site);
  }
  FL_INTERNAL_CHECK(graph.type(moved.at(source)) == node.type, "a moved gather has another type");
  return moved.at(source);
}

}  // namespace fl::codegen
