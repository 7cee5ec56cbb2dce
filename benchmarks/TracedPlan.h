// The plan of a case without recording: the operators that it calls are traced once into a graph,
// compiled as the lazy backend does, and then only run.
#pragma once

#include <exception>
#include <memory>
#include <vector>

#include "benchmarks/OpCases.h"
#include "fl/runtime/Device.h"

namespace fl::bench {

// The operators that `opCase` calls, and the parameters of their graph.
struct Trace {
  ir::Graph graph;
  // One a parameter; a number has no block.
  std::vector<MemoryBlockPtr> buffers;
  std::vector<Number> numbers;
};
// Thrown by a case that reads elements while it records.
struct ElementsRead : std::exception {
  const char* what() const noexcept override { return "elements are read while recording"; }
};
// Throws ElementsRead.
Trace trace(const OpCase& opCase, const std::vector<Tensor>& inputs);

class TracedPlan {
 public:
  // Compiles every kernel.
  explicit TracedPlan(const Trace& trace);
  void run() const;

 private:
  std::unique_ptr<runtime::Device> device_;
  runtime::KernelCache kernels_;
  std::unique_ptr<runtime::LoadedSchedule> plan_;
  std::vector<MemoryBlockPtr> buffers_;
  std::vector<Number> numbers_;
};

}  // namespace fl::bench
