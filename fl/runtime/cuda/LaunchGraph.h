// Neighbouring steps of a plan as a CUDA graph, which the driver starts with one call: all that
// they put into the stream in one run (Capture). A later run may give launches other words; what
// libraries were given stays.
#pragma once

#include <mutex>

#include "fl/kernel/cuda/Group.h"
#include "fl/runtime/cuda/Context.h"

namespace fl::runtime::cuda {

struct GraphLaunch : ir::cuda::PackedLaunch {
  CUfunction function;
};

// While it lives, what the calling thread puts into the stream is part of a graph instead. Threads
// take turns. Nothing may be allocated or waited for meanwhile.
class Capture {
 public:
  explicit Capture(Context& context);
  ~Capture();
  Capture(const Capture&) = delete;
  // What was put in last.
  CUgraphNode last() const;
  // The graph, which is the caller's to destroy; nothing more is captured.
  CUgraph end();

 private:
  CUgraph stop();

  Context& context_;
  const std::lock_guard<std::mutex> turn_;
  bool isOver_ = false;
};

class LaunchGraph {
 public:
  LaunchGraph(Context& context, Capture& capture);
  ~LaunchGraph();
  LaunchGraph(const LaunchGraph&) = delete;

  // A launch of it is another one from now on, in its words alone.
  void set(CUgraphNode node, GraphLaunch launch);
  // Puts it into the stream.
  void launch();

 private:
  Context& context_;
  CUgraph graph_ = nullptr;  // of whose nodes are those of set()
  CUgraphExec made_ = nullptr;
};

}  // namespace fl::runtime::cuda
