#include "fl/eager/EagerBackend.h"

#include <cstring>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_map>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/ir/Inference.h"
#include "fl/runtime/Device.h"

namespace fl {
namespace {

using runtime::BufferPtr;

BufferPtr makeBuffer(const ir::ValueType& type, const void* data) {
  const size_t bytes = static_cast<size_t>(type.shape.elements()) * getTypeSize(type.type);
  auto buffer = std::make_shared<runtime::Buffer>(bytes);
  if (data && bytes > 0) {
    std::memcpy(buffer->data(), data, bytes);
  }
  return buffer;
}

class EagerValue : public TensorAdapterBase {
 public:
  EagerValue(TensorBackend& backend, ir::ValueType type, BufferPtr buffer)
      : TensorAdapterBase(backend, std::move(type)), buffer_(std::move(buffer)) {}
  EagerValue(TensorBackend& backend, const Number& number)
      : TensorAdapterBase(backend, {number.type(), Shape()}), number_(number) {}

  BufferPtr data() override {
    if (!number_) {
      return buffer_;
    }
    const uint64_t bits = number_->bits();
    return makeBuffer(valueType(), &bits);
  }
  const Number* number() const override { return number_ ? &*number_ : nullptr; }

 private:
  BufferPtr buffer_;
  std::optional<Number> number_;
};

// Everything a schedule of one op depends on, as bytes.
std::string scheduleKey(ir::Op op, const std::vector<TensorValue>& operands,
                        const ir::Attrs& attrs) {
  std::string key;
  auto add = [&](Dim value) { key.append(reinterpret_cast<const char*>(&value), sizeof(value)); };
  add(static_cast<Dim>(op));
  add(static_cast<Dim>(attrs.size()));
  for (Dim attr : attrs.values()) {
    add(attr);
  }
  for (const TensorValue& operand : operands) {
    add(operand->number() ? -1 : operand->shape().ndim());
    add(static_cast<Dim>(operand->type()));
    for (Dim dim : operand->shape().get()) {
      add(dim);
    }
  }
  return key;
}

class EagerBackend : public TensorBackend {
 public:
  explicit EagerBackend(const std::string& device) : device_(runtime::makeDevice(device)) {}

  std::string name() const override { return "eager"; }
  TensorBackendType backendType() const override { return TensorBackendType::Stub; }
  bool supportsDataType(const dtype&) const override { return true; }
  bool supportsLibrary(ir::Op op, const std::vector<ir::ValueType>& operands,
                       const ir::Attrs& attrs, const ir::ValueType& type) const override {
    return device_->supportsLibrary(op, operands, attrs, type);
  }
  TensorValue fromNumber(const Number& number) override {
    return std::make_shared<EagerValue>(*this, number);
  }
  TensorValue fromHost(const void* data, const ir::ValueType& type) override {
    return std::make_shared<EagerValue>(*this, type, makeBuffer(type, data));
  }
  void toHost(const TensorValue& value, void* data) override {
    const size_t bytes =
        static_cast<size_t>(value->shape().elements()) * getTypeSize(value->type());
    std::memcpy(data, value->data()->data(), bytes);
  }
  void eval(const TensorValue&) override {}
  void sync() override {}

  TensorValue apply(ir::Op op, std::vector<TensorValue> operands, const ir::Attrs& attrs,
                    const ir::ValueType& type) override {
    if (op == ir::Op::Reshape) {
      // Values are immutable: the same elements serve both shapes.
      return std::make_shared<EagerValue>(*this, type, operands[0]->data());
    }
    const runtime::LoadedSchedule& schedule = find(op, operands, attrs, type);
    std::vector<BufferPtr> buffers;
    std::vector<Number> numbers(operands.size());
    for (size_t i = 0; i < operands.size(); ++i) {
      const Number* number = operands[i]->number();
      buffers.push_back(number ? nullptr : operands[i]->data());
      if (number) {
        numbers[i] = *number;
      }
    }
    try {
      return std::make_shared<EagerValue>(*this, type, schedule.run(buffers, numbers)[0]);
    } catch (const ir::IndexOutOfRange& error) {
      std::vector<const ir::ValueType*> types;
      for (const TensorValue& operand : operands) {
        types.push_back(&operand->valueType());
      }
      throwUser(badIndexMessage(op, types, attrs, error.bad));
    }
  }

 private:
  const runtime::LoadedSchedule& find(ir::Op op, const std::vector<TensorValue>& operands,
                                      const ir::Attrs& attrs, const ir::ValueType& type) {
    const std::string key = scheduleKey(op, operands, attrs);
    {
      std::shared_lock<std::shared_mutex> lock(mutex_);
      const auto found = schedules_.find(key);
      if (found != schedules_.end()) {
        return *found->second;
      }
    }
    ir::Graph graph;
    ir::Node node{op, {}, attrs, type, currentCallSite()};
    for (const TensorValue& operand : operands) {
      node.operands.push_back(
          graph.addParameter({operand->valueType(), operand->number() != nullptr}));
    }
    graph.setResults({graph.addNode(std::move(node))});
    std::unique_lock<std::shared_mutex> lock(mutex_);
    auto& schedule = schedules_[key];
    if (!schedule) {
      schedule = device_->load(ir::scheduleSingleNode(graph, device_->lowering()), &kernels_);
    }
    return *schedule;
  }

  std::unique_ptr<runtime::Device> device_;
  std::shared_mutex mutex_;
  std::unordered_map<std::string, std::unique_ptr<runtime::LoadedSchedule>> schedules_;
  runtime::KernelCache kernels_;
};

const BackendRegistration registration("eager", makeEagerBackend);

}  // namespace

std::unique_ptr<TensorBackend> makeEagerBackend(const std::string& device) {
  return std::make_unique<EagerBackend>(device);
}

}  // namespace fl
