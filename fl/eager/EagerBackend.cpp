#include "fl/eager/EagerBackend.h"

#include <mutex>
#include <optional>
#include <ostream>
#include <span>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/base/Flags.h"
#include "fl/base/ForkSafeMutex.h"
#include "fl/base/Log.h"
#include "fl/base/WordCache.h"
#include "fl/codegen/Compilation.h"
#include "fl/definitions/Definitions.h"
#include "fl/definitions/Trace.h"
#include "fl/ir/Inference.h"
#include "fl/ir/Slot.h"
#include "fl/ir/Text.h"
#include "fl/runtime/Device.h"
#include "fl/runtime/Failure.h"
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
    if (!number_) return buffer_;
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

// A composite as one schedule of its operands and the constants; without one, its operators run
// one by one.
struct CompositePlan {
  SchedulePtr schedule;
  std::vector<Number> constants;
};
using CompositePtr = std::shared_ptr<const CompositePlan>;

// Schedules beyond these are built again when they are needed again.
constexpr size_t kMaxSchedules = 4096;

// Everything a schedule of one op depends on. Few ops have more words than fit inline.
using ScheduleKey = absl::InlinedVector<int64_t, 32>;

// `words` tell what is computed of the operands.
ScheduleKey scheduleKey(int64_t kind, std::span<const Dim> words,
                        std::span<const TensorValue> operands) {
  ScheduleKey key = {kind, static_cast<int64_t>(words.size())};
  key.insert(key.end(), words.begin(), words.end());
  for (const TensorValue& operand : operands) {
    key.push_back(operand->number() != nullptr);
    ir::addWords(&key, operand->valueType());
  }
  return key;
}

class EagerBackend : public TensorBackend {
 public:
  explicit EagerBackend(const std::string& device) : device_(runtime::makeDevice(device)) {}

  std::string name() const override { return "eager"; }
  TensorBackendType backendType() const override { return TensorBackendType::Eager; }
  bool supportsDataType(const dtype&) const override { return true; }
  bool isOnHost() const override { return &device_->memory() == &runtime::hostMemory(); }
  TensorValue fromNumber(const Number& number) override {
    return std::make_shared<EagerValue>(*this, number);
  }
  TensorValue fromHost(const void* data, const ir::ValueType& type) override {
    return makeValue(type, device_->memory().make(data, bytesOf(type.type, type.shape)));
  }
  void eval(const TensorValue&) override {}
  void sync() override { device_->memory().finish(); }

  void getMemMgrInfo(const char* msg, const int device, std::ostream* ostream) override {
    runtime::printHostMemory(msg, device, ostream);
  }
  void setMemMgrLogStream(std::ostream* stream) override { runtime::setMemoryLogStream(stream); }
  void setMemMgrLoggingEnabled(const bool enabled) override { runtime::setMemoryLogging(enabled); }
  void setMemMgrFlushInterval(const size_t interval) override {
    runtime::setMemoryLogInterval(interval);
  }

  TensorValue apply(ir::Op op, std::vector<TensorValue> operands, const ir::Attrs& attrs,
                    ir::ValueType type) override {
    if (mustDefine(*device_, op, operands, attrs, type))
      return define(op, std::move(operands), attrs);
    // Values are immutable: the same elements serve both shapes.
    if (op == ir::Op::Reshape) return makeValue(std::move(type), operands[0]->data());
    const SchedulePtr schedule = find(op, operands, attrs, type);
    const Arguments arguments(operands);
    absl::InlinedVector<bool, 4> spare(operands.size(), false);
    if (opKind(op) == ir::Kind::Update) spare[0] = currentCallSite().replaces();
    try {
      auto elements = schedule->run(arguments.buffers, arguments.numbers, spare);
      return makeValue(std::move(type), std::move(elements[0]));
    } catch (const ir::IndexOutOfRange& error) {
      throwUser(ir::badIndexMessage(error.bad, operands[0]->valueType(), attrs[0]));
    }
  }

  bool runsComposites() const override { return device_->lowering() == ir::Lowering::Kernels; }
  std::vector<Tensor> applyComposite(const CompositeCall& call) override {
    const CompositePtr plan = findComposite(call);
    if (!plan->schedule) return TensorBackend::applyComposite(call);
    const Arguments arguments(call.operands, plan->constants);
    try {
      std::vector<Tensor> results;
      auto elements = plan->schedule->run(arguments.buffers, arguments.numbers);
      const auto& outputs = plan->schedule->schedule().outputs;
      for (size_t i = 0; i < elements.size(); ++i)
        results.emplace_back(makeValue(outputs[i].type, std::move(elements[i])));
      return results;
    } catch (const ir::IndexOutOfRange&) {
      return TensorBackend::applyComposite(call);  // the operator itself words the error
    }
  }

