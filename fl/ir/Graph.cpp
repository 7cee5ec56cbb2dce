#include "fl/ir/Graph.h"

#include "fl/base/Error.h"
#include "fl/ir/Inference.h"
#include "fl/ir/Rewrite.h"

namespace fl::ir {
namespace {

ValueType inferNode(const Graph& graph, Op op, const std::vector<ValueId>& operands,
                    const Attrs& attrs) {
  std::vector<const ValueType*> types;
  for (ValueId operand : operands) types.push_back(&graph.type(operand));
  return inferType(op, types, attrs);
}

}  // namespace

ValueId Graph::addParameter(Parameter parameter) {
  FL_INTERNAL_CHECK(nodes_.empty(), "parameters come before nodes");
  parameters_.push_back(std::move(parameter));
  return static_cast<ValueId>(parameters_.size()) - 1;
}

ValueId Graph::addNode(Op op, std::vector<ValueId> operands, Attrs attrs, CallSite site,
                       int origin) {
  ValueType type = inferNode(*this, op, operands, attrs);
  return addNode(Node{op, std::move(operands), std::move(attrs), std::move(type), site, origin});
}

ValueId Graph::addNode(Node node) {
  nodes_.push_back(std::move(node));
  return valueCount() - 1;
}

bool Graph::sameStructure(const Graph& other) const { return wordsOf(*this) == wordsOf(other); }

std::vector<int64_t> wordsOf(const Graph& graph) {
  std::vector<int64_t> words = {std::ssize(graph.parameters())};
  const auto addList = [&](const auto& list) {
    words.push_back(std::ssize(list));
    words.insert(words.end(), list.begin(), list.end());
  };
  for (const Parameter& parameter : graph.parameters()) {
    words.push_back(parameter.number);
    addWords(&words, parameter.type);
  }
  words.push_back(std::ssize(graph.nodes()));
  for (const Node& node : graph.nodes()) {
    words.push_back(static_cast<int64_t>(node.op));
    addList(node.operands);
    addList(node.attrs.values());
    addWords(&words, node.type);
  }
  addList(graph.results());
  return words;
}

ValueId addCall(Graph* graph, const Graph& called, const std::vector<ValueId>& operands,
                const CallSite& site) {
  const ValueId shift = graph->valueCount() - static_cast<ValueId>(operands.size());
  for (Node node : called.nodes()) {
    for (ValueId& id : node.operands) id = called.isParameter(id) ? operands[id] : id + shift;
    node.site = site;
    node.origin = static_cast<int>(graph->nodes().size());
    graph->addNode(std::move(node));
  }
  return shift;
}

void removeDeadNodes(Graph* graph) {
  std::vector<bool> alive(graph->valueCount(), false);
  for (ValueId result : graph->results()) alive[result] = true;
  for (size_t i = graph->nodes().size(); i-- > 0;) {
    if (!alive[graph->idOfNode(i)]) continue;
    for (ValueId operand : graph->nodes()[i].operands) alive[operand] = true;
  }
  ValueId next = graph->idOfNode(0);
  rewriteGraph(graph, [&](Graph& result, Node node) {
    return alive[next++] ? result.addNode(std::move(node)) : -1;
  });
}

void verify(const Graph& graph) {
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    const ValueId id = graph.idOfNode(i);
    for (ValueId operand : node.operands) {
      FL_INTERNAL_CHECK(operand >= 0 && operand < id, "operand %", operand, " of %", id, " (",
                        opName(node.op), ") is not defined before it");
    }
    const ValueType expected = inferNode(graph, node.op, node.operands, node.attrs);
    FL_INTERNAL_CHECK(expected == node.type, "%", id, " (", opName(node.op), ") has type ",
                      node.type.toString(), ", inferred ", expected.toString());
  }
  for (ValueId result : graph.results()) {
    FL_INTERNAL_CHECK(result >= 0 && result < graph.valueCount(), "result %", result);
  }
  for (const Parameter& parameter : graph.parameters()) {
    FL_INTERNAL_CHECK(!parameter.number || parameter.type.shape.ndim() == 0,
                      "a number has no dimensions");
  }
}

std::vector<ValueType> interfaceOf(const Graph& graph) {
  std::vector<ValueType> types;
  for (const Parameter& parameter : graph.parameters()) types.push_back(parameter.type);
  for (ValueId result : graph.results()) types.push_back(graph.type(result));
  return types;
}

std::vector<int> useCounts(const Graph& graph) {
  std::vector<int> uses(graph.valueCount(), 0);
  for (const Node& node : graph.nodes()) {
    for (ValueId operand : node.operands) ++uses[operand];
  }
  for (ValueId result : graph.results()) ++uses[result];
  return uses;
}

}  // namespace fl::ir
