// The backends of this library as types, for the functions of TensorAdapter.h.
#pragma once

#include "fl/tensor/TensorAdapter.h"

namespace fl {

// The base of the values of the backend named "lazy": recorded, fused, compiled.
class LazyTensor : public TensorAdapterBase {
 public:
  static constexpr TensorBackendType tensorBackendType = TensorBackendType::Jit;
  static TensorBackend& tensorBackend() { return getBackend("lazy"); }
  using TensorAdapterBase::TensorAdapterBase;
};

// The base of the values of the backend named "eager": computed when they are asked for.
class EagerTensor : public TensorAdapterBase {
 public:
  static constexpr TensorBackendType tensorBackendType = TensorBackendType::Eager;
  static TensorBackend& tensorBackend() { return getBackend("eager"); }
  using TensorAdapterBase::TensorAdapterBase;
};

// Those of a program that sets neither FL_BACKEND nor another default. Backends are chosen while a
// program runs: defaultTensorBackend() is the one in use.
using DefaultTensorType_t = LazyTensor;
using DefaultTensorBackend_t = TensorBackend;

}  // namespace fl
