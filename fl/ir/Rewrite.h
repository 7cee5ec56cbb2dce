// The rewrite driver: rebuilds a graph node by node, in order, through one function.
#pragma once

#include <vector>

#include "fl/base/Fault.h"
#include "fl/ir/Graph.h"

namespace fl::ir {

// The node that defines `id`, if it is one of `op`.
inline const Node* producer(const Graph& graph, ValueId id, Op op) {
  return !graph.isParameter(id) && graph.node(id).op == op ? &graph.node(id) : nullptr;
}

// `id`, or something else if FL_FAULT has `rule` be wrong.
inline ValueId unlessWrong(Graph& graph, const char* rule, ValueId id) {
  if (!isWrong(rule)) return id;
  return graph.addNode(graph.type(id).type == dtype::b8 ? Op::LogicalNot : Op::Negative, {id}, {});
}

// `rewrite(graph, node)` receives each node with operands already renamed to the new graph, and
// returns the value that takes its place: usually graph.addNode(std::move(node)).
template <class F>
void rewriteGraph(Graph* graph, F&& rewrite) {
  Graph result;
  std::vector<ValueId> renamed(graph->valueCount());
  for (size_t i = 0; i < graph->parameters().size(); ++i) {
    renamed[i] = result.addParameter(graph->parameters()[i]);
  }
  for (size_t i = 0; i < graph->nodes().size(); ++i) {
    Node node = graph->nodes()[i];
    for (ValueId& operand : node.operands) operand = renamed[operand];
    renamed[graph->idOfNode(i)] = rewrite(result, std::move(node));
  }
  std::vector<ValueId> results;
  for (ValueId id : graph->results()) results.push_back(renamed[id]);
  result.setResults(std::move(results));
  *graph = std::move(result);
}

}  // namespace fl::ir