 private:
  TensorValue makeValue(ir::ValueType type, MemoryBlockPtr elements) {
    return std::make_shared<EagerValue>(*this, std::move(type), std::move(elements));
  }

  // What a schedule runs on: a buffer or a number for each operand and constant.
  struct Arguments {
    explicit Arguments(std::span<const TensorValue> operands,
                       std::span<const Number> constants = {}) {
      for (const TensorValue& operand : operands) {
        const Number* number = operand->number();
        buffers.push_back(number ? nullptr : operand->data());
        numbers.push_back(number ? *number : Number());
      }
      buffers.resize(buffers.size() + constants.size());
      numbers.insert(numbers.end(), constants.begin(), constants.end());
    }
    absl::InlinedVector<MemoryBlockPtr, 4> buffers;
    absl::InlinedVector<Number, 4> numbers;
  };

  CompositePtr findComposite(const CompositeCall& call) {
    // Their numbers are below those of operators, others whenever the compiler is extended.
    const ScheduleKey key = scheduleKey(-1 - ir::slotChanges(), call.words, call.operands);
    {
      std::lock_guard lock(mutex_);
      if (const CompositePtr* found = composites_.find(key)) return *found;
    }
    std::optional<Trace> traced = trace(call);
    std::lock_guard lock(mutex_);
    if (const CompositePtr* found = composites_.find(key)) return *found;  // another thread's
    auto plan = std::make_shared<CompositePlan>();
    if (traced) load(call.name, *traced, plan.get());
    if (composites_.insert(key, plan)) runtime::dropUnused(&kernels_);
    return plan;
  }

  void load(const char* name, Trace& traced, CompositePlan* plan) {
    try {
      ir::Schedule schedule = codegen::compile(traced.graph, {.lowering = device_->lowering(),
                                                              .skip = flags().skip,
                                                              .device = device_->traits()})
                                  .schedule;
      plan->schedule = device_->load(std::move(schedule), &kernels_);
      plan->constants = std::move(traced.constants);
    } catch (...) {
      runtime::reportFailure(
          absl::StrCat(name, " runs operator by operator"), runtime::caughtError(),
          ir::printGraph(traced.graph, "g", {.callSites = true}), currentCallSite());
    }
  }

  // The schedule of one op, which another thread may drop from the cache while it runs.
  SchedulePtr find(ir::Op op, const std::vector<TensorValue>& operands, const ir::Attrs& attrs,
                   const ir::ValueType& type) {
    const ScheduleKey key = scheduleKey(static_cast<int64_t>(op), attrs.values(), operands);
    std::lock_guard lock(mutex_);
    if (const SchedulePtr* found = schedules_.find(key)) return *found;
    ir::Graph graph;
    ir::Node node{op, {}, attrs, type};  // of no line: others will run it
    for (const TensorValue& operand : operands) {
      node.operands.push_back(
          graph.addParameter({operand->valueType(), operand->number() != nullptr}));
    }
    graph.setResults({graph.addNode(std::move(node))});
    SchedulePtr schedule =
        device_->load(ir::scheduleSingleNode(graph, device_->lowering()), &kernels_);
    if (schedules_.insert(key, schedule)) runtime::dropUnused(&kernels_);
    return schedule;
  }

  std::unique_ptr<runtime::Device> device_;
  ForkSafeMutex mutex_;
  WordCache<SchedulePtr> schedules_{kMaxSchedules};
  WordCache<CompositePtr> composites_{kMaxSchedules};
  runtime::KernelCache kernels_;
};

const BackendRegistration registration("eager", makeEagerBackend);

}  // namespace

std::unique_ptr<TensorBackend> makeEagerBackend(const std::string& device) {
  const std::string& check = flags().check;
  // What is of another device than the program's is what others are held against.
  if (device == flags().device && (check == "ref" || check.starts_with("nan")))
    logWarning("FL_CHECK=" + check + " checks the plans of the backend lazy; eager runs unchecked");
  return std::make_unique<EagerBackend>(device);
}

}  // namespace fl
