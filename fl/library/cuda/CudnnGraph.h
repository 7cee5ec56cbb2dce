// cuDNN's graph API: operations on tensors, described, planned and run.
//
// Describing needs no GPU, nor does planning for one whose properties are given. Plans are
// deterministic: 16-bit floats are added up in f32, and nothing goes through Winograd's or
// Fourier's transforms.
#pragma once

#include <deque>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "fl/base/Types.h"
#include "fl/library/cuda/Cudnn.h"

namespace fl::library::cuda {

// cuDNN does not take what it is told.
struct CudnnRefusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

cudnnDataType_t cudnnType(dtype type);

// Its functions throw CudnnRefusal.
class CudnnDescriptor {
 public:
  CudnnDescriptor(const Cudnn& library, cudnnBackendDescriptorType_t type);
  ~CudnnDescriptor();
  CudnnDescriptor(CudnnDescriptor&& other)
      : library_(other.library_), handle_(std::exchange(other.handle_, nullptr)) {}

  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       int64_t count, const void* values);
  template <class T>
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       const T& value) {
    return set(name, type, 1, &value);
  }
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.handle_);
  }
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, int64_t value) {
    return set(name, CUDNN_TYPE_INT64, value);
  }
  CudnnDescriptor& set(cudnnBackendAttributeName_t name, const std::vector<int64_t>& values) {
    return set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
  }
  CudnnDescriptor& finish();

  // How many there are, of which as many as fit are written.
  int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most,
              void* values) const;
  template <class T>
  T get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const {
    T value = {};
    get(name, type, 1, &value);
    return value;
  }
  // Those that an attribute consists of, of type `as`, at most `most`.
  std::vector<CudnnDescriptor> getAll(cudnnBackendAttributeName_t name,
                                      cudnnBackendDescriptorType_t as, int64_t most) const;
  cudnnBackendDescriptor_t handle() const { return handle_; }

 private:
  const Cudnn& library_;
  cudnnBackendDescriptor_t handle_ = nullptr;
};

// What a plan is for: a GPU, or one that has these properties.
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;
  const CudnnDescriptor* properties = nullptr;
};

// A way to compute the operations of a graph. Its functions throw CudnnRefusal.
class CudnnPlan {
 public:
  // Of what a heuristic has found.
  CudnnPlan(const Cudnn& library, CudnnDescriptor configuration);

  // The engine and how it is set: "engine 17, 2=1, 5=0".
  std::string name() const;
  std::vector<cudnnBackendNumericalNote_t> notes() const;
  // For what follows.
  void prepare(const CudnnTarget& target);
  int64_t workspaceBytes() const { return workspaceBytes_; }
  // Puts it into the handle's stream; one call at a time for a handle.
  void run(cudnnHandle_t handle, std::span<void* const> buffers, void* workspace) const;

 private:
  const Cudnn& library_;
  CudnnDescriptor configuration_, engine_, plan_;
  int64_t workspaceBytes_ = 0;
};

class CudnnGraph {
 public:
  static constexpr int64_t kAlignment = 64;  // of every buffer
  using Axes = const std::vector<int64_t>&;  // of each axis of a tensor

  explicit CudnnGraph(const Cudnn& library) : library_(library) {}

  // Lives as long as the graph.
  CudnnDescriptor& add(cudnnBackendDescriptorType_t type);
  // A tensor's number is that of its buffer in CudnnPlan::run(); a virtual one has none.
  const CudnnDescriptor& addTensor(int64_t number, dtype type, Axes sizes, Axes strides) {
    return tensor(number, type, sizes, strides).finish();
  }
  const CudnnDescriptor& addVirtual(dtype type, Axes sizes, Axes strides) {
    return tensor(virtuals_++, type, sizes, strides)
        .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true)
        .finish();
  }
  // A number of the host, of f32; the buffer is where it lies.
  const CudnnDescriptor& addNumber(int64_t number) {
    return tensor(number, dtype::f32, {1, 1, 1, 1}, {1, 1, 1, 1})
        .set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, true)
        .finish();
  }
  // Takes a finished operation, in their order.
  void addOperation(const CudnnDescriptor& operation) { operations_.push_back(operation.handle()); }
  // y = mode(x, b), of x alone if b is null, computed in `type`.
  void addPointwise(cudnnPointwiseMode_t mode, dtype type, const CudnnDescriptor& x,
                    const CudnnDescriptor* b, const CudnnDescriptor& y);

  // Those that a heuristic finds, first what it thinks best; f32 is cut to TF32 on tensor cores.
  // All operations are there.
  std::vector<CudnnPlan> plans(cudnnBackendHeurMode_t heuristic, const CudnnTarget& target,
                               bool onTensorCores);

 private:
  CudnnDescriptor& tensor(int64_t number, dtype type, Axes sizes, Axes strides);
  const CudnnDescriptor& finished(const CudnnTarget& target);

  const Cudnn& library_;
  std::deque<CudnnDescriptor> descriptors_;
  std::vector<cudnnBackendDescriptor_t> operations_;
  const CudnnDescriptor* finished_ = nullptr;
  int64_t virtuals_ = 1 << 16;  // what the next one is called; buffers are fewer
};

}  // namespace fl::library::cuda
