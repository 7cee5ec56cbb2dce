#include "fl/eager/EagerBackend.h"

#include <mutex>
#include <optional>
#include <ostream>

#include "absl/container/inlined_vector.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/base/WordCache.h"
#include "fl/definitions/Definitions.h"
#include "fl/ir/Inference.h"
#include "fl/runtime/Device.h"
#include "fl/runtime/MemoryManager.h"
#include "fl/tensor/DefaultTensorType.h"

namespace fl {
namespace {

class EagerValue : public EagerTensor {
 public:
  EagerValue(TensorBackend& backend, ir::ValueType type, MemoryBlockPtr buffer)
      : EagerTensor(backend, std::move(type)), buffer_(std::move(buffer)) {}
  EagerValue(TensorBackend& backend, const Number& number)
      : EagerTensor(backend, {number.type(), Shape()}), number_(number) {}

  MemoryBlockPtr data() override {
    if (!number_) {
      return buffer_;
    }
    const uint64_t bits = number_->bits();
    return runtime::makeBlock(&bits, bytes());
  }
  bool ownsData() const override { return isHeldBy(1, buffer_); }
  const Number* number() const override { return number_ ? &*number_ : nullptr; }

 private:
  MemoryBlockPtr buffer_;
  std::optional<Number> number_;
};

using SchedulePtr = std::shared_ptr<const runtime::LoadedSchedule>;

// Schedules beyond these are built again when they are needed again.
constexpr size_t kMaxSchedules = 4096;

// Everything a schedule of one op depends on. Few ops have more words than fit inline.
using ScheduleKey = absl::InlinedVector<int64_t, 32>;

ScheduleKey scheduleKey(ir::Op op, const std::vector<TensorValue>& operands,
                        const ir::Attrs& attrs) {
  ScheduleKey key = {static_cast<int64_t>(op), static_cast<int64_t>(attrs.size())};
  key.insert(key.end(), attrs.values().begin(), attrs.values().end());
  for (const TensorValue& operand : operands) {
    const std::vector<Dim>& dims = operand->shape().get();
    key.push_back(operand->number() ? -1 : operand->shape().ndim());
    key.push_back(static_cast<int64_t>(operand->type()));
    key.insert(key.end(), dims.begin(), dims.end());
  }
  return key;
}

class EagerBackend : public TensorBackend {
 public:
  explicit EagerBackend(const std::string& device) : device_(runtime::makeDevice(device)) {}

  std::string name() const override { return "eager"; }
  TensorBackendType backendType() const override { return TensorBackendType::Eager; }
  bool supportsDataType(const dtype&) const override { return true; }
  TensorValue fromNumber(const Number& number) override {
    return std::make_shared<EagerValue>(*this, number);
  }
  TensorValue fromHost(const void* data, const ir::ValueType& type) override {
    return std::make_shared<EagerValue>(*this, type,
                                        runtime::makeBlock(data, bytesOf(type.type, type.shape)));
  }
  void eval(const TensorValue&) override {}
  void sync() override {}

  void getMemMgrInfo(const char* msg, const int, std::ostream* ostream) override {
    *ostream << msg << "\n" << runtime::describeHostMemory() << std::endl;
  }
  void setMemMgrLogStream(std::ostream* stream) override { runtime::setMemoryLogStream(stream); }
  void setMemMgrLoggingEnabled(const bool enabled) override { runtime::setMemoryLogging(enabled); }
  void setMemMgrFlushInterval(const size_t interval) override {
    runtime::setMemoryLogInterval(interval);
  }

  TensorValue apply(ir::Op op, std::vector<TensorValue> operands, const ir::Attrs& attrs,
                    ir::ValueType type) override {
    if (mustDefine(*device_, op, operands, attrs, type)) {
      return define(op, std::move(operands), attrs);
    }
    if (op == ir::Op::Reshape) {
      // Values are immutable: the same elements serve both shapes.
      return std::make_shared<EagerValue>(*this, std::move(type), operands[0]->data());
    }
    const SchedulePtr schedule = find(op, operands, attrs, type);
    absl::InlinedVector<MemoryBlockPtr, 4> buffers;
    absl::InlinedVector<Number, 4> numbers(operands.size());
    for (size_t i = 0; i < operands.size(); ++i) {
      const Number* number = operands[i]->number();
      buffers.push_back(number ? nullptr : operands[i]->data());
      if (number) {
        numbers[i] = *number;
      }
    }
    absl::InlinedVector<bool, 4> spare(operands.size(), false);
    if (op == ir::Op::Update) {
      spare[0] = currentCallSite().replaces();
    }
    try {
      auto elements = schedule->run(buffers, numbers, spare)[0];
      return std::make_shared<EagerValue>(*this, std::move(type), std::move(elements));
    } catch (const ir::IndexOutOfRange& error) {
      throwUser(ir::badIndexMessage(error.bad, operands[0]->valueType(), attrs[0]));
    }
  }

 private:
  // The schedule of one op, which another thread may drop from the cache while it runs.
  SchedulePtr find(ir::Op op, const std::vector<TensorValue>& operands, const ir::Attrs& attrs,
                   const ir::ValueType& type) {
    const ScheduleKey key = scheduleKey(op, operands, attrs);
    std::lock_guard<std::mutex> lock(mutex_);
    if (const SchedulePtr* found = schedules_.find(key)) {
      return *found;
    }
    ir::Graph graph;
    ir::Node node{op, {}, attrs, type, currentCallSite()};
    for (const TensorValue& operand : operands) {
      node.operands.push_back(
          graph.addParameter({operand->valueType(), operand->number() != nullptr}));
    }
    graph.setResults({graph.addNode(std::move(node))});
    SchedulePtr schedule =
        device_->load(ir::scheduleSingleNode(graph, device_->lowering()), &kernels_);
    if (schedules_.insert(key, schedule)) {
      runtime::dropUnused(&kernels_);
    }
    return schedule;
  }

  std::unique_ptr<runtime::Device> device_;
  std::mutex mutex_;
  WordCache<SchedulePtr> schedules_{kMaxSchedules};
  runtime::KernelCache kernels_;
};

const BackendRegistration registration("eager", makeEagerBackend);

}  // namespace

std::unique_ptr<TensorBackend> makeEagerBackend(const std::string& device) {
  return std::make_unique<EagerBackend>(device);
}

}  // namespace fl
