// Neighbouring launches of a plan as one CUDA graph, a chain: the driver starts them all with one
// call. Addresses and numbers that differ from those of the run before are set anew first.
#pragma once

#include <mutex>
#include <vector>

#include "fl/kernel/cuda/Group.h"
#include "fl/runtime/cuda/Context.h"

namespace fl::runtime::cuda {

struct GraphLaunch : ir::cuda::PackedLaunch {
  CUfunction function;
};

// Thread-safe.
class LaunchGraph {
 public:
  explicit LaunchGraph(Context& context) : context_(context) {}
  ~LaunchGraph();
  LaunchGraph(const LaunchGraph&) = delete;

  // Puts them into the stream. They differ from those of the call before in words alone.
  void launch(std::vector<GraphLaunch> launches);

 private:
  void make(std::vector<GraphLaunch>& launches);
  void change(std::vector<GraphLaunch>& launches);

  Context& context_;
  std::mutex mutex_;
  CUgraph graph_ = nullptr;
  CUgraphExec made_ = nullptr;  // null before the first launch
  std::vector<CUgraphNode> nodes_;
  std::vector<GraphLaunch> last_;  // as the graph has them
};

}  // namespace fl::runtime::cuda
