#include "tools/Mlir.h"

#include "fl/codegen/mlir/Emitter.h"
#include "fl/definitions/Trace.h"

namespace fl::tools {

std::string printMlir(const ir::Graph& graph) {
  const Trace expanded = expandLibrary(graph);
  return codegen::mlir::emitMlir({{"g", &expanded.graph, expanded.constants}});
}

}  // namespace fl::tools
