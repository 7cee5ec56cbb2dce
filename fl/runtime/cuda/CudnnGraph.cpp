#include "fl/runtime/cuda/CudnnGraph.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "fl/base/Error.h"

namespace fl::runtime::cuda {
namespace {

// More scratch memory than any plan is worth.
constexpr int64_t kMostWorkspaceBytes = int64_t{1} << 28;

template <class... Words>
void check(const Cudnn& library, cudnnStatus_t status, const Words&... words) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw CudnnRefusal(detail::withCallSite(
      detail::concat("cuDNN: ", words..., ": ", library.cudnnGetErrorString(status))));
}

}  // namespace

cudnnDataType_t cudnnType(dtype type) {
  return type == dtype::f64   ? CUDNN_DATA_DOUBLE
         : type == dtype::f32 ? CUDNN_DATA_FLOAT
         : type == dtype::f16 ? CUDNN_DATA_HALF
                              : CUDNN_DATA_BFLOAT16;
}

CudnnDescriptor::CudnnDescriptor(const Cudnn& library, cudnnBackendDescriptorType_t type)
    : library_(library) {
  check(library, library.cudnnBackendCreateDescriptor(type, &handle_), "descriptor ",
        static_cast<int>(type));
}

CudnnDescriptor::~CudnnDescriptor() { library_.cudnnBackendDestroyDescriptor(handle_); }

CudnnDescriptor& CudnnDescriptor::set(cudnnBackendAttributeName_t name,
                                      cudnnBackendAttributeType_t type, int64_t count,
                                      const void* values) {
  check(library_, library_.cudnnBackendSetAttribute(handle_, name, type, count, values),
        "attribute ", static_cast<int>(name));
  return *this;
}

CudnnDescriptor& CudnnDescriptor::finish() {
  check(library_, library_.cudnnBackendFinalize(handle_), "a description");
  return *this;
}

int64_t CudnnDescriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                             int64_t most, void* values) const {
  int64_t count = 0;
  check(library_, library_.cudnnBackendGetAttribute(handle_, name, type, most, &count, values),
        "attribute ", static_cast<int>(name));
  return count;
}

CudnnDescriptor& CudnnGraph::add(cudnnBackendDescriptorType_t type) {
  return descriptors_.emplace_back(library_, type);
}

const CudnnDescriptor& CudnnGraph::addTensor(int64_t number, dtype type,
                                             const std::vector<int64_t>& sizes,
                                             const std::vector<int64_t>& strides, bool isVirtual) {
  return add(CUDNN_BACKEND_TENSOR_DESCRIPTOR)
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, number)
      .set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, cudnnType(type))
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, sizes)
      .set(CUDNN_ATTR_TENSOR_STRIDES, strides)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment)
      .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, isVirtual)
      .finish();
}

bool CudnnGraph::plan(const CudnnTarget& target, dtype type) {
  CudnnDescriptor& graph = add(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            static_cast<int64_t>(operations_.size()), operations_.data());
  if (target.handle) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  graph.finish();
  // B thinks longer than A, and chose steps of convolutional networks that were 1.3 times as fast.
  constexpr cudnnBackendHeurMode_t kHeuristics[] = {CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_A,
                                                    CUDNN_HEUR_MODE_FALLBACK};
  return std::ranges::any_of(
      kHeuristics, [&](auto heuristic) { return planBy(heuristic, graph, target, type); });
}

bool CudnnGraph::planBy(cudnnBackendHeurMode_t heuristic, const CudnnDescriptor& graph,
                        const CudnnTarget& target, dtype type) {
  constexpr auto kResults = CUDNN_ATTR_ENGINEHEUR_RESULTS;
  CudnnDescriptor& guess = add(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  guess.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, heuristic);
  if (target.properties) guess.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.properties);
  guess.finish();
  const int64_t count = guess.get(kResults, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
  std::vector<CudnnDescriptor*> configurations;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (int64_t i = 0; i < count; ++i) {
    configurations.push_back(&add(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    handles.push_back(configurations.back()->handle());
  }
  const int64_t found = guess.get(kResults, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, handles.data());
  configurations.resize(std::min(count, found));
  return std::ranges::any_of(configurations, [&](CudnnDescriptor* configuration) {
    return takes(*configuration, target, type);
  });
}

bool CudnnGraph::takes(CudnnDescriptor& configuration, const CudnnTarget& target, dtype type) try {
  CudnnDescriptor& engine = add(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t handle = engine.handle();
  configuration.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &handle);
  engine_ = &engine;
  const auto isExact = [&](cudnnBackendNumericalNote_t note) {
    return note == CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP ||
           (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && type != dtype::f32);
  };
  if (!std::ranges::all_of(notes(), isExact)) return false;
  CudnnDescriptor& plan = add(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  if (target.handle) {
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  } else {
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.properties);
  }
  plan.finish();
  plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &workspaceBytes_);
  plan_ = &plan;
  return workspaceBytes_ <= kMostWorkspaceBytes;
} catch (const CudnnRefusal&) {  // an engine that does not do it here
  return false;
}

std::vector<cudnnBackendNumericalNote_t> CudnnGraph::notes() const {
  std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  notes.resize(engine_->get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                            std::ssize(notes), notes.data()));
  return notes;
}

void CudnnGraph::run(cudnnHandle_t handle, std::span<void* const> buffers, void* workspace) const {
  std::vector<int64_t> numbers(buffers.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  CudnnDescriptor pack(library_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, numbers)
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::ssize(buffers),
           buffers.data())
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace)
      .finish();
  check(library_, library_.cudnnBackendExecute(handle, plan_->handle(), pack.handle()), "a call");
}

}  // namespace fl::runtime::cuda
