// Tensors and backends by the type of a backend's values.
//
// Such a type T derives from TensorAdapterBase and states `static constexpr TensorBackendType
// tensorBackendType` and `static TensorBackend& tensorBackend()`; DefaultTensorType.h has those of
// the backends here. Flashlight's TensorCreator and DefaultTensorType, by which types construct
// tensors, have no counterpart: a backend makes its values itself (TensorBackend::fromHost).
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "fl/tensor/TensorBackend.h"
#include "fl/tensor/TensorBase.h"

namespace fl {

// A tensor whose value is Impl(arguments...).
template <typename Impl, typename... T>
Tensor toTensor(T&&... arguments) {
  return Tensor(std::make_unique<Impl>(std::forward<T>(arguments)...));
}

// `tensor` itself if T's backend made it, else a copy of its elements there. Sparse matrices come
// in dense.
template <typename T>
Tensor toTensorType(Tensor&& tensor) {
  static_assert(std::is_base_of_v<TensorAdapterBase, T>);
  TensorBackend& backend = T::tensorBackend();
  if (&tensor.backend() == &backend) return std::move(tensor);
  const TensorValue value = detail::releaseAdapter(std::move(tensor));
  return Tensor(backend.fromHost(value->data()->onHost()->data(), value->valueType()));
}

// The same.
template <typename T>
Tensor to(Tensor&& tensor) {
  return toTensorType<T>(std::move(tensor));
}

// Makes T's backend the process's default.
template <typename T>
void setDefaultTensorType() {
  static_assert(std::is_base_of_v<TensorAdapterBase, T>);
  setDefaultTensorBackend(T::tensorBackend());
}

// Calls function() with T's backend as this thread's default.
template <typename T, typename Function>
void withTensorType(Function function) {
  static_assert(std::is_base_of_v<TensorAdapterBase, T>);
  const BackendScope scope(T::tensorBackend());
  function();
}

}  // namespace fl
