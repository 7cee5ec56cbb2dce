// A backend that counts what is read on the host.
#pragma once

#include "fl/tensor/ForwardingBackend.h"

namespace fl::testing {

class CountingBackend : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  void toHost(const TensorValue& value, void* data) override {
    ++reads;
    ForwardingBackend::toHost(value, data);
  }

  int reads = 0;
};

}  // namespace fl::testing
