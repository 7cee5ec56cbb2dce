#include "tests/codegen/mlir/MlirBackend.h"

#include <map>
#include <optional>
#include <utility>

#include "fl/runtime/MemoryManager.h"
#include "tools/mlir/GraphJit.h"

namespace fl::testing {
namespace {

class MlirBackend;

// An operator that is recorded, or elements.
class MlirValue : public TensorAdapterBase {
 public:
  MlirValue(TensorBackend& backend, ir::ValueType type, MemoryBlockPtr elements)
      : TensorAdapterBase(backend, std::move(type)), elements(std::move(elements)) {}
  MlirValue(TensorBackend& backend, const Number& number)
      : TensorAdapterBase(backend, {number.type(), Shape()}), number_(number) {
    const uint64_t bits = number.bits();
    elements = runtime::makeBlock(&bits, getTypeSize(number.type()));
  }
  MlirValue(TensorBackend& backend, ir::ValueType type, ir::Op op,
            std::vector<TensorValue> operands, ir::Attrs attrs)
      : TensorAdapterBase(backend, std::move(type)),
        op(op),
        operands(std::move(operands)),
        attrs(std::move(attrs)) {}

  MemoryBlockPtr data() override;
  const Number* number() const override { return number_ ? &*number_ : nullptr; }

  MemoryBlockPtr elements;
  ir::Op op = ir::Op::Add;
  std::vector<TensorValue> operands;
  ir::Attrs attrs;

 private:
  std::optional<Number> number_;
};

class MlirBackend : public TensorBackend {
 public:
  std::string name() const override { return "mlir"; }
  TensorBackendType backendType() const override { return TensorBackendType::Stub; }
  bool supportsDataType(const dtype&) const override { return true; }

  TensorValue apply(ir::Op op, std::vector<TensorValue> operands, const ir::Attrs& attrs,
                    ir::ValueType type) override {
    for (TensorValue& operand : operands) {
      if (&operand->backend() != this) {
        operand = std::make_shared<MlirValue>(*this, operand->valueType(), operand->data());
      }
    }
    return std::make_shared<MlirValue>(*this, std::move(type), op, std::move(operands), attrs);
  }
  TensorValue fromNumber(const Number& number) override {
    return std::make_shared<MlirValue>(*this, number);
  }
  TensorValue fromHost(const void* data, const ir::ValueType& type) override {
    return std::make_shared<MlirValue>(*this, type,
                                       runtime::makeBlock(data, bytesOf(type.type, type.shape)));
  }
  void eval(const TensorValue& value) override { value->data(); }
  void sync() override {}
};

MlirValue& of(const TensorValue& value) { return static_cast<MlirValue&>(*value); }

// The values that one needs, operands first: those with elements, and the others.
struct Needed {
  std::vector<MlirValue*> known, pending;
};
Needed neededBy(MlirValue& value) {
  Needed needed;
  enum class State { New, Open, Done };
  std::map<MlirValue*, State> states;
  std::vector<MlirValue*> stack = {&value};
  while (!stack.empty()) {
    MlirValue* top = stack.back();
    State& state = states[top];
    if (state == State::New && !top->elements) {
      state = State::Open;
      for (const TensorValue& operand : top->operands) stack.push_back(&of(operand));
      continue;
    }
    stack.pop_back();
    if (std::exchange(state, State::Done) != State::Done) {
      (top->elements ? needed.known : needed.pending).push_back(top);
    }
  }
  return needed;
}

MemoryBlockPtr MlirValue::data() {
  if (elements) return elements;
  const Needed needed = neededBy(*this);
  ir::Graph graph;
  std::map<MlirValue*, ir::ValueId> ids;
  std::vector<const void*> parameters;
  for (MlirValue* each : needed.known) {
    ids[each] = graph.addParameter({each->valueType(), each->number() != nullptr});
    parameters.push_back(each->elements->data());
  }
  for (MlirValue* each : needed.pending) {
    std::vector<ir::ValueId> places;
    for (const TensorValue& operand : each->operands) places.push_back(ids.at(&of(operand)));
    ids[each] = graph.addNode({each->op, std::move(places), each->attrs, each->valueType()});
  }
  graph.setResults({ids.at(this)});
  ++mlirCounts().graphs;
  mlirCounts().nodes += graph.nodes().size();
  const std::vector<uint8_t> bytes = tools::GraphJit({graph}, "", 0).run(0, parameters)[0];
  elements = runtime::makeBlock(bytes.data(), bytes.size());
  operands.clear();
  return elements;
}

}  // namespace

MlirCounts& mlirCounts() {
  static MlirCounts counts;
  return counts;
}

void registerMlirBackend() {
  registerBackend("mlir", [](const std::string&) { return std::make_unique<MlirBackend>(); });
}

}  // namespace fl::testing
