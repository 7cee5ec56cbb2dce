// Gives library ops what they do for free: a product takes the transposes of its operands.
#include <utility>

#include "fl/codegen/Passes.h"
#include "fl/ir/Rewrite.h"

namespace fl::codegen {
namespace {

// True if `id` swaps the first two dimensions of its operand and keeps the others.
bool isMatrixTranspose(const Graph& graph, ir::ValueId id) {
  if (graph.isParameter(id) || graph.node(id).op != Op::Transpose) return false;
  const ir::Attrs& axes = graph.node(id).attrs;
  bool swaps = axes.size() >= 2 && axes[0] == 1 && axes[1] == 0;
  for (size_t i = 2; i < axes.size(); ++i) swaps = swaps && axes[i] == static_cast<Dim>(i);
  return swaps;
}

}  // namespace

void matchLibrary(Compilation& compilation) {
  rewriteGraph(&compilation.graph, [](Graph& graph, Node node) {
    if (node.op != Op::Matmul) return graph.addNode(std::move(node));
    std::vector<Dim> flags = node.attrs.values();
    for (int i = 0; i < 2; ++i) {
      if (!isMatrixTranspose(graph, node.operands[i])) continue;
      const ir::ValueId plain = graph.node(node.operands[i]).operands[0];
      node.operands[i] = unlessWrong(graph, "library", plain);
      flags[i] = !flags[i];
    }
    node.attrs = ir::Attrs(std::move(flags));
    return graph.addNode(std::move(node));
  });
}

}  // namespace fl::codegen
