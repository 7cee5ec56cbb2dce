// A graph through MLIR: its text (fl/codegen/mlir/Emitter.h).
#pragma once

#include <string>

#include "fl/ir/Graph.h"

namespace fl::tools {

// One function, g; operators of libraries in terms of others.
std::string printMlir(const ir::Graph& graph);

}  // namespace fl::tools
