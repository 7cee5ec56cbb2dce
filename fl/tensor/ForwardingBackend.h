// A backend that passes everything on to another one: to derive from, for one that watches or
// replaces a part. An operator that is overridden calls ForwardingBackend's for what it did before.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fl/tensor/tensor.h"

namespace fl {

class ForwardingBackend : public TensorBackend {
 public:
  // `inner` must live longer.
  explicit ForwardingBackend(TensorBackend& inner) : inner_(inner) {}

  std::string name() const override { return "forwarding"; }
  TensorBackendType backendType() const override { return inner_.backendType(); }
  bool supportsDataType(const dtype& type) const override { return inner_.supportsDataType(type); }
  bool isOnHost() const override { return inner_.isOnHost(); }
  TensorValue apply(ir::Op op, std::vector<TensorValue> operands, const ir::Attrs& attrs,
                    ir::ValueType type) override {
    return inner_.apply(op, std::move(operands), attrs, std::move(type));
  }
  TensorValue fromNumber(const Number& number) override { return inner_.fromNumber(number); }
  TensorValue fromHost(const void* data, const ir::ValueType& type) override {
    return inner_.fromHost(data, type);
  }
  void toHost(const TensorValue& value, void* data) override { inner_.toHost(value, data); }
  void eval(const TensorValue& value) override { inner_.eval(value); }
  void sync() override { inner_.sync(); }

 private:
  TensorBackend& inner_;
};

}  // namespace fl
