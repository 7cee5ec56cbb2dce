#include "fl/lazy/LazyBackend.h"

#include <ostream>

#include "fl/base/Error.h"
#include "fl/lazy/Engine.h"
#include "fl/runtime/MemoryManager.h"
#include "fl/tensor/DefaultTensorType.h"

namespace fl {
namespace {

using lazy::LazyNode;
using lazy::LazyNodePtr;

class LazyValue : public LazyTensor {
 public:
  LazyValue(TensorBackend& backend, lazy::Engine& engine, LazyNodePtr node)
      : LazyTensor(backend, node->type), engine_(engine), node_(std::move(node)) {}

  MemoryBlockPtr data() override {
    engine_.realize(node_);
    if (node_->number) {
      const uint64_t bits = node_->number->bits();
      return runtime::makeBlock(&bits, bytes());
    }
    return node_->buffer;
  }
  const Number* number() const override { return node_->number ? &*node_->number : nullptr; }
  const LazyNodePtr& node() const { return node_; }

 private:
  lazy::Engine& engine_;
  LazyNodePtr node_;
};

class LazyBackend : public TensorBackend {
 public:
  explicit LazyBackend(const std::string& device) : engine_(device) {}

  std::string name() const override { return "lazy"; }
  TensorBackendType backendType() const override { return TensorBackendType::Jit; }
  bool supportsDataType(const dtype&) const override { return true; }
  bool supportsLibrary(ir::Op op, const std::vector<ir::ValueType>& operands,
                       const ir::Attrs& attrs, const ir::ValueType& type) const override {
    return engine_.device().supportsLibrary(op, operands, attrs, type);
  }
  TensorValue fromNumber(const Number& number) override {
    return wrap(std::make_shared<LazyNode>(number));
  }
  TensorValue fromHost(const void* data, const ir::ValueType& type) override {
    return wrap(
        std::make_shared<LazyNode>(type, runtime::makeBlock(data, bytesOf(type.type, type.shape))));
  }
  void eval(const TensorValue&) override { engine_.endSegment(); }
  void sync() override { engine_.realizeAll(); }

  void getMemMgrInfo(const char* msg, const int, std::ostream* ostream) override {
    *ostream << msg << "\n" << runtime::describeHostMemory() << std::endl;
  }
  void setMemMgrLogStream(std::ostream* stream) override { runtime::setMemoryLogStream(stream); }
  void setMemMgrLoggingEnabled(const bool enabled) override { runtime::setMemoryLogging(enabled); }
  void setMemMgrFlushInterval(const size_t interval) override {
    runtime::setMemoryLogInterval(interval);
  }

  TensorValue apply(ir::Op op, std::vector<TensorValue> operands, const ir::Attrs& attrs,
                    const ir::ValueType& type) override {
    std::vector<LazyNodePtr> nodes;
    nodes.reserve(operands.size());
    for (const TensorValue& operand : operands) {
      nodes.push_back(nodeOf(operand));
    }
    auto node = std::make_shared<LazyNode>(op, std::move(nodes), attrs, type);
    engine_.record(node);
    return wrap(std::move(node));
  }

  lazy::Engine& engine() { return engine_; }

 private:
  TensorValue wrap(LazyNodePtr node) {
    return std::make_shared<LazyValue>(*this, engine_, std::move(node));
  }

  // The node of a value; one that another backend made comes in with its elements.
  LazyNodePtr nodeOf(const TensorValue& value) {
    if (&value->backend() == this) {
      return static_cast<LazyValue&>(*value).node();
    }
    if (value->number()) {
      return std::make_shared<LazyNode>(*value->number());
    }
    return std::make_shared<LazyNode>(value->valueType(), value->data());
  }

  mutable lazy::Engine engine_;
};

const BackendRegistration registration("lazy", makeLazyBackend);

}  // namespace

std::unique_ptr<TensorBackend> makeLazyBackend(const std::string& device) {
  return std::make_unique<LazyBackend>(device);
}

void waitForCompiler(TensorBackend& backend) {
  auto* lazy = dynamic_cast<LazyBackend*>(&backend);
  FL_USER_CHECK(lazy, "waitForCompiler: the backend \"", backend.name(), "\" compiles nothing");
  lazy->engine().waitForCompiler();
}

}  // namespace fl
