// Simplifications that hold for every value, NaN included. Numbers are arguments, so no rule may
// look at their values.
#include <algorithm>

#include "fl/codegen/MoveRules.h"
#include "fl/codegen/Passes.h"
#include "fl/ir/Rewrite.h"

namespace fl::codegen {
namespace {

// cast(x) to its own dtype = x; reshape and broadcast to its own shape = x
ValueId sameType(Graph& graph, const Node& node) {
  const bool candidate = node.op == Op::Cast || node.op == Op::Reshape || node.op == Op::Broadcast;
  return candidate && graph.type(node.operands[0]) == node.type ? node.operands[0] : -1;
}

// transpose with the axes in order = x
ValueId identityTranspose(Graph&, const Node& node) {
  return node.op == Op::Transpose && std::ranges::is_sorted(node.attrs.values()) ? node.operands[0]
                                                                                 : -1;
}

// reshape(reshape(x)) = reshape(x)
ValueId doubleReshape(Graph& graph, const Node& node) {
  const Node* inner =
      node.op == Op::Reshape ? producer(graph, node.operands[0], Op::Reshape) : nullptr;
  if (!inner) return -1;
  const ValueId source = inner->operands[0];
  return graph.type(source) == node.type && !graph.isNumber(source)
             ? source
             : graph.addNode(Op::Reshape, {source}, node.attrs, node.site);
}

// transpose(transpose(x)) = transpose(x) by the composed order
ValueId doubleTranspose(Graph& graph, const Node& node) {
  const Node* inner =
      node.op == Op::Transpose ? producer(graph, node.operands[0], Op::Transpose) : nullptr;
  if (!inner) return -1;
  std::vector<Dim> axes;
  for (Dim axis : node.attrs.values()) axes.push_back(inner->attrs[axis]);
  return std::ranges::is_sorted(axes) ? inner->operands[0]
                                      : graph.addNode(Op::Transpose, {inner->operands[0]},
                                                      ir::Attrs(axes), node.site, node.origin);
}

// -(-x) = x for floats; integers wrap, so it holds for them too
ValueId doubleNegative(Graph& graph, const Node& node) {
  const Node* inner =
      node.op == Op::Negative ? producer(graph, node.operands[0], Op::Negative) : nullptr;
  return inner ? inner->operands[0] : -1;
}

// map(broadcast(x), y) = map(x, y) where y has the shape
ValueId impliedBroadcast(Graph& graph, const Node& node) {
  if (!ir::isElementwise(node.op)) return -1;
  Node implied = node;
  for (ValueId& operand : implied.operands)
    if (const Node* broadcast = producer(graph, operand, Op::Broadcast))
      operand = broadcast->operands[0];
  if (implied.operands == node.operands) return -1;
  const ValueId made = graph.addNode(node.op, implied.operands, node.attrs, node.site, node.origin);
  return graph.type(made) == node.type ? made : -1;
}

struct Rule {
  const char* name;
  // Returns the value that replaces the node, or -1.
  ValueId (*run)(Graph& graph, const Node& node);
};
#define FL_RULE(name) \
  Rule { #name, name }
constexpr Rule kRules[] = {
    FL_RULE(sameType),        FL_RULE(identityTranspose), FL_RULE(doubleReshape),
    FL_RULE(doubleTranspose), FL_RULE(doubleNegative),    FL_RULE(moveReshape),
    FL_RULE(moveLookup),      FL_RULE(impliedBroadcast),  FL_RULE(unrollSum)};
#undef FL_RULE

}  // namespace

void canonicalize(Compilation& compilation) {
  JoinMover joins(compilation.graph);
  rewriteGraph(&compilation.graph, [&](Graph& graph, Node node) {
    if (const ValueId moved = joins.move(graph, node); moved >= 0)
      return unlessWrong(graph, "moveJoin", moved);
    for (const Rule& rule : kRules) {
      const ValueId replacement = rule.run(graph, node);
      // A number is no result, which the node may be.
      if (replacement >= 0 && !graph.isNumber(replacement))
        return unlessWrong(graph, rule.name, replacement);
    }
    return graph.addNode(std::move(node));
  });
}

}  // namespace fl::codegen
