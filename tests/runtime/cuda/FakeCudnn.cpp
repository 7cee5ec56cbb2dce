#include "tests/runtime/cuda/FakeCudnn.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "tests/runtime/cuda/FakeCudnnGraph.h"
#include "tests/runtime/cuda/FakeDevice.h"
#include "tests/runtime/cuda/FakeGpu.h"

namespace fl::testing {
namespace {

std::mutex mutex;  // of these
std::vector<FakePlan> offered;
std::vector<int64_t> plansRun;
bool refusesGraphs = false;
std::map<cudnnHandle_t, CUstream> streams;

constexpr int64_t kWorkspaceBytes = 256;

size_t sizeOf(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
      return 1;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;
  }
}

Descriptor& at(cudnnBackendDescriptor_t descriptor) {
  return *reinterpret_cast<Descriptor*>(descriptor);
}

enum class Direction { Forward, Data, Filter };

// Adds every product of an input, a filter's and an output's element to the one that is made.
struct Work {
  Direction direction;
  Elements input, filter, output;
  std::vector<int64_t> strides, padding, dilation;
  std::optional<Elements> bias;

  void run() const {
    const Elements& made = direction == Direction::Forward ? output
                           : direction == Direction::Data  ? input
                                                           : filter;
    std::map<Elements::Index, double> sums;
    everyIndex(made.sizes, [&](const Elements::Index& index) { sums[index] = 0; });
    everyIndex(output.sizes, [&](const Elements::Index& o) {
      everyIndex({1, filter.sizes[1], filter.sizes[2], filter.sizes[3]},
                 [&](const Elements::Index& k) { addOne(sums, o, k); });
    });
    for (const auto& [index, sum] : sums) {
      made.write(index, bias ? sum + bias->read({0, index[1], 0, 0}) : sum);
    }
  }

