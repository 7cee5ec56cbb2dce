// A backend's own state for one immutable value. Tensors (TensorBase.h) are handles on such values;
// all aliasing is solved there, so that no backend ever sees a view or a write.
//
// That is why Flashlight's adapter interface is not repeated here: copies share the value (clone,
// copy, shallowCopy); views, assignment and in-place updates (index, flat, flatten, assign,
// inPlace...), locking (device, unlock, isLocked), the context and printing are Tensor's; astype is
// the op Cast; every value is contiguous at the API (isContiguous, strides, asContiguousTensor);
// sparse matrices are parts in dense values (isSparse); streams are the devices' (Device.h); and
// host memory comes in through TensorBackend::fromHost, which stands for adapter constructors.
#pragma once

#include <memory>

#include "fl/base/MemoryBlock.h"
#include "fl/base/Shape.h"
#include "fl/ir/Graph.h"

namespace fl {

class TensorBackend;

class TensorAdapterBase {
 public:
  TensorAdapterBase(TensorBackend& backend, ir::ValueType type)
      : backend_(backend), type_(std::move(type)) {}
  virtual ~TensorAdapterBase() = default;
  TensorAdapterBase(const TensorAdapterBase&) = delete;
  TensorAdapterBase& operator=(const TensorAdapterBase&) = delete;

  const ir::ValueType& valueType() const { return type_; }
  const Shape& shape() const { return type_.shape; }
  dtype type() const { return type_.type; }
  size_t bytes() const { return bytesOf(type(), shape()); }
  TensorBackend& backend() const { return backend_; }

  // The elements, contiguous and column-major; computes them if they are pending. It is how a value
  // made by one backend is used by another.
  virtual MemoryBlockPtr data() = 0;
  // True if no other value has the same memory: who alone holds this one may overwrite it.
  virtual bool ownsData() const { return false; }
  // The value if it is a number that is known on the host, else null.
  virtual const Number* number() const { return nullptr; }

 private:
  TensorBackend& backend_;
  ir::ValueType type_;
};

using TensorValue = std::shared_ptr<TensorAdapterBase>;

}  // namespace fl
