#include "tests/runtime/cuda/FakeCudnn.h"

#include <atomic>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "fl/base/Types.h"
#include "fl/runtime/cuda/Cudnn.h"
#include "tests/runtime/cuda/FakeGpu.h"

namespace fl::testing {
namespace {

std::atomic<bool> offers = false;
std::atomic<CUstream> stream = nullptr;

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

struct Descriptor {
  cudnnBackendDescriptorType_t type;
  std::map<int, std::vector<char>> attributes;

  template <class T>
  std::vector<T> all(int name) const {
    const auto found = attributes.find(name);
    if (found == attributes.end()) return {};
    std::vector<T> values(found->second.size() / sizeof(T));
    std::memcpy(values.data(), found->second.data(), found->second.size());
    return values;
  }
  template <class T>
  T one(int name) const {
    return all<T>(name).at(0);
  }
  const Descriptor& other(int name) const { return **all<Descriptor*>(name).begin(); }
};

Descriptor& at(cudnnBackendDescriptor_t descriptor) {
  return *reinterpret_cast<Descriptor*>(descriptor);
}

// A tensor's elements by image, channel, row and column.
class Elements {
 public:
  Elements(const Descriptor& tensor, const std::map<int64_t, char*>& buffers)
      : sizes(tensor.all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS)),
        strides_(tensor.all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES)) {
    const auto type = tensor.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
    type_ = type == CUDNN_DATA_DOUBLE  ? dtype::f64
            : type == CUDNN_DATA_FLOAT ? dtype::f32
            : type == CUDNN_DATA_HALF  ? dtype::f16
                                       : dtype::bf16;
    const auto buffer = buffers.find(tensor.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID));
    if (buffer != buffers.end()) data_ = buffer->second;
  }

  using Index = std::array<int64_t, 4>;
  double read(const Index& index) const {
    uint64_t bits = 0;
    std::memcpy(&bits, place(index), getTypeSize(type_));
    return Number(type_, bits).toDouble();
  }
  void write(const Index& index, double value) const {
    const uint64_t bits = Number::fromDouble(value, type_).bits();
    std::memcpy(place(index), &bits, getTypeSize(type_));
  }

  const std::vector<int64_t> sizes;

 private:
  char* place(const Index& index) const {
    int64_t offset = 0;
    for (int i = 0; i < 4; ++i) offset += sizes[i] == 1 ? 0 : index[i] * strides_[i];
    return data_ + offset * getTypeSize(type_);
  }
  std::vector<int64_t> strides_;
  dtype type_;
  char* data_ = nullptr;
};

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
  template <class Body>
  static void everyIndex(const std::vector<int64_t>& sizes, const Body& body) {
    Elements::Index i;
    for (i[0] = 0; i[0] < sizes[0]; ++i[0]) {
      for (i[1] = 0; i[1] < sizes[1]; ++i[1]) {
        for (i[2] = 0; i[2] < sizes[2]; ++i[2]) {
          for (i[3] = 0; i[3] < sizes[3]; ++i[3]) body(i);
        }
      }
    }
  }

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

cudnnStatus_t get(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t, int64_t most, int64_t* count, void* values) {
  *count = name == CUDNN_ATTR_ENGINEHEUR_RESULTS      ? (offers ? 1 : 0)
           : name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE ? 0
                                                      : 1;
  if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
    std::memcpy(values, &kWorkspaceBytes, sizeof(kWorkspaceBytes));
  } else if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS && most > 0) {
    // What it is a configuration for, which no attribute says.
    at(*static_cast<cudnnBackendDescriptor_t*>(values)).attributes = at(descriptor).attributes;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t execute(cudnnHandle_t, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  const auto numbers = at(pack).all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = at(pack).all<char*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  std::map<int64_t, char*> buffers;
  for (size_t i = 0; i < numbers.size(); ++i) buffers[numbers[i]] = pointers[i];
  auto* workspace = at(pack).one<char*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  const Descriptor& graph = at(plan)
                                .other(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)
                                .other(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  const Work work = workOf(graph.all<Descriptor*>(CUDNN_ATTR_OPERATIONGRAPH_OPS), buffers);
  putIntoStream(stream, "convolution", [work, workspace] {
    std::memset(workspace, 0xff, kWorkspaceBytes);
    work.run();
  });
  return CUDNN_STATUS_SUCCESS;
}

runtime::cuda::Cudnn table() {
  runtime::cuda::Cudnn table;
  table.cudnnGetErrorString = [](cudnnStatus_t) { return "told to fail"; };
  table.cudnnCreate = [](cudnnHandle_t* handle) {
    *handle = reinterpret_cast<cudnnHandle_t>(&offers);
    return CUDNN_STATUS_SUCCESS;
  };
  table.cudnnSetStream = [](cudnnHandle_t, cudaStream_t of) {
    stream = reinterpret_cast<CUstream>(of);
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
  table.cudnnBackendFinalize = [](cudnnBackendDescriptor_t) { return CUDNN_STATUS_SUCCESS; };
  table.cudnnBackendExecute = execute;
  return table;
}

}  // namespace

void installFakeCudnn() { runtime::cuda::cudnn().install(table()); }
void offerConvolutions(bool does) { offers = does; }

}  // namespace fl::testing