 private:
  void addOne(std::map<Elements::Index, double>& sums, const Elements::Index& o,
              Elements::Index k) const {
    const int64_t groups = input.sizes[1] / filter.sizes[1];
    const int64_t group = o[1] / (filter.sizes[0] / groups);
    k[0] = o[1];
    Elements::Index i = {o[0], group * filter.sizes[1] + k[1], 0, 0};
    for (int axis : {0, 1}) {
      i[2 + axis] = o[2 + axis] * strides[axis] - padding[axis] + k[2 + axis] * dilation[axis];
      if (i[2 + axis] < 0 || i[2 + axis] >= input.sizes[2 + axis]) return;
    }
    if (direction == Direction::Forward) sums[o] += input.read(i) * filter.read(k);
    if (direction == Direction::Data) sums[i] += output.read(o) * filter.read(k);
    if (direction == Direction::Filter) sums[k] += output.read(o) * input.read(i);
  }
};

bool isConvolution(const Descriptor& operation) {
  return operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ||
         operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ||
         operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
}

Work workOf(const std::vector<Descriptor*>& operations, const std::map<int64_t, char*>& buffers) {
  const Descriptor& first = *operations.at(0);
  const auto tensor = [&](const Descriptor& operation, int name) {
    return Elements(operation.other(name), buffers);
  };
  const auto make = [&](Direction direction, int input, int filter, int output, int convolution) {
    const Descriptor& windows = first.other(convolution);
    const auto both = [&](int name) { return windows.all<int64_t>(name); };
    return Work{direction,
                tensor(first, input),
                tensor(first, filter),
                tensor(first, output),
                both(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
                both(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
                both(CUDNN_ATTR_CONVOLUTION_DILATIONS),
                {}};
  };
  if (first.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR) {
    return make(Direction::Data, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC);
  }
  if (first.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR) {
    return make(Direction::Filter, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC);
  }
  Work work =
      make(Direction::Forward, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
  if (operations.size() == 1) return work;
  const Descriptor& addition = *operations[1];
  return {Direction::Forward, work.input,
          work.filter,        tensor(addition, CUDNN_ATTR_OPERATION_POINTWISE_YDESC),
          work.strides,       work.padding,
          work.dilation,      tensor(addition, CUDNN_ATTR_OPERATION_POINTWISE_BDESC)};
}

// What a configuration and its engine have of the plan that they are for; no attribute is it.
constexpr int kNumber = -1;

template <class T>
void setOne(Descriptor& descriptor, int name, T value) {
  const auto* bytes = reinterpret_cast<const char*>(&value);
  descriptor.attributes[name].assign(bytes, bytes + sizeof(value));
}

FakePlan planOf(const Descriptor& descriptor) {
  const auto number = descriptor.one<int64_t>(kNumber);
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = std::ranges::find(offered, number, &FakePlan::number);
  return found == offered.end() ? FakePlan{number} : *found;
}

std::vector<FakePlan> plansOf(const Descriptor& heuristic) {
  const bool isFallback =
      heuristic.one<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK;
  const std::lock_guard<std::mutex> lock(mutex);
  std::vector<FakePlan> plans = offered;
  std::erase_if(plans, [&](const FakePlan& each) { return each.isFallback != isFallback; });
  return plans;
}

cudnnStatus_t get(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t, int64_t most, int64_t* count, void* values) {
  const Descriptor& own = at(descriptor);
  const auto other = [&](int64_t i) -> Descriptor& {
    return at(static_cast<cudnnBackendDescriptor_t*>(values)[i]);
  };
  const auto give = [&](auto value) { std::memcpy(values, &value, sizeof(value)); };
  *count = 1;
  if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) give(kWorkspaceBytes);
  if (name == CUDNN_ATTR_ENGINE_GLOBAL_INDEX) give(own.one<int64_t>(kNumber) / 10);
  if (name == CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE) give(CUDNN_KNOB_TYPE_TILE_SIZE);
  if (name == CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE) give(own.one<int64_t>(kNumber) % 10);
  if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) {
    *count = planOf(own).isExact ? 0 : 1;
    if (*count == 1) give(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
  }
  if (most > 0 &&
      (name == CUDNN_ATTR_ENGINECFG_ENGINE || name == CUDNN_ATTR_ENGINECFG_KNOB_CHOICES)) {
    setOne(other(0), kNumber, own.one<int64_t>(kNumber));
  }
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
    const std::vector<FakePlan> plans = plansOf(own);
    *count = std::ssize(plans);
    for (int64_t i = 0; i < std::min(most, *count); ++i) {
      // The graph, too, which no attribute of a configuration says.
      other(i).attributes = own.attributes;
      setOne(other(i), kNumber, plans[i].number);
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize(cudnnBackendDescriptor_t descriptor) {
  const Descriptor& own = at(descriptor);
  if (own.type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR && refusesGraphs)
    return CUDNN_STATUS_BAD_PARAM;
  if (own.type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) return CUDNN_STATUS_SUCCESS;
  return planOf(own.other(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)).isMade
             ? CUDNN_STATUS_SUCCESS
             : CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t execute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                      cudnnBackendDescriptor_t pack) {
  if (handle != reinterpret_cast<cudnnHandle_t>(currentFakeContext()))
    return CUDNN_STATUS_BAD_PARAM;
  const auto numbers = at(pack).all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = at(pack).all<char*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  std::map<int64_t, char*> buffers;
  for (size_t i = 0; i < numbers.size(); ++i) buffers[numbers[i]] = pointers[i];
  auto* workspace = at(pack).one<char*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  const Descriptor& configuration = at(plan).other(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const FakePlan offer = planOf(configuration);
  if (!offer.runs) return CUDNN_STATUS_EXECUTION_FAILED;
  const Descriptor& graph = configuration.other(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  const auto operations = graph.all<Descriptor*>(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  const bool convolves = isConvolution(*operations.at(0));
  const std::function<void()> work =
      convolves ? std::function<void()>([made = workOf(operations, buffers)] { made.run(); })
                : workOfGraph(operations, buffers);
  const auto run = [work, workspace] {
    std::memset(workspace, 0xff, kWorkspaceBytes);
    work();
  };
  const CUstream stream = [&] {
    const std::lock_guard<std::mutex> lock(mutex);
    return streams.at(handle);
  }();
  putIntoStream(stream, convolves ? "convolution" : "graph", run, offer.milliseconds);
  const std::lock_guard<std::mutex> lock(mutex);
  plansRun.push_back(offer.number);
  return CUDNN_STATUS_SUCCESS;
}

library::cuda::Cudnn table() {
  library::cuda::Cudnn table;
  table.cudnnGetVersion = [] { return size_t{CUDNN_VERSION}; };
  table.cudnnGetErrorString = [](cudnnStatus_t) { return "told to fail"; };
  table.cudnnCreate = [](cudnnHandle_t* handle) {
    *handle = reinterpret_cast<cudnnHandle_t>(currentFakeContext());
    return CUDNN_STATUS_SUCCESS;
  };
  table.cudnnSetStream = [](cudnnHandle_t handle, cudaStream_t of) {
    const std::lock_guard<std::mutex> lock(mutex);
    streams[handle] = reinterpret_cast<CUstream>(of);
    return CUDNN_STATUS_SUCCESS;
  };
  table.cudnnBackendCreateDescriptor = [](cudnnBackendDescriptorType_t type,
                                          cudnnBackendDescriptor_t* descriptor) {
    *descriptor = reinterpret_cast<cudnnBackendDescriptor_t>(new Descriptor{type, {}});
    return CUDNN_STATUS_SUCCESS;
  };
  table.cudnnBackendDestroyDescriptor = [](cudnnBackendDescriptor_t descriptor) {
    delete &at(descriptor);
    return CUDNN_STATUS_SUCCESS;
  };
  table.cudnnBackendSetAttribute =
      [](cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
         cudnnBackendAttributeType_t type, int64_t count, const void* values) {
        const auto* bytes = static_cast<const char*>(values);
        at(descriptor).attributes[name].assign(bytes, bytes + count * sizeOf(type));
        return CUDNN_STATUS_SUCCESS;
      };
  table.cudnnBackendGetAttribute = get;
  table.cudnnBackendFinalize = finalize;
  table.cudnnBackendExecute = execute;
  return table;
}

}  // namespace

void installFakeCudnn() { library::cuda::cudnn().install(table()); }
void offerPlans(std::vector<FakePlan> plans) {
  const std::lock_guard<std::mutex> lock(mutex);
  offered = std::move(plans);
}
void offerConvolutions(bool does) {
  offerPlans(does ? std::vector<FakePlan>{{10}} : std::vector<FakePlan>());
}
void refuseGraphs(bool does) { refusesGraphs = does; }
std::vector<int64_t> takePlansRun() {
  const std::lock_guard<std::mutex> lock(mutex);
  return std::exchange(plansRun, {});
}

}  // namespace fl::testing
