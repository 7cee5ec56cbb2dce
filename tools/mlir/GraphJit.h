// Graphs through MLIR: operators of libraries in terms of others (fl/definitions), then text
// (fl/codegen/mlir/Emitter.h), then machine code (fl/codegen/mlir/Jit.h).
#pragma once

#include <string>
#include <vector>

#include "fl/codegen/mlir/Jit.h"
#include "fl/ir/Graph.h"

namespace fl {
struct Trace;
}

namespace fl::tools {

class GraphJit {
 public:
  // One module of all. Throws std::invalid_argument for a pipeline that MLIR does not take; an
  // empty one is codegen::mlir::kPipeline.
  explicit GraphJit(const std::vector<ir::Graph>& graphs, const std::string& pipeline = "",
                    int level = 2);
  ~GraphJit();

  // The elements of a graph's results, of those of its parameters, numbers too; all column-major.
  // Throws std::invalid_argument for an index out of range.
  std::vector<std::vector<uint8_t>> run(size_t graph,
                                        const std::vector<const void*>& parameters) const;

 private:
  const std::vector<Trace> expanded_;
  const codegen::mlir::Jit jit_;
};

// The text of these graphs, functions g0, g1, ..., or g if it is one.
std::string printMlir(const std::vector<ir::Graph>& graphs);

}  // namespace fl::tools
