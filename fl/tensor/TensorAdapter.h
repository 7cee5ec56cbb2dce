// A backend's own state for one immutable value. Tensors (TensorBase.h) are handles on such values;
// all aliasing is solved there, so that no backend ever sees a view or a write.
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
  // The value if it is a number that is known on the host, else null.
  virtual const Number* number() const { return nullptr; }

 private:
  TensorBackend& backend_;
  ir::ValueType type_;
};

using TensorValue = std::shared_ptr<TensorAdapterBase>;

}  // namespace fl
