// Attention's heads are recorded as (time,D,heads,batch), of a transpose of what projections make,
// (D * heads,time,batch), and its result is transposed back. With the features first it reads and
// writes what is there already, and none of it is copied.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "fl/codegen/Passes.h"
#include "fl/ir/Rewrite.h"

namespace fl::codegen {
namespace {

ValueId unshaped(const Graph& graph, ValueId id) {
  while (const Node* reshape = producer(graph, id, Op::Reshape)) id = reshape->operands[0];
  return id;
}

// An elementwise operator on one value and numbers, such as the queries' scale.
struct Scale {
  Node node;
  size_t operand;

  ValueId value() const { return node.operands[operand]; }
  ValueId of(Graph& graph, ValueId value, int origin) const {
    std::vector<ValueId> operands = node.operands;
    operands[operand] = value;
    return graph.addNode(node.op, std::move(operands), node.attrs, node.site, origin);
  }
};

std::optional<Scale> scaleAt(const Graph& graph, ValueId id) {
  if (graph.isParameter(id) || !ir::isElementwise(graph.node(id).op)) return std::nullopt;
  const Node& node = graph.node(id);
  const auto isValue = [&](ValueId operand) { return !graph.isNumber(operand); };
  const auto value = std::ranges::find_if(node.operands, isValue);
  if (std::ranges::count_if(node.operands, isValue) != 1) return std::nullopt;
  return Scale{node, static_cast<size_t>(value - node.operands.begin())};
}

class HeadMover {
 public:
  ValueId move(Graph& graph, Node node) {
    ValueId moved = -1;
    if (node.op == Op::Attention || node.op == Op::AttentionBackward)
      moved = attention(graph, node);
    if (node.op == Op::Transpose) moved = behindScale(graph, node);
    return moved >= 0 ? moved : graph.addNode(std::move(node));
  }

 private:
  // The recorded result, a view of the operator's; -1 if not all of its heads are transposes, or
  // if its gradients are of two shapes.
  ValueId attention(Graph& graph, const Node& node) {
    const bool isBackward = node.op == Op::AttentionBackward;
    if (node.attrs[0] || (isBackward && node.type.shape.ndim() == 1)) return -1;
    std::vector<ValueId> operands = node.operands;
    for (int i = 0; i < (isBackward ? 4 : 3); ++i) {
      operands[i] = inFront(graph, operands[i]);
      if (operands[i] < 0) return -1;
    }
    const ValueId made = graph.addNode(node.op, std::move(operands), ir::Attrs({1}), node.site);
    const ir::Attrs axes(isBackward ? std::vector<Dim>{2, 0, 1, 3, 4}
                                    : std::vector<Dim>{2, 0, 1, 3});
    return graph.addNode(Op::Transpose, {unlessWrong(graph, "layout", made)}, axes, node.site,
                         node.origin);
  }

  // (D,heads,time,batch) of heads; -1 if that is no view.
  ValueId inFront(Graph& graph, ValueId heads) {
    const auto [place, isNew] = inFront_.try_emplace(heads, -1);
    if (isNew) place->second = projection(graph, heads);
    return place->second;
  }

  static ValueId projection(Graph& graph, ValueId heads) {
    const Shape shape = graph.type(heads).shape;
    const ValueId source = unshaped(graph, heads);
    const std::optional<Scale> scale = scaleAt(graph, source);
    const Node* transpose =
        producer(graph, scale ? unshaped(graph, scale->value()) : source, Op::Transpose);
    if (!transpose || transpose->attrs.values() != std::vector<Dim>{1, 0, 2} ||
        graph.type(transpose->operands[0]).shape[0] != shape[1] * shape[2] ||
        transpose->type.shape[0] != shape[0]) {
      return -1;
    }
    ValueId value = unshaped(graph, transpose->operands[0]);
    if (scale) value = scale->of(graph, value, -1);
    const ir::Attrs front({shape[1], shape[2], shape[0], shape[3]});
    return graph.addNode(Op::Reshape, {value}, front, graph.node(heads).site);
  }

  // A scale between the gradient of queries and its transpose would have it copied: transposed
  // first, it is read where it is.
  static ValueId behindScale(Graph& graph, const Node& node) {
    const std::optional<Scale> scale = scaleAt(graph, unshaped(graph, node.operands[0]));
    const Node* part =
        scale ? producer(graph, unshaped(graph, scale->value()), Op::Slice) : nullptr;
    const Node* all = part ? producer(graph, part->operands[0], Op::Transpose) : nullptr;
    if (!all || !producer(graph, all->operands[0], Op::AttentionBackward)) return -1;
    const ir::Attrs shape(graph.type(node.operands[0]).shape.get());
    const ValueId value = graph.addNode(Op::Reshape, {scale->value()}, shape, node.site);
    return scale->of(graph,
                     graph.addNode(Op::Transpose, {value}, node.attrs, node.site, node.origin),
                     node.origin);
  }

  std::unordered_map<ValueId, ValueId> inFront_;
};

}  // namespace

void moveHeads(Graph* graph) {
  HeadMover mover;
  rewriteGraph(graph, [&](Graph& made, Node node) { return mover.move(made, std::move(node)); });
}

}  // namespace fl::codegen
