#include "fl/lazy/LazyBackend.h"

#include "fl/base/Error.h"
#include "fl/base/Flags.h"
#include "fl/base/PooledAllocator.h"
#include "fl/definitions/Definitions.h"
#include "fl/lazy/Engine.h"
#include "fl/runtime/MemoryManager.h"
#include "fl/tensor/Capture.h"

namespace fl {
namespace {

using lazy::LazyNode;
using lazy::LazyNodePtr;

class LazyBackend : public TensorBackend {
 public:
  explicit LazyBackend(const std::string& device) : engine_(device) {}

  std::string name() const override { return "lazy"; }
  TensorBackendType backendType() const override { return TensorBackendType::Jit; }
  bool supportsDataType(const dtype&) const override { return true; }
  bool isOnHost() const override { return &engine_.device().memory() == &runtime::hostMemory(); }
  TensorValue fromNumber(const Number& number) override { return makeNode(number); }
  TensorValue fromHost(const void* data, const ir::ValueType& type) override {
    return makeNode(type, engine_.device().memory().make(data, bytesOf(type.type, type.shape)));
  }
  void onUpdate(const std::shared_ptr<detail::TensorStorage>& tensor, const TensorValue& old,
                const TensorValue& value) override {
    engine_.noteUpdate(tensor, old, std::static_pointer_cast<LazyNode>(value));
  }
  void eval(const TensorValue&) override { engine_.endSegment(); }
  void sync() override {
    engine_.realizeAll();
    engine_.device().memory().finish();
  }

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
    if (mustDefine(engine_.device(), op, operands, attrs, type))
      return define(op, std::move(operands), attrs);
    lazy::LazyOperands nodes;
    for (TensorValue& operand : operands) nodes.push_back(nodeOf(std::move(operand)));
    // Values are immutable: the same elements serve both shapes. A function that is compiled reads
    // them anew at each call.
    const bool shares = op == ir::Op::Reshape && !detail::activeCapture;
    const MemoryBlockPtr elements = shares ? nodes[0]->readyBuffer() : nullptr;
    auto node = elements ? makeNode(std::move(type), elements)
                         : makeNode(op, std::move(nodes), attrs, std::move(type));
    elements ? void(node->site = currentCallSite()) : engine_.record(node);
    return node;
  }

  // What a recorded function reads, fl::compile has to see read.
  bool runsComposites() const override { return !detail::activeCapture; }
  std::vector<Tensor> applyComposite(const CompositeCall& call) override {
    std::unique_lock lock(lazy::engineMutex());
    const RecordedCompositePtr composite = composites_.find(call);
    if (!composite) {
      lock.unlock();
      return TensorBackend::applyComposite(call);
    }
    lazy::LazyOperands operands;
    operands.reserve(call.operands.size() + composite->constants.size());
    for (const TensorValue& operand : call.operands) operands.push_back(nodeOf(operand));
    for (const TensorValue& constant : composite->constants) operands.push_back(nodeOf(constant));
    const auto made = [&](lazy::LazyOperands&& read, const ir::Attrs& attrs, size_t result) {
      return makeNode(ir::Op::Reshape, std::move(read), attrs, composite->typeOf(result));
    };
    const size_t count = composite->graph.results().size();
    LazyNodePtr node = made(std::move(operands), {}, 0);
    node->composite = composite;
    engine_.record(node, count == 1);
    std::vector<Tensor> results;
    if (count == 1) results.emplace_back(TensorValue(node));
    for (size_t i = results.size(); i < count; ++i) {
      auto part = made({node}, {static_cast<Dim>(i)}, i);
      if (i + 1 == count) node = nullptr;  // parts alone hold it
      engine_.record(part, i + 1 == count);
      results.emplace_back(TensorValue(std::move(part)));
    }
    return results;
  }

  lazy::Engine& engine() { return engine_; }

 private:
  template <class... Arguments>
  LazyNodePtr makeNode(Arguments&&... arguments) {
    return std::allocate_shared<LazyNode>(PooledAllocator<LazyNode>(), *this, engine_,
                                          std::forward<Arguments>(arguments)...);
  }
  // The node of a value; one that another backend made comes in with its elements.
  LazyNodePtr nodeOf(TensorValue value) {
    if (&value->backend() == this) return std::static_pointer_cast<LazyNode>(std::move(value));
    return lazy::makeValueNode(*this, engine_, *value);
  }

  mutable lazy::Engine engine_;
  RecordedComposites composites_{*this};  // under the engine's mutex
};

const BackendRegistration registration("lazy", makeLazyBackend);

}  // namespace

std::unique_ptr<TensorBackend> makeLazyBackend(const std::string& device) {
  return std::make_unique<LazyBackend>(device);
}

void setOnSync(OnSync action) {
  constexpr const char* kNames[] = {"allow", "warn", "throw"};
  const std::lock_guard<std::recursive_mutex> lock(lazy::engineMutex());
  flags().onSync = kNames[static_cast<int>(action)];
}

lazy::Engine* lazy::engineOf(TensorBackend& backend) {
  auto* lazy = dynamic_cast<LazyBackend*>(&backend);
  return lazy ? &lazy->engine() : nullptr;
}

void waitForCompiler(TensorBackend& backend) {
  lazy::Engine* engine = lazy::engineOf(backend);
  FL_USER_CHECK(engine, "waitForCompiler: the backend \"", backend.name(), "\" compiles nothing");
  engine->waitForCompiler();
}

}  // namespace fl
