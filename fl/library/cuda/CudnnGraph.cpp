#include "fl/library/cuda/CudnnGraph.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "fl/base/Error.h"

namespace fl::library::cuda {
namespace {

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

CudnnDescriptor::~CudnnDescriptor() {
  if (handle_ != nullptr) library_.cudnnBackendDestroyDescriptor(handle_);
}

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

std::vector<CudnnDescriptor> CudnnDescriptor::getAll(cudnnBackendAttributeName_t name,
                                                     cudnnBackendDescriptorType_t as,
                                                     int64_t most) const {
  std::vector<CudnnDescriptor> all;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (int64_t i = 0; i < most; ++i) handles.push_back(all.emplace_back(library_, as).handle_);
  const int64_t found = get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, handles.data());
  while (std::ssize(all) > found) all.pop_back();
  return all;
}

CudnnPlan::CudnnPlan(const Cudnn& library, CudnnDescriptor configuration)
    : library_(library),
      configuration_(std::move(configuration)),
      engine_(library, CUDNN_BACKEND_ENGINE_DESCRIPTOR),
      plan_(library, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
  cudnnBackendDescriptor_t engine = engine_.handle();
  configuration_.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine);
}

std::string CudnnPlan::name() const {
  std::string name = detail::concat(
      "engine ", engine_.get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64));
  const auto knobs =
      configuration_.getAll(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                            CUDNN_KNOB_TYPE_COUNTS);
  for (const CudnnDescriptor& knob : knobs) {
    const auto type =
        knob.get<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE);
    const auto value = knob.get<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64);
    name += detail::concat(", ", static_cast<int>(type), "=", value);
  }
  return name;
}

std::vector<cudnnBackendNumericalNote_t> CudnnPlan::notes() const {
  std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  notes.resize(engine_.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                           std::ssize(notes), notes.data()));
  return notes;
}

void CudnnPlan::prepare(const CudnnTarget& target) {
  plan_.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration_);
  if (target.handle) {
    plan_.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  } else {
    plan_.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.properties);
  }
  plan_.finish();
  workspaceBytes_ = plan_.get<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64);
}

void CudnnPlan::run(cudnnHandle_t handle, std::span<void* const> buffers, void* workspace) const {
  std::vector<int64_t> numbers(buffers.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  CudnnDescriptor pack(library_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, numbers)
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::ssize(buffers),
           buffers.data())
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace)
      .finish();
  check(library_, library_.cudnnBackendExecute(handle, plan_.handle(), pack.handle()), "a call");
}

CudnnDescriptor& CudnnGraph::add(cudnnBackendDescriptorType_t type) {
  return descriptors_.emplace_back(library_, type);
}

CudnnDescriptor& CudnnGraph::tensor(int64_t number, dtype type, Axes sizes, Axes strides) {
  return add(CUDNN_BACKEND_TENSOR_DESCRIPTOR)
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, number)
      .set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, cudnnType(type))
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, sizes)
      .set(CUDNN_ATTR_TENSOR_STRIDES, strides)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment);
}

void CudnnGraph::addPointwise(cudnnPointwiseMode_t mode, dtype type, const CudnnDescriptor& x,
                              const CudnnDescriptor* b, const CudnnDescriptor& y) {
  auto& how = add(CUDNN_BACKEND_POINTWISE_DESCRIPTOR)
                  .set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode)
                  .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, cudnnType(type))
                  .finish();
  auto& operation = add(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
                        .set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how)
                        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x)
                        .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  if (b) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
  addOperation(operation.finish());
}

const CudnnDescriptor& CudnnGraph::finished(const CudnnTarget& target) {
  if (finished_ != nullptr) return *finished_;
  CudnnDescriptor& graph = add(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            static_cast<int64_t>(operations_.size()), operations_.data());
  if (target.handle) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  finished_ = &graph.finish();
  return graph;
}

std::vector<CudnnPlan> CudnnGraph::plans(cudnnBackendHeurMode_t heuristic,
                                         const CudnnTarget& target, bool onTensorCores) {
  CudnnDescriptor guess(library_, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  guess.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, finished(target))
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, heuristic);
  if (target.properties) guess.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.properties);
  guess.finish();
  constexpr auto kResults = CUDNN_ATTR_ENGINEHEUR_RESULTS;
  const int64_t count = guess.get(kResults, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
  const auto isExact = [&](cudnnBackendNumericalNote_t note) {
    return note == CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP ||
           (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && onTensorCores);
  };
  std::vector<CudnnPlan> plans;
  for (auto& found : guess.getAll(kResults, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, count)) {
    CudnnPlan plan(library_, std::move(found));
    if (std::ranges::all_of(plan.notes(), isExact)) plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace fl::library::cuda
