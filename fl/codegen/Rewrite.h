// The rewrite driver: rebuilds a graph node by node, in order, through one function.
#pragma once

#include <vector>

#include "fl/ir/Graph.h"

namespace fl::codegen {

// The node that defines `id`, if it is one of `op`.
inline const ir::Node* producer(const ir::Graph& graph, ir::ValueId id, ir::Op op) {
  return !graph.isParameter(id) && graph.node(id).op == op ? &graph.node(id) : nullptr;
}

// `rewrite(graph, node)` receives each node with operands already renamed to the new graph, and
// returns the value that takes its place: usually graph.addNode(std::move(node)).
template <class F>
void rewriteGraph(ir::Graph* graph, F&& rewrite) {
  ir::Graph result;
  std::vector<ir::ValueId> renamed(graph->valueCount());
  for (size_t i = 0; i < graph->parameters().size(); ++i) {
    renamed[i] = result.addParameter(graph->parameters()[i]);
  }
  for (size_t i = 0; i < graph->nodes().size(); ++i) {
    ir::Node node = graph->nodes()[i];
    for (ir::ValueId& operand : node.operands) {
      operand = renamed[operand];
    }
    renamed[graph->idOfNode(i)] = rewrite(result, std::move(node));
  }
  std::vector<ir::ValueId> results;
  for (ir::ValueId id : graph->results()) {
    results.push_back(renamed[id]);
  }
  result.setResults(std::move(results));
  *graph = std::move(result);
}

}  // namespace fl::codegen
