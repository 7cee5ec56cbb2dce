// cuDNN's graph API: operations on tensors, described, planned and run.
//
// Describing needs no GPU, nor does planning for one whose properties are given. Plans are
// deterministic and in full precision: 16-bit floats are added up in f32, f32 is not cut to TF32,
// nothing goes through Winograd's or Fourier's transforms.
#pragma once

#include <deque>
#include <span>
#include <stdexcept>
#include <vector>

#include "fl/base/Types.h"
#include "fl/runtime/cuda/Cudnn.h"

namespace fl::runtime::cuda {

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
  CudnnDescriptor(const CudnnDescriptor&) = delete;

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

class CudnnGraph {
 public:
  static constexpr int64_t kAlignment = 64;  // of every buffer

  explicit CudnnGraph(const Cudnn& library) : library_(library) {}

  // Lives as long as the graph.
  CudnnDescriptor& add(cudnnBackendDescriptorType_t type);
  // A tensor's number is that of its buffer in run(); a virtual one has none.
  const CudnnDescriptor& addTensor(int64_t number, dtype type, const std::vector<int64_t>& sizes,
                                   const std::vector<int64_t>& strides, bool isVirtual = false);
  // Takes a finished operation, in their order.
  void addOperation(const CudnnDescriptor& operation) { operations_.push_back(operation.handle()); }

  // Chooses the plan that cuDNN thinks best for operations on `type`; false if it has none.
  bool plan(const CudnnTarget& target, dtype type);
  int64_t workspaceBytes() const { return workspaceBytes_; }
  // Of the plan.
  std::vector<cudnnBackendNumericalNote_t> notes() const;

  // Puts it into the handle's stream; one call at a time for a handle.
  void run(cudnnHandle_t handle, std::span<void* const> buffers, void* workspace) const;

 private:
  bool planBy(cudnnBackendHeurMode_t heuristic, const CudnnDescriptor& graph,
              const CudnnTarget& target, dtype type);
  bool takes(CudnnDescriptor& configuration, const CudnnTarget& target, dtype type);

  const Cudnn& library_;
  std::deque<CudnnDescriptor> descriptors_;
  std::vector<cudnnBackendDescriptor_t> operations_;
  CudnnDescriptor* plan_ = nullptr;
  CudnnDescriptor* engine_ = nullptr;  // of the plan
  int64_t workspaceBytes_ = 0;
};

}  // namespace fl::runtime::cuda
