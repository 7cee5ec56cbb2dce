// The tool `fl` with a pass of one's own, which `bazel run //examples/tool -- bisect FILE.flir`
// finds to be wrong: it takes sin for an even function, as cos is one.
#include <utility>

#include "fl/research.h"

void dropSigns(fl::codegen::Compilation& compilation) {
  using fl::ir::Graph, fl::ir::Node, fl::ir::Op;
  fl::ir::rewriteGraph(&compilation.graph, [](Graph& graph, Node node) {
    const Node* negation = node.op == Op::Sin || node.op == Op::Cos
                               ? fl::ir::producer(graph, node.operands[0], Op::Negative)
                               : nullptr;
    if (negation) node.operands[0] = negation->operands[0];
    return graph.addNode(std::move(node));
  });
}

// Before main(), which is the tool's.
const bool added = [] {
  fl::codegen::addPass({.name = "even_sine",
                        .after = "canonicalize",
                        .before = "dce",
                        .why = "ahead of dce, which removes the negations that nobody reads then",
                        .run = dropSigns});
  return true;
}();
