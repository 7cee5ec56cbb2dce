// A pass of one's own, in the midst of the compiler's: |-x| is |x| for every x.
#include <iostream>
#include <utility>

#include "fl/fl.h"
#include "fl/research.h"

int rewritten = 0;

void dropSigns(fl::codegen::Compilation& compilation) {
  using fl::ir::Graph, fl::ir::Node, fl::ir::Op;
  fl::ir::rewriteGraph(&compilation.graph, [](Graph& graph, Node node) {
    // Operands are those of the new graph; the negation stays in it until the pass dce.
    const Node* negation = node.op == Op::Absolute
                               ? fl::ir::producer(graph, node.operands[0], Op::Negative)
                               : nullptr;
    if (negation) {
      node.operands[0] = negation->operands[0];
      ++rewritten;
    }
    return graph.addNode(std::move(node));
  });
}

int main() {
  fl::codegen::addPass({.name = "drop_signs",
                        .after = "canonicalize",
                        .before = "dce",
                        .why = "ahead of dce, which removes the negations that nobody reads then",
                        .run = dropSigns});
  for (const fl::codegen::PassInfo& pass : fl::codegen::passes()) {
    std::cout << pass.name << ' ';
  }
  const fl::Tensor x = fl::rand({1000}) - 0.5;
  const bool equal = fl::all(fl::abs(-x) == fl::abs(x)).scalar<char>();
  std::cout << "\nrewritten: " << rewritten << ", equal: " << equal << '\n';
}
