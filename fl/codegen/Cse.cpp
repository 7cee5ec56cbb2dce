// Merges nodes that compute the same value. Random nodes stay apart: each call drew its own
// numbers.
#include <string>
#include <unordered_map>

#include "fl/codegen/Passes.h"
#include "fl/ir/Rewrite.h"

namespace fl::codegen {
namespace {

std::string nodeKey(const ir::Node& node) {
  std::string key;
  auto add = [&](Dim value) { key.append(reinterpret_cast<const char*>(&value), sizeof(value)); };
  add(static_cast<Dim>(node.op));
  for (ir::ValueId operand : node.operands) add(operand);
  add(-1);
  for (Dim attr : node.attrs.values()) add(attr);
  return key;
}

bool isLike(const ir::Graph& graph, const ir::Node& node) {
  return !node.operands.empty() && !graph.isNumber(node.operands[0]) &&
         graph.type(node.operands[0]) == node.type;
}

}  // namespace

void mergeEqualNodes(Compilation& compilation) {
  std::unordered_map<std::string, ir::ValueId> seen;
  rewriteGraph(&compilation.graph, [&](ir::Graph& graph, ir::Node node) {
    if (opKind(node.op) == ir::Kind::Random) return graph.addNode(std::move(node));
    const auto [entry, added] = seen.emplace(nodeKey(node), -1);
    if (added) return entry->second = graph.addNode(std::move(node));
    return unlessWrong(graph, "cse", entry->second);
  });
}

void removeDeadNodes(Compilation& compilation) {
  ir::removeDeadNodes(&compilation.graph);
  if (!isWrong("dce")) return;
  rewriteGraph(&compilation.graph, [](ir::Graph& result, ir::Node node) {
    return isLike(result, node) ? node.operands[0] : result.addNode(std::move(node));
  });
}

}  // namespace fl::codegen
