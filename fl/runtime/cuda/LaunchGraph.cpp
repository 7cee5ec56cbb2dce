#include "fl/runtime/cuda/LaunchGraph.h"

namespace fl::runtime::cuda {
namespace {

constexpr char kWhat[] = "a graph of launches";

// With `parameter` pointing to the words, which the driver copies.
CUDA_KERNEL_NODE_PARAMS parametersOf(GraphLaunch& launch, void** parameter) {
  *parameter = launch.words.data();
  CUDA_KERNEL_NODE_PARAMS parameters = {};
  parameters.func = launch.function;
  parameters.gridDimX = static_cast<unsigned>(launch.shape.blocks);
  parameters.gridDimY = static_cast<unsigned>(launch.shape.splits);
  parameters.gridDimZ = 1;
  parameters.blockDimX = static_cast<unsigned>(launch.shape.threads[0]);
  parameters.blockDimY = static_cast<unsigned>(launch.shape.threads[1]);
  parameters.blockDimZ = static_cast<unsigned>(launch.shape.threads[2]);
  parameters.sharedMemBytes = static_cast<unsigned>(launch.shape.sharedBytes);
  parameters.kernelParams = parameter;
  return parameters;
}

}  // namespace

// A run of it that is not over keeps what it needs.
LaunchGraph::~LaunchGraph() {
  if (made_ != nullptr) context_.use().cuGraphExecDestroy(made_);
  if (graph_ != nullptr) context_.use().cuGraphDestroy(graph_);
}

void LaunchGraph::launch(std::vector<GraphLaunch> launches) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (made_ == nullptr) {
    make(launches);
    last_ = std::move(launches);
  } else {
    change(launches);
  }
  context_.check(context_.use().cuGraphLaunch(made_, context_.stream()), kWhat);
}

void LaunchGraph::make(std::vector<GraphLaunch>& launches) {
  const Driver& driver = context_.use();
  if (graph_ == nullptr) context_.check(driver.cuGraphCreate(&graph_, 0), kWhat);
  for (size_t i = nodes_.size(); i < launches.size(); ++i) {
    void* parameter = nullptr;
    const CUDA_KERNEL_NODE_PARAMS parameters = parametersOf(launches[i], &parameter);
    CUgraphNode node = nullptr;
    context_.check(driver.cuGraphAddKernelNode(&node, graph_, i > 0 ? &nodes_[i - 1] : nullptr,
                                               i > 0 ? 1 : 0, &parameters),
                   kWhat);
    nodes_.push_back(node);
  }
  context_.check(driver.cuGraphInstantiate(&made_, graph_, 0), kWhat);
}

void LaunchGraph::change(std::vector<GraphLaunch>& launches) {
  for (size_t i = 0; i < launches.size(); ++i) {
    if (launches[i].words == last_[i].words) continue;
    void* parameter = nullptr;
    const CUDA_KERNEL_NODE_PARAMS parameters = parametersOf(launches[i], &parameter);
    context_.check(context_.use().cuGraphExecKernelNodeSetParams(made_, nodes_[i], &parameters),
                   kWhat);
    last_[i].words = std::move(launches[i].words);
  }
}

}  // namespace fl::runtime::cuda
