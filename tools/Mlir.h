// Graphs through MLIR in the place of our emitters: what FL_EMITTER=mlir has `fl run` run.
#pragma once

#include <memory>
#include <vector>

#include "tools/Program.h"

namespace fl::tools {

// The graph as the passes over graphs leave it. Throws std::invalid_argument for what
// FL_MLIR_PIPELINE may not be.
std::unique_ptr<LoadedProgram> loadMlir(const ir::Graph& graph,
                                        const std::vector<NpyArray>& inputs);

}  // namespace fl::tools
