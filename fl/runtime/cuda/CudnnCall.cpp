#include "fl/runtime/cuda/CudnnCall.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "fl/base/Log.h"
#include "fl/ir/Text.h"
#include "fl/runtime/cuda/Candidates.h"

namespace fl::runtime::cuda {
namespace {

using library::cuda::Cudnn;
using library::cuda::cudnn;
using library::cuda::CudnnGraph;
using library::cuda::CudnnPlan;
using library::cuda::CudnnRefusal;

// The library's context on the GPU. Calls of it take turns.
struct Handle {
  explicit Handle(Context& context) {
    const Cudnn& library = cudnn().table();
    context.use();
    cudnnStatus_t status = library.cudnnCreate(&value);
    if (status == CUDNN_STATUS_SUCCESS) {
      status = library.cudnnSetStream(value, reinterpret_cast<cudaStream_t>(context.stream()));
    }
    if (status != CUDNN_STATUS_SUCCESS) {
      throw CudnnRefusal(detail::concat("cuDNN: starting: ", library.cudnnGetErrorString(status)));
    }
  }
  cudnnHandle_t value = nullptr;
  std::mutex mutex;
};

Handle& handleOf(Context& context) {
  static auto& handles = *new PerGpu<Handle>();
  return handles.of(context);
}

class CudnnCandidate final : public Candidate {
 public:
  CudnnCandidate(std::shared_ptr<const CudnnGraph> graph, CudnnPlan plan, const CudnnBuffers& of,
                 size_t mostWorkspaceBytes)
      : graph_(std::move(graph)),
        plan_(std::move(plan)),
        operands_(of.bytes.size() - 1),
        number_(of.number),
        mostWorkspaceBytes_(mostWorkspaceBytes) {}
  std::string name() const override { return plan_.name(); }
  bool prepare(Context& context) override try {
    Handle& handle = handleOf(context);
    const std::lock_guard<std::mutex> turn(handle.mutex);
    context.use();
    if (!isPrepared_) plan_.prepare({handle.value});
    isPrepared_ = true;
    return workspaceBytes() <= mostWorkspaceBytes_;
  } catch (const CudnnRefusal&) {
    return false;
  }
  size_t workspaceBytes() const override { return static_cast<size_t>(plan_.workspaceBytes()); }
  void run(Context& context, void* const* operands, void* result, void* workspace) const override {
    std::vector<void*> buffers(operands, operands + operands_);
    buffers.push_back(result);
    if (number_) buffers.push_back(const_cast<float*>(number_));
    Handle& handle = handleOf(context);
    const std::lock_guard<std::mutex> turn(handle.mutex);
    context.use();
    cudnn().table().cudnnSetStream(handle.value, reinterpret_cast<cudaStream_t>(context.stream()));
    plan_.run(handle.value, buffers, workspace);
  }

 private:
  const std::shared_ptr<const CudnnGraph> graph_;  // of the plan
  CudnnPlan plan_;
  const size_t operands_;
  const float* const number_;
  const size_t mostWorkspaceBytes_;
  bool isPrepared_ = false;
};

// Those of the heuristics, each once.
std::vector<CudnnPlan> plansOf(Context& context, CudnnGraph& graph,
                               const std::vector<cudnnBackendHeurMode_t>& heuristics,
                               bool onTensorCores) {
  Handle& handle = handleOf(context);
  const std::lock_guard<std::mutex> turn(handle.mutex);
  context.use();
  std::vector<CudnnPlan> plans;
  for (const auto heuristic : heuristics) {
    for (CudnnPlan& plan : graph.plans(heuristic, {handle.value}, onTensorCores)) {
      if (plans.size() == kMostCandidates) break;
      const auto isIt = [name = plan.name()](const CudnnPlan& each) { return each.name() == name; };
      if (std::ranges::none_of(plans, isIt)) plans.push_back(std::move(plan));
    }
  }
  return plans;
}

}  // namespace

std::string textOf(const OperatorCall& call) {
  std::string text = detail::concat(ir::opName(call.op), ir::printAttrs(call.op, call.attrs));
  for (const ir::ValueType& operand : call.operands) text += " " + operand.toString();
  return text + " " + call.result.toString();
}

std::shared_ptr<const DeviceCall> makeCudnnCall(Context& context, std::shared_ptr<CudnnGraph> graph,
                                                const std::string& name, CudnnBuffers buffers,
                                                bool onTensorCores, size_t mostWorkspaceBytes) {
  const std::string text = detail::concat("cuDNN ", cudnn().table().cudnnGetVersion(), " ", name);
  // B thinks longer than A, and often better.
  for (const auto& heuristics :
       {std::vector{CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_A}, std::vector{CUDNN_HEUR_MODE_FALLBACK}}) {
    Candidates candidates;
    for (CudnnPlan& plan : plansOf(context, *graph, heuristics, onTensorCores)) {
      auto each =
          std::make_shared<CudnnCandidate>(graph, std::move(plan), buffers, mostWorkspaceBytes);
      // The first is one that is made.
      if (!candidates.empty() || each->prepare(context)) candidates.push_back(std::move(each));
    }
    if (!candidates.empty()) {
      return std::make_shared<MeasuredCall>(context, text, std::move(buffers.bytes),
                                            std::move(candidates));
    }
  }
  return nullptr;
}

std::shared_ptr<const DeviceCall> findCudnnCall(Context& context, const OperatorCall& call,
                                                CudnnMaker make) {
  if (!cudnn().isThere()) return nullptr;
  using Known = std::pair<OperatorCall, std::shared_ptr<const DeviceCall>>;
  static std::mutex mutex;
  static auto& all = *new std::map<int, std::vector<Known>>();  // by GPU
  const std::lock_guard<std::mutex> lock(mutex);
  std::vector<Known>& known = all[context.number()];
  const auto found = std::ranges::find(known, call, &Known::first);
  if (found != known.end()) return found->second;
  std::shared_ptr<const DeviceCall> result;
  try {
    result = make(context, call);
  } catch (const CudnnRefusal& refusal) {
    logWarning(detail::concat(refusal.what(), "; ", ir::opName(call.op), " is made of kernels"));
  }
  return known.emplace_back(call, std::move(result)).second;
}

}  // namespace fl::runtime::cuda
