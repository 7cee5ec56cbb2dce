#include "fl/definitions/Trace.h"

#include <cstring>
#include <utility>

#include "fl/definitions/Definitions.h"
#include "fl/definitions/GraphRunner.h"

namespace fl {
namespace {

struct Untraceable {};

enum class Role { Operand, Constant, Node };

// Parameters precede nodes in a graph, and constants are found among these: so a value is known by
// its place among those of its role until all are there.
class TracedValue : public TensorAdapterBase {
 public:
  TracedValue(TensorBackend& backend, ir::ValueType type, Role role, int place)
      : TensorAdapterBase(backend, std::move(type)), role(role), place(place) {}
  TracedValue(TensorBackend& backend, const Number& number)
      : TensorAdapterBase(backend, {number.type(), Shape()}),
        role(Role::Constant),
        number_(number) {}

  MemoryBlockPtr data() override { throw Untraceable(); }
  const Number* number() const override { return number_ ? &*number_ : nullptr; }

  const Role role;
  int place = -1;  // of a constant that no operator reads, -1

 private:
  std::optional<Number> number_;
};

class Tracer : public TensorBackend {
 public:
  explicit Tracer(bool expandsLibrary) : expandsLibrary_(expandsLibrary) {}

  std::string name() const override { return "tracer"; }
  TensorBackendType backendType() const override { return TensorBackendType::Tracer; }
  bool supportsDataType(const dtype&) const override { return true; }
  TensorValue fromNumber(const Number& number) override {
    return std::make_shared<TracedValue>(*this, number);
  }
  TensorValue fromHostNumber(const std::function<Number()>&) override { throw Untraceable(); }
  TensorValue fromHost(const void*, const ir::ValueType&) override { throw Untraceable(); }
  void eval(const TensorValue&) override {}
  void sync() override {}

  TensorValue apply(ir::Op op, std::vector<TensorValue> operands, const ir::Attrs& attrs,
                    ir::ValueType type) override {
    if (ir::opKind(op) == ir::Kind::Library) {
      return expandsLibrary_ ? define(op, std::move(operands), attrs) : throw Untraceable();
    }
    Call call{{op, {}, attrs, type, currentCallSite()}, {}};
    for (const TensorValue& operand : operands) call.operands.push_back(reference(operand));
    calls_.push_back(std::move(call));
    return value(std::move(type), Role::Node, calls_.size() - 1);
  }

  Tensor addOperand(ir::Parameter operand) {
    operands_.push_back(operand);
    return Tensor(value(operand.type, Role::Operand, operands_.size() - 1));
  }

  Trace finish(const std::vector<Tensor>& results) {
    std::vector<Reference> references;
    for (const Tensor& result : results) references.push_back(reference(result.value()));
    Trace trace{{}, std::move(constants_)};
    for (const ir::Parameter& operand : operands_) trace.graph.addParameter(operand);
    for (const Number& constant : trace.constants) {
      trace.graph.addParameter({{constant.type(), Shape()}, true});
    }
    const auto idsOf = [&](const std::vector<Reference>& references) {
      std::vector<ir::ValueId> ids;
      for (const auto& [role, place] : references) {
        ids.push_back(role == Role::Node       ? trace.graph.idOfNode(place)
                      : role == Role::Constant ? static_cast<int>(operands_.size()) + place
                                               : place);
      }
      return ids;
    };
    for (Call& call : calls_) {
      call.node.operands = idsOf(call.operands);
      trace.graph.addNode(std::move(call.node));
    }
    trace.graph.setResults(idsOf(references));
    return trace;
  }

 private:
  struct Reference {
    Role role;
    int place;
  };
  struct Call {
    ir::Node node;
    std::vector<Reference> operands;
  };

  TensorValue value(ir::ValueType type, Role role, size_t place) {
    return std::make_shared<TracedValue>(*this, std::move(type), role, static_cast<int>(place));
  }

  Reference reference(const TensorValue& value) {
    if (&value->backend() != this) throw Untraceable();
    auto& traced = static_cast<TracedValue&>(*value);
    if (traced.role == Role::Constant && traced.place < 0) {
      traced.place = static_cast<int>(constants_.size());
      constants_.push_back(*traced.number());
    }
    return {traced.role, traced.place};
  }

  const bool expandsLibrary_;
  std::vector<ir::Parameter> operands_;
  std::vector<Number> constants_;
  std::vector<Call> calls_;
};

}  // namespace

std::optional<Trace> trace(const CompositeCall& call) {
  Tracer tracer(false);
  BackendScope scope(tracer);
  std::vector<Tensor> operands;
  for (const TensorValue& operand : call.operands) {
    operands.push_back(tracer.addOperand({operand->valueType(), operand->number() != nullptr}));
  }
  try {
    Trace traced = tracer.finish(call.run(operands));
    for (const ir::ValueId result : traced.graph.results()) {
      if (traced.graph.isNumber(result)) return std::nullopt;
    }
    return traced;
  } catch (const Untraceable&) {
    return std::nullopt;
  }
}

Trace expandLibrary(const ir::Graph& graph) {
  Tracer tracer(true);
  BackendScope scope(tracer);
  std::vector<Tensor> parameters;
  for (const ir::Parameter& parameter : graph.parameters()) {
    parameters.push_back(tracer.addOperand(parameter));
  }
  return tracer.finish(runGraph(graph, parameters));
}

void interpretCall(ir::Op op, const std::vector<ir::HostOperand>& operands, const ir::Attrs& attrs,
                   const ir::ValueType& type, void* result) {
  if (ir::opKind(op) != ir::Kind::Library) return interpret(op, operands, attrs, type, result);
  ir::Graph call;
  std::vector<ir::ValueId> ids;
  for (const ir::HostOperand& operand : operands) ids.push_back(call.addParameter({*operand.type}));
  call.setResults({call.addNode(op, std::move(ids), attrs)});
  const auto [graph, constants] = expandLibrary(call);
  std::vector<ir::HostOperand> values = operands;
  std::vector<uint64_t> bits;
  for (const Number& constant : constants) bits.push_back(constant.bits());
  for (const uint64_t& constant : bits) {
    values.push_back({&graph.type(static_cast<ir::ValueId>(values.size())), &constant});
  }
  std::vector<std::vector<char>> made(graph.valueCount());
  std::vector<int> uses = ir::useCounts(graph);
  for (const ir::Node& node : graph.nodes()) {
    std::vector<char>& bytes = made[values.size()];
    bytes.resize(bytesOf(node.type.type, node.type.shape));
    std::vector<ir::HostOperand> read;
    for (ir::ValueId id : node.operands) read.push_back(values[id]);
    ir::interpret(node.op, read, node.attrs, node.type, bytes.data());
    values.push_back({&node.type, bytes.data()});
    for (ir::ValueId id : node.operands) {
      if (--uses[id] == 0) made[id] = {};
    }
  }
  std::memcpy(result, values[graph.results()[0]].data, bytesOf(type.type, type.shape));
}

}  // namespace fl
