// The CPU without its libraries: their operators are made of kernels, as on a GPU, so that values
// may be compared to the bit.
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

inline TensorBackend& cpuWithoutLibraries() {
  static auto& backend = *new WithoutLibraries(*[] {
    const BackendScope cpu("lazy", "cpu");
    return &defaultTensorBackend();
  }());
  return backend;
}

}  // namespace fl::testing
