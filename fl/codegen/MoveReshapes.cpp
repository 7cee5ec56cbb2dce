#include <algorithm>
#include <optional>

#include "fl/codegen/MoveRules.h"
#include "fl/ir/Rewrite.h"

namespace fl::codegen {
namespace {

// How a shape came from one with fewer dimensions: groupOf[i] is the dimension there that dimension
// i is a part of, or a 1 beside.
struct Split {
  Shape merged;
  std::vector<int> groupOf;
};

std::optional<Split> splitOf(const Shape& merged, const Shape& shape) {
  if (merged.ndim() == 0 || merged.ndim() >= shape.ndim() || merged.elements() == 0)
    return std::nullopt;
  Split split{merged, {}};
  int group = 0;
  Dim product = 1;
  for (const Dim dim : shape.get()) {
    if (product == merged[group] && group + 1 < merged.ndim() && dim > 1) {
      ++group;
      product = 1;
    }
    product *= dim;
    split.groupOf.push_back(group);
    if (merged[group] % product != 0) return std::nullopt;
  }
  const bool whole = group + 1 == merged.ndim() && product == merged[group];
  return whole ? std::optional(split) : std::nullopt;
}

// The reshape that defines a value, if it splits what it reads.
std::optional<Split> splitBefore(const Graph& graph, ValueId id) {
  const Node* reshape = producer(graph, id, Op::Reshape);
  if (!reshape || graph.isNumber(reshape->operands[0])) return std::nullopt;
  return splitOf(graph.type(reshape->operands[0]).shape, reshape->type.shape);
}

// The dimensions of an operand, which broadcasts to `shape`, after the merge; none if it broadcasts
// along a part of a dimension.
std::optional<Shape> mergedShape(const Shape& operand, const Shape& shape, const Split& split) {
  std::vector<Dim> dims(split.merged.ndim(), 0);
  for (int i = 0; i < shape.ndim(); ++i) {
    if (shape[i] == 1) continue;
    const int group = split.groupOf[i];
    const bool varies = i < operand.ndim() && operand[i] != 1;
    const Dim dim = varies ? split.merged[group] : 1;
    if (dims[group] != 0 && dims[group] != dim) return std::nullopt;
    dims[group] = dim;
  }
  for (Dim& dim : dims) dim = std::max<Dim>(dim, 1);
  return Shape(dims);
}

// Whether another reshape of the value costs nothing that fusion would have saved.
bool isBoundary(const Graph& graph, ValueId id) {
  if (graph.isParameter(id)) return true;
  const Kind kind = ir::opKind(graph.node(id).op);
  return kind == Kind::Library || kind == Kind::Random;
}

std::optional<ValueId> mergeMap(Graph& graph, Node map, const Split& split);

// An operand in the merged shape.
std::optional<ValueId> merge(Graph& graph, ValueId id, const Shape& shape, const Split& split,
                             CallSite site) {
  while (const Node* broadcast = producer(graph, id, Op::Broadcast)) {
    id = broadcast->operands[0];  // elementwise operators broadcast by themselves
  }
  const Shape given = graph.type(id).shape;
  const std::optional<Shape> wanted = mergedShape(given, shape, split);
  if (!wanted) return std::nullopt;
  if (given.elements() == 1 && given.ndim() <= wanted->ndim()) return id;
  const Node* reshape = producer(graph, id, Op::Reshape);
  if (!reshape && !isBoundary(graph, id)) return mergeMap(graph, graph.node(id), split);
  return reshaped(graph, reshape ? reshape->operands[0] : id, *wanted, site);
}

// An operator on two results of libraries, such as the sum of two gradients, which seldom has
// another reader.
std::optional<ValueId> mergeMap(Graph& graph, Node map, const Split& split) {
  if (!ir::isElementwise(map.op) || map.operands.size() < 2) return std::nullopt;
  for (ValueId& operand : map.operands) {
    const bool fits = graph.type(operand).shape == map.type.shape && !graph.isParameter(operand) &&
                      isBoundary(graph, operand);
    const auto merged =
        fits ? merge(graph, operand, map.type.shape, split, map.site) : std::nullopt;
    if (!merged) return std::nullopt;
    operand = *merged;
  }
  return graph.addNode(map.op, std::move(map.operands), map.attrs, map.site);
}

// The elementwise node in the shape before a reshape of one of its operands.
ValueId moveBehindMap(Graph& graph, const Node& node) {
  for (const ValueId source : node.operands) {
    const std::optional<Split> split = splitBefore(graph, source);
    if (!split || graph.type(source).shape != node.type.shape) continue;
    std::vector<ValueId> operands;
    for (const ValueId operand : node.operands) {
      if (const auto merged = merge(graph, operand, node.type.shape, *split, node.site))
        operands.push_back(*merged);
    }
    if (operands.size() == node.operands.size()) {
      const ValueId moved =
          graph.addNode(node.op, std::move(operands), node.attrs, node.site, node.origin);
      return graph.addNode(Op::Reshape, {moved}, ir::Attrs(node.type.shape.get()), node.site);
    }
  }
  return -1;
}

// The reduction in the shape before the reshape of its operand, if its axes are whole dimensions
// there.
ValueId moveBehindReduce(Graph& graph, const Node& node) {
  const std::optional<Split> split = splitBefore(graph, node.operands[0]);
  if (!split) return -1;
  const Shape& shape = graph.type(node.operands[0]).shape;
  const std::vector<Dim> axes = node.attrs.list(1);
  std::vector<Dim> merged;
  for (int group = 0; group < split->merged.ndim(); ++group) {
    int reduced = 0, kept = 0;
    for (int i = 0; i < shape.ndim(); ++i)
      if (split->groupOf[i] == group && shape[i] != 1)
        ++(std::ranges::count(axes, i) > 0 ? reduced : kept);
    if (reduced > 0 && kept > 0) return -1;
    if (reduced > 0) merged.push_back(group);
  }
  if (merged.empty()) return -1;
  const ValueId source = graph.node(node.operands[0]).operands[0];
  const ValueId moved =
      graph.addNode(node.op, {source}, ir::Attrs({1}, merged), node.site, node.origin);
  return graph.addNode(Op::Reshape, {moved}, ir::Attrs(node.type.shape.get()), node.site);
}

}  // namespace

ValueId reshaped(Graph& graph, ValueId id, const Shape& shape, CallSite site) {
  if (graph.type(id).shape == shape) return id;
  return graph.addNode(Op::Reshape, {id}, ir::Attrs(shape.get()), site);
}

ValueId moveReshape(Graph& graph, const Node& node) {
  if (ir::isElementwise(node.op)) return moveBehindMap(graph, node);
  return ir::opKind(node.op) == Kind::Reduce ? moveBehindReduce(graph, node) : -1;
}

}  // namespace fl::codegen
