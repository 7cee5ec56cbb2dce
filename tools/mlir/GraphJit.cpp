#include "tools/mlir/GraphJit.h"

#include "fl/base/Error.h"
#include "fl/codegen/mlir/Emitter.h"
#include "fl/definitions/Trace.h"
#include "fl/ir/Inference.h"

namespace fl::tools {
namespace {

std::string nameOf(size_t graph, size_t count) {
  return count == 1 ? "g" : "g" + std::to_string(graph);
}

std::vector<Trace> expand(const std::vector<ir::Graph>& graphs) {
  std::vector<Trace> expanded;
  for (const ir::Graph& graph : graphs) expanded.push_back(expandLibrary(graph));
  return expanded;
}

std::string print(const std::vector<Trace>& graphs) {
  std::vector<codegen::mlir::NamedGraph> named;
  for (const Trace& each : graphs) {
    named.push_back({nameOf(named.size(), graphs.size()), &each.graph, each.constants});
  }
  return codegen::mlir::emitMlir(named);
}

}  // namespace

std::string printMlir(const std::vector<ir::Graph>& graphs) { return print(expand(graphs)); }

GraphJit::GraphJit(const std::vector<ir::Graph>& graphs, const std::string& pipeline, int level)
    : expanded_(expand(graphs)),
      jit_(print(expanded_), pipeline.empty() ? codegen::mlir::kPipeline : pipeline, level) {}

GraphJit::~GraphJit() = default;

std::vector<std::vector<uint8_t>> GraphJit::run(size_t number,
                                                const std::vector<const void*>& parameters) const {
  const ir::Graph& graph = expanded_[number].graph;
  const std::vector<codegen::mlir::Lookup> lookups = codegen::mlir::lookups(graph);
  std::vector<std::vector<uint8_t>> results;
  std::vector<int64_t> bad(lookups.size());
  std::vector<codegen::mlir::Buffer> buffers;
  for (size_t i = 0; i < parameters.size(); ++i) {
    // They are marked as such that are not written.
    buffers.push_back({const_cast<void*>(parameters[i]), graph.parameters()[i].type.shape});
  }
  for (ir::ValueId id : graph.results()) {
    const ir::ValueType& type = graph.type(id);
    results.emplace_back(bytesOf(type.type, type.shape));
    buffers.push_back({nullptr, type.shape});
  }
  for (size_t i = 0; i < results.size(); ++i) {
    buffers[parameters.size() + i].data = results[i].data();
  }
  for (int64_t& each : bad) buffers.push_back({&each, Shape()});
  jit_.run(nameOf(number, expanded_.size()), buffers);
  for (size_t i = 0; i < lookups.size(); ++i) {
    if (bad[i] == 0) continue;
    const ir::Node& node = graph.node(lookups[i].node);
    throw std::invalid_argument(ir::badIndexMessage({bad[i], lookups[i].bound},
                                                    graph.type(node.operands[0]), node.attrs[0]));
  }
  return results;
}

}  // namespace fl::tools
