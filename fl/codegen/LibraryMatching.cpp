// Gives library ops what they do for free: a product takes the transposes of its operands.
#include <algorithm>
#include <utility>

#include "fl/codegen/Passes.h"
#include "fl/ir/Rewrite.h"

namespace fl::codegen {
namespace {

// True if a transpose swaps the first two dimensions of its operand and keeps the others.
bool swapsMatrix(const Node& transpose) {
  std::vector<Dim> axes = transpose.attrs.values();
  if (axes.size() < 2) return false;
  std::swap(axes[0], axes[1]);
  return std::ranges::is_sorted(axes);
}

}  // namespace

void matchLibrary(Compilation& compilation) {
  rewriteGraph(&compilation.graph, [](Graph& graph, Node node) {
    if (node.op != Op::Matmul) return graph.addNode(std::move(node));
    std::vector<Dim> flags = node.attrs.values();
    for (int i = 0; i < 2; ++i) {
      const Node* const transpose = producer(graph, node.operands[i], Op::Transpose);
      if (!transpose || !swapsMatrix(*transpose)) continue;
      node.operands[i] = unlessWrong(graph, "library", transpose->operands[0]);
      flags[i] = !flags[i];
    }
    node.attrs = ir::Attrs(std::move(flags));
    return graph.addNode(std::move(node));
  });
}

}  // namespace fl::codegen
