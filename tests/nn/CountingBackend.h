// A backend that counts what is read on the host.
#pragma once

#include <memory>
#include <string>

#include "tests/ForwardingBackend.h"

namespace fl::test {

class CountingBackend : public testing::ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  // What a BackendScope calls it; it forwards to the default one.
  static const char* registered() {
    static const char* const name = [] {
      TensorBackend& inner = defaultTensorBackend();
      registerBackend("counting",
                      [&](const std::string&) { return std::make_unique<CountingBackend>(inner); });
      return "counting";
    }();
    return name;
  }

  void toHost(const TensorValue& value, void* data) override {
    ++reads;
    ForwardingBackend::toHost(value, data);
  }

  static inline int reads = 0;
};

}  // namespace fl::test
