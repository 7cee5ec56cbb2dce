#include "fl/lazy/LazyBackend.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <ostream>

#include "fl/base/Error.h"
#include "fl/base/Flags.h"
#include "fl/base/PooledAllocator.h"
#include "fl/base/WordCache.h"
#include "fl/definitions/Definitions.h"
#include "fl/definitions/Trace.h"
#include "fl/lazy/Engine.h"
#include "fl/runtime/MemoryManager.h"
#include "fl/tensor/Capture.h"
#include "fl/tensor/DefaultTensorType.h"

namespace fl {
namespace {

using lazy::LazyNode;
using lazy::LazyNodePtr;

template <class... Arguments>
LazyNodePtr makeNode(Arguments&&... arguments) {
  return std::allocate_shared<LazyNode>(PooledAllocator<LazyNode>(),
                                        std::forward<Arguments>(arguments)...);
}

// What was not called for longest is found anew.
constexpr size_t kMostComposites = 1024;

class LazyBackend : public TensorBackend {
 public:
  explicit LazyBackend(const std::string& device) : engine_(device) {}

  std::string name() const override { return "lazy"; }
  TensorBackendType backendType() const override { return TensorBackendType::Jit; }
  bool supportsDataType(const dtype&) const override { return true; }
  bool isOnHost() const override { return &engine_.device().memory() == &runtime::hostMemory(); }
  TensorValue fromNumber(const Number& number) override { return makeNode(*this, engine_, number); }
  TensorValue fromHost(const void* data, const ir::ValueType& type) override {
    return makeNode(*this, engine_, type,
                    engine_.device().memory().make(data, bytesOf(type.type, type.shape)));
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
    return record(op, std::move(nodes), attrs, std::move(type));
  }

  // What a function is made of, from the second call with operands of the same types on, is known
  // without running it. What a recorded function reads, fl::compile has to see read.
  bool runsComposites() const override { return !detail::activeCapture; }
  std::vector<Tensor> applyComposite(const CompositeCall& call) override {
    std::unique_lock lock(lazy::engineMutex());
    const Trace* const trace = findTrace(call);
    if (!trace) {
      lock.unlock();
      return TensorBackend::applyComposite(call);
    }
    std::vector<TensorValue> values = call.operands;
    values.reserve(trace->graph.valueCount());
    for (const Number& constant : trace->constants) values.push_back(fromNumber(constant));
    for (const ir::Node& node : trace->graph.nodes()) {
      lazy::LazyOperands nodes;
      for (ir::ValueId operand : node.operands) nodes.push_back(nodeOf(values[operand]));
      values.push_back(record(node.op, std::move(nodes), node.attrs, node.type));
    }
    std::vector<Tensor> results;
    for (ir::ValueId result : trace->graph.results()) results.emplace_back(values[result]);
    return results;
  }

  lazy::Engine& engine() { return engine_; }

 private:
  TensorValue record(ir::Op op, lazy::LazyOperands&& operands, const ir::Attrs& attrs,
                     ir::ValueType type) {
    // Values are immutable: the same elements serve both shapes. A function that is compiled reads
    // them anew at each call.
    const bool shares = op == ir::Op::Reshape && !detail::activeCapture;
    const MemoryBlockPtr elements = shares ? operands[0]->readyBuffer() : nullptr;
    auto node = elements
                    ? makeNode(*this, engine_, std::move(type), elements)
                    : makeNode(*this, engine_, op, std::move(operands), attrs, std::move(type));
    elements ? void(node->site = currentCallSite()) : engine_.record(node);
    return node;
  }

  // Null if what the call records is not known, or depends on more than its operands' types: on how
  // it writes to tensors, or on a number that the host casts.
  const Trace* findTrace(const CompositeCall& call) {
    absl::InlinedVector<int64_t, 48> key(call.words.begin(), call.words.end());
    for (const TensorValue& operand : call.operands) {
      key.push_back(operand->number() != nullptr);
      ir::addWords(&key, operand->valueType());
    }
    Composite* const found = composites_.find(key);
    if (!found) {
      composites_.insert(key, {});
    } else if (!std::exchange(found->isTraced, true)) {
      found->trace = trace(call);
      const auto depends = [&](const ir::Node& node) {
        return node.site.writes() || node.site.indexed() ||
               (node.op == ir::Op::Cast && found->trace->graph.isNumber(node.operands[0]));
      };
      if (found->trace && std::ranges::any_of(found->trace->graph.nodes(), depends))
        found->trace.reset();
    }
    return found && found->trace ? &*found->trace : nullptr;
  }

  // The node of a value; one that another backend made comes in with its elements.
  LazyNodePtr nodeOf(TensorValue value) {
    if (&value->backend() == this) return std::static_pointer_cast<LazyNode>(std::move(value));
    if (value->number()) return makeNode(*this, engine_, *value->number());
    return makeNode(*this, engine_, value->valueType(), value->data());
  }

  // Of functions that were called once, or more often.
  struct Composite {
    bool isTraced = false;
    std::optional<Trace> trace;
  };
  mutable lazy::Engine engine_;
  WordCache<Composite> composites_{kMostComposites};  // under the engine's mutex
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
