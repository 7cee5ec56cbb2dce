#include "fl/runtime/cuda/LaunchGraph.h"

namespace fl::runtime::cuda {
namespace {

constexpr char kWhat[] = "a graph of launches";

std::mutex& turns() {
  static auto& mutex = *new std::mutex();
  return mutex;
}

}  // namespace

// Other threads, and the libraries, may do what they like.
Capture::Capture(Context& context) : context_(context), turn_(turns()) {
  context_.divert(true);
  const CUresult result =
      context_.use().cuStreamBeginCapture(context_.stream(), CU_STREAM_CAPTURE_MODE_RELAXED);
  if (result != CUDA_SUCCESS) context_.divert(false);
  context_.check(result, kWhat);
}

Capture::~Capture() {
  if (isOver_) return;
  if (CUgraph graph = stop(); graph != nullptr) context_.use().cuGraphDestroy(graph);
}

CUgraphNode Capture::last() const {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUgraphNode* nodes = nullptr;
  size_t count = 0;
  context_.check(context_.use().cuStreamGetCaptureInfo(context_.stream(), &status, /*id=*/nullptr,
                                                       /*graph=*/nullptr, &nodes,
                                                       /*edges=*/nullptr, &count),
                 kWhat);
  FL_INTERNAL_CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && count == 1, kWhat,
                    " has branches: ", count);
  return nodes[0];
}

CUgraph Capture::stop() {
  CUgraph graph = nullptr;
  isOver_ = true;
  const Driver* driver = context_.tryUse();
  const bool isGraph =
      driver != nullptr && driver->cuStreamEndCapture(context_.stream(), &graph) == CUDA_SUCCESS;
  context_.divert(false);
  return isGraph ? graph : nullptr;
}

CUgraph Capture::end() {
  CUgraph graph = stop();
  if (graph == nullptr) throw std::runtime_error("CUDA: a graph of launches cannot be captured");
  return graph;
}

LaunchGraph::LaunchGraph(Context& context, Capture& capture)
    : context_(context), graph_(capture.end()) {
  const CUresult result = context_.use().cuGraphInstantiate(&made_, graph_, 0);
  if (result != CUDA_SUCCESS) context_.use().cuGraphDestroy(graph_);
  context_.check(result, kWhat);
}

// A run of it that is not over keeps what it needs.
LaunchGraph::~LaunchGraph() {
  const Driver* driver = context_.tryUse();
  if (driver == nullptr) return;
  driver->cuGraphExecDestroy(made_);
  driver->cuGraphDestroy(graph_);
}

void LaunchGraph::set(CUgraphNode node, GraphLaunch launch) {
  void* parameter = launch.words.data();  // which the driver copies
  CUDA_KERNEL_NODE_PARAMS parameters = {};
  parameters.func = launch.function;
  parameters.gridDimX = static_cast<unsigned>(launch.shape.blocks);
  parameters.gridDimY = static_cast<unsigned>(launch.shape.splits);
  parameters.gridDimZ = 1;
  parameters.blockDimX = static_cast<unsigned>(launch.shape.threads[0]);
  parameters.blockDimY = static_cast<unsigned>(launch.shape.threads[1]);
  parameters.blockDimZ = static_cast<unsigned>(launch.shape.threads[2]);
  parameters.sharedMemBytes = static_cast<unsigned>(launch.shape.sharedBytes);
  parameters.kernelParams = &parameter;
  context_.check(context_.use().cuGraphExecKernelNodeSetParams(made_, node, &parameters), kWhat);
}

void LaunchGraph::launch() {
  context_.check(context_.use().cuGraphLaunch(made_, context_.stream()), kWhat);
}

}  // namespace fl::runtime::cuda
