// A device without its libraries: their operators are made of kernels, so that values may be
// compared to the bit.
#pragma once

#include <vector>

#include "fl/definitions/Definitions.h"
#include "fl/tensor/ForwardingBackend.h"

namespace fl::testing {

class WithoutLibraries final : public ForwardingBackend {
 public:
  explicit WithoutLibraries(TensorBackend& inner) : ForwardingBackend(inner) {}

  TensorValue apply(ir::Op op, std::vector<TensorValue> operands, const ir::Attrs& attrs,
                    ir::ValueType type) override {
    return ir::opKind(op) == ir::Kind::Library
               ? define(op, std::move(operands), attrs)
               : ForwardingBackend::apply(op, std::move(operands), attrs, std::move(type));
  }
};

inline TensorBackend& makeWithoutLibraries(const char* device) {
  const BackendScope scope("lazy", device);
  return *new WithoutLibraries(defaultTensorBackend());
}
inline TensorBackend& cpuWithoutLibraries() {
  static TensorBackend& backend = makeWithoutLibraries("cpu");
  return backend;
}
inline TensorBackend& cudaWithoutLibraries() {
  static TensorBackend& backend = makeWithoutLibraries("cuda");
  return backend;
}

}  // namespace fl::testing
