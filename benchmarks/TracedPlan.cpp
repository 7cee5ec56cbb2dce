#include "benchmarks/TracedPlan.h"

#include <optional>

#include "fl/codegen/Compilation.h"
#include "fl/codegen/cpu/Emitter.h"
#include "fl/definitions/Definitions.h"
#include "fl/runtime/MemoryManager.h"

namespace fl::bench {
namespace {

constexpr char kDevice[] = "cpu";

// Parameters and nodes are numbered apart while more of both may come.
struct TracedId {
  bool parameter;
  ir::ValueId index;
};

class TracedValue : public TensorAdapterBase {
 public:
  TracedValue(TensorBackend& backend, ir::ValueType type, TracedId id,
              std::optional<Number> number = {})
      : TensorAdapterBase(backend, std::move(type)), id(id), number_(number) {}

  MemoryBlockPtr data() override { throw ElementsRead(); }
  const Number* number() const override { return number_ ? &*number_ : nullptr; }

  const TracedId id;

 private:
  const std::optional<Number> number_;
};

class TracingBackend : public TensorBackend {
 public:
  std::string name() const override { return "trace"; }
  // Extensions are to do what they do for the lazy backend.
  TensorBackendType backendType() const override { return TensorBackendType::Jit; }
  bool supportsDataType(const dtype&) const override { return true; }
  TensorValue fromNumber(const Number& number) override {
    return parameter({{number.type(), Shape()}, true}, nullptr, number);
  }
  TensorValue fromHost(const void* data, const ir::ValueType& type) override {
    return parameter({type, false}, runtime::makeBlock(data, bytesOf(type.type, type.shape)), {});
  }
  TensorValue input(const TensorValue& value) {
    return parameter({value->valueType(), false}, value->data(), {});
  }
  void eval(const TensorValue&) override {}
  void sync() override {}

  TensorValue apply(ir::Op op, std::vector<TensorValue> operands, const ir::Attrs& attrs,
                    ir::ValueType type) override {
    if (mustDefine(*device_, op, operands, attrs, type)) {
      return define(op, std::move(operands), attrs);
    }
    std::vector<TracedId> ids;
    for (const TensorValue& operand : operands) {
      ids.push_back(static_cast<TracedValue&>(*operand).id);
    }
    operands_.push_back(std::move(ids));
    const int number = static_cast<int>(nodes_.size());
    nodes_.push_back({op, {}, attrs, type, {}, number});
    return std::make_shared<TracedValue>(*this, type, TracedId{false, number});
  }

  Trace finish(const std::vector<Tensor>& results) {
    for (const ir::Parameter& each : parameters_) {
      trace_.graph.addParameter(each);
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      for (TracedId operand : operands_[i]) {
        nodes_[i].operands.push_back(idOf(operand));
      }
      trace_.graph.addNode(nodes_[i]);
    }
    std::vector<ir::ValueId> ids;
    for (const Tensor& result : results) {
      ids.push_back(idOf(static_cast<TracedValue&>(*result.value()).id));
    }
    trace_.graph.setResults(std::move(ids));
    return std::move(trace_);
  }

 private:
  TensorValue parameter(ir::Parameter parameter, MemoryBlockPtr buffer,
                        std::optional<Number> number) {
    const TracedId id{true, static_cast<ir::ValueId>(parameters_.size())};
    auto value = std::make_shared<TracedValue>(*this, parameter.type, id, number);
    parameters_.push_back(std::move(parameter));
    trace_.buffers.push_back(std::move(buffer));
    trace_.numbers.push_back(number.value_or(Number()));
    return value;
  }
  ir::ValueId idOf(TracedId id) const {
    return id.index + (id.parameter ? 0 : static_cast<ir::ValueId>(parameters_.size()));
  }

  std::unique_ptr<runtime::Device> device_ = runtime::makeDevice(kDevice);
  std::vector<ir::Parameter> parameters_;
  std::vector<ir::Node> nodes_;
  std::vector<std::vector<TracedId>> operands_;  // of each node
  Trace trace_;
};

// The process's default backend is another while it lives.
class DefaultBackend {
 public:
  explicit DefaultBackend(TensorBackend& backend) : outer_(defaultTensorBackend()) {
    setDefaultTensorBackend(backend);
  }
  ~DefaultBackend() { setDefaultTensorBackend(outer_); }

 private:
  TensorBackend& outer_;
};

}  // namespace

Trace trace(const OpCase& opCase, const std::vector<Tensor>& inputs) {
  TracingBackend backend;
  const DefaultBackend scope(backend);
  std::vector<Tensor> traced;
  for (const Tensor& input : inputs) {
    traced.emplace_back(backend.input(input.value()));
  }
  return backend.finish(opCase.run(traced));
}

TracedPlan::TracedPlan(const Trace& trace)
    : device_(runtime::makeDevice(kDevice)), buffers_(trace.buffers), numbers_(trace.numbers) {
  codegen::CompileOptions options;
  options.lowering = device_->lowering();
  options.device = device_->traits();
  plan_ = device_->load(codegen::compile(trace.graph, options).schedule, &kernels_);
  for (const runtime::DeviceKernelPtr& kernel : plan_->kernels()) {
    kernel->setArtifact(
        codegen::cpu::emitKernel(kernel->kernel(), device_->target(), "kernel", kernel->stores()));
  }
}

void TracedPlan::run() const { plan_->run(buffers_, numbers_); }

}  // namespace fl::bench
