// A schedule on a GPU: its launches and library calls in the stream, and on the host what has no
// kernel or no code.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <variant>
#include <vector>

#include "fl/library/Library.h"
#include "fl/runtime/ScheduleRunner.h"
#include "fl/runtime/cuda/CudaKernel.h"
#include "fl/runtime/cuda/LaunchGraph.h"
#include "fl/runtime/cuda/Matmul.h"
#include "fl/runtime/cuda/Memory.h"

namespace fl::runtime::cuda {

// A run puts its steps into the stream and returns. It waits only for steps that run on the host,
// on copies of their buffers (Counters::hostCalls), and at the end of a plan with lookups, for what
// they report: that sets out for the host behind the last of them, and the steps behind it run on.
// Neighbouring launches of one kernel that need nothing of one another are one on the GPU
// (fl/kernel/cuda/Group.h).
class CudaSchedule final : public ScheduleRunner {
 public:
  CudaSchedule(ir::Schedule schedule, Context& context, Memory& memory, KernelCache* cache);
  const std::vector<DeviceKernelPtr>& kernels() const override { return kernels_; }
  static ir::ScratchBytes scratchBytes(Context& context);

 protected:
  void runSteps(const Frame& frame) const override;

 private:
  // A launch with all that does not depend on the run.
  struct PreparedLaunch {
    const CudaKernel* kernel = nullptr;
    const ir::LaunchStep* step;
    std::vector<int64_t> extents, strides;  // the strides of all operands
    ir::cuda::Launch shape;
    int report = -1;      // where its lookups report; -1 if it has none
    size_t together = 1;  // how many are one on the GPU, from this one on; 1 inside a group, too
  };
  // A product that makes the launch behind it, too.
  struct FusedProduct {
    std::shared_ptr<const Matmul> product;
    const ir::LaunchStep* launch;
    MatchedEpilogue epilogue;
  };
  struct PreparedCall {
    const ir::LibraryStep* step;
    std::shared_ptr<const DeviceCall> call;              // null: it runs on the host
    std::shared_ptr<library::LibraryFunction> function;  // null: the reference interpreter
    std::optional<FusedProduct> fused = {};
    int report = -1;  // as PreparedLaunch has it
  };
  // What the addresses and numbers of a run come from: those of its parameters, of its outputs, and
  // its arenas. A step depends on some.
  using Sources = std::vector<uint64_t>;
  // Steps [begin, end) in the stream, which are a graph from their second run on, for each of the
  // last places that libraries worked in.
  struct Chain {
    struct Launch {
      size_t step;
      std::vector<int> sources;
    };
    struct Graph {
      Graph(Context& context, Capture& capture) : graph(context, capture) {}
      LaunchGraph graph;
      std::vector<CUgraphNode> nodes = {};  // of the chain's launches
      Sources sources = {};                 // of its last run
      size_t runs = 0, kernelLaunches = 0, libraryCalls = 0;
    };
    size_t begin, end;
    std::vector<Launch> launches;  // of which a run may change words
    std::vector<int> fixed;        // the sources of all other steps
    std::mutex mutex = {};
    std::list<Graph> graphs = {};                // the last used first
    std::list<std::vector<uint64_t>> seen = {};  // fixed sources of runs that had no graph
    size_t runs = 0, misses = 0;                 // and how many of them were no graph's
    bool isRefused = false;                      // a library cannot be captured
  };
  class HostCopies;

  void findGroups();
  void chooseKernels(KernelCache* cache);
  void findChains();
  std::unique_ptr<Chain> makeChain(size_t begin, size_t end) const;
  std::vector<int> sourcesOf(size_t begin, size_t end) const;
  Sources sourcesOf(const Frame& frame) const;
  // A chain's graph with the words of a run, and no other run's until that is launched; null where
  // its steps are to run one by one.
  struct ReadyGraph {
    std::unique_lock<std::mutex> turn = {};
    Chain::Graph* graph = nullptr;
  };
  ReadyGraph prepared(Chain* chain, const Frame& frame, const Sources& sources) const;
  // The step behind the chain.
  size_t launch(const Chain& chain, const ReadyGraph& ready) const;
  Chain::Graph* findGraph(Chain& chain, const Frame& frame, const Sources& sources) const;
  void capture(Chain& chain, const Frame& frame, const Sources& sources) const;
  // How many of the schedule's run as one from this one on.
  size_t stepsAt(size_t number) const;
  // Runs a step and those that run with it; the next one.
  size_t runNext(size_t number, const Frame& frame) const;
  void runStep(size_t number, const Frame& frame) const;
  ir::cuda::LaunchMemory memoryOf(const PreparedLaunch& launch, const Frame& frame) const;
  std::vector<uint64_t> packed(const PreparedLaunch& launch, const LaunchData& where,
                               const ir::cuda::LaunchMemory& memory) const;
  // With the others of the group that it begins.
  GraphLaunch launchAt(size_t number, const Frame& frame) const;

  const CudaKernel* cachedKernel(const ir::Kernel& kernel, int launches, KernelCache* cache);
  PreparedCall prepare(const ir::LibraryStep& step);
  // The product that may make steps [number, number + 2).
  static std::optional<FusedProduct> findFused(Context& context, const ir::Schedule& schedule,
                                               size_t number);
  // The step, if it is, in this run, a product that makes the launch behind it.
  const FusedProduct* fusedAt(size_t step, const Frame& frame) const;
  bool isFused(size_t step) const;
  PreparedLaunch prepare(const ir::LaunchStep& step);
  // The number of what reports bad indices of lookups with these origins, which the next step fills
  // if one may be bad.
  int addReport(std::vector<int> origins);
  ir::cuda::GatherReport* reportsOf(const Frame& frame) const;
  using Arrival = std::unique_ptr<Staging::Arrival>;
  Arrival fetchReports(const Frame& frame) const;
  void checkReports(const Arrival& reports) const;
  // Whether the run has outputs in the memory of parameters.
  bool writesOver(const Frame& frame) const;
  void runLaunch(size_t number, const Frame& frame) const;
  void runCall(const PreparedCall& call, const FusedProduct* fused, const Frame& frame) const;
  void runOnHost(const PreparedLaunch& launch, const Frame& frame) const;
  void runOnHost(const PreparedCall& call, const Frame& frame) const;

  Context& context_;
  Memory& gpu_;
  const std::vector<bool> looksUpAgain_;  // by step
  std::vector<DeviceKernelPtr> kernels_;
  std::vector<std::variant<PreparedLaunch, PreparedCall>> steps_;  // as in the schedule
  std::vector<std::unique_ptr<Chain>> chains_;  // by their first step; null for others
  std::vector<std::vector<int>> reporting_;     // Node::origin of each lookup of what reports
  size_t reportsAt_ = 0;                        // in the arena
  size_t reported_ = 0;                         // so many steps have filled all reports
  size_t bytes_ = 0;                            // that a run moves
};

}  // namespace fl::runtime::cuda
