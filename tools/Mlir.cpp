#include "tools/Mlir.h"

#include <chrono>

#include "fl/base/Error.h"
#include "fl/base/Flags.h"
#include "fl/base/Log.h"
#include "fl/codegen/Compilation.h"
#include "tools/mlir/GraphJit.h"

namespace fl::tools {
namespace {

ir::Graph throughPasses(const ir::Graph& graph) {
  codegen::CompileOptions options;
  options.skip = flags().skip;
  for (const codegen::PassInfo& pass : codegen::passes()) {
    if (pass.stage == "graph") options.stopAfter = pass.name;
  }
  return codegen::compile(graph, options).graph;
}

class LoadedMlir : public LoadedProgram {
 public:
  LoadedMlir(const ir::Graph& graph, std::vector<NpyArray> inputs)
      : graph_(graph),
        jit_({throughPasses(graph)}, flags().mlirPipeline),
        inputs_(std::move(inputs)) {}

  void run() override {
    std::vector<const void*> parameters;
    for (const NpyArray& input : inputs_) parameters.push_back(input.bytes.data());
    results_ = jit_.run(0, parameters);
  }

  std::vector<NpyArray> results() const override {
    std::vector<NpyArray> arrays;
    for (ir::ValueId id : graph_.results()) {
      const ir::ValueType& type = graph_.type(id);
      arrays.push_back({type.type, type.shape, results_[arrays.size()]});
    }
    return arrays;
  }

 private:
  const ir::Graph& graph_;
  const GraphJit jit_;
  const std::vector<NpyArray> inputs_;
  std::vector<std::vector<uint8_t>> results_;
};

}  // namespace

std::unique_ptr<LoadedProgram> loadMlir(const ir::Graph& graph,
                                        const std::vector<NpyArray>& inputs) {
  const auto start = std::chrono::steady_clock::now();
  auto loaded = std::make_unique<LoadedMlir>(graph, inputs);
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - start;
  if (logEnabled(3)) logLine(3, detail::concat("graph lowered by MLIR ", elapsed.count(), " ms"));
  return loaded;
}

}  // namespace fl::tools
