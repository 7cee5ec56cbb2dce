#include "fl/kernel/Lower.h"

#include "fl/base/Error.h"

namespace fl::ir {
namespace {

class NodeLowering {
 public:
  NodeLowering(const Graph& graph, const Node& node, const std::vector<OperandSource>& operands,
               const BufferPlace& result, Schedule* schedule)
      : graph_(graph), node_(node), operands_(operands), result_(result), schedule_(schedule) {}

  bool run(Lowering lowering) {
    const size_t steps = schedule_->steps.size();
    if (node_.type.shape.elements() > 0) lowering == Lowering::Calls ? call() : emit();
    if (!held_) {
      schedule_->steps.resize(steps);
      if (denseOperands()) {
        call();
        held_ = true;
      }
    }
    return held_;
  }

 private:
  void emit() {
    switch (opKind(node_.op)) {
      case Kind::Unary:
      case Kind::Binary:
      case Kind::Select:
      case Kind::Cast:
        return elementwise();
      case Kind::Source:
        return iota();
      case Kind::Random:
        return random();
      case Kind::View:
        return view();
      case Kind::Index:
        return gather();
      case Kind::Join:
        return join();
      case Kind::Update:
        return node_.op == Op::Update ? update() : call();
      case Kind::Reduce:
        return reduce();
      case Kind::Contract:
        return contract();
      case Kind::Scan:
      case Kind::Order:
      case Kind::Library:
        return call();
    }
  }

  bool denseOperands() const {
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (operands_[i].number || !(graph_.isNumber(node_.operands[i]) ||
                                   isDense(operands_[i].layout, operandType(i).shape))) {
        return false;
      }
    }
    return true;
  }

  const Shape& shape() const { return node_.type.shape; }
  const ValueType& operandType(size_t i) const { return graph_.type(node_.operands[i]); }

  KernelBuilder mapBuilder(const Shape& space) const {
    return KernelBuilder(space, std::vector<bool>(space.ndim(), false));
  }

  // The number that operand i is or repeats.
  std::optional<ValueId> numberOf(size_t i) const {
    const ValueId id = node_.operands[i];
    return graph_.isNumber(id) ? std::optional(id) : operands_[i].number;
  }
  // A value of operand i under `access`.
  int readAt(KernelBuilder& builder, size_t i, Access access) const {
    const std::optional<ValueId> number = numberOf(i);
    return number
               ? builder.number(*number, graph_.type(*number).type)
               : builder.load(builder.addInput(operands_[i].buffer, operandType(i).type, access));
  }
  // A value of operand i broadcast to `space`.
  int read(KernelBuilder& builder, size_t i, const Shape& space) const {
    return readAt(
        builder, i,
        numberOf(i) ? Access{} : broadcastAccess(operands_[i].layout, operandType(i).shape, space));
  }

  void finish(KernelBuilder& builder) {
    std::optional<BuiltKernel> built = builder.finish();
    if (!built) {
      held_ = false;
      return;
    }
    built->launch.kernel = addKernel(schedule_, built->kernel);
    built->launch.site = node_.site;
    schedule_->steps.emplace_back(std::move(built->launch));
  }

  void storeMap(KernelBuilder& builder, int value, Access access) {
    access.offset.constant += result_.offset.constant;
    builder.beginStage(false);
    builder.store(builder.addOutput(result_.buffer, node_.type.type, std::move(access)), value);
    finish(builder);
  }

  void elementwise() {
    KernelBuilder builder = mapBuilder(shape());
    std::vector<int> args;
    for (size_t i = 0; i < node_.operands.size(); ++i) args.push_back(read(builder, i, shape()));
    const int value = builder.apply(node_.op, node_.type.type, args);
    storeMap(builder, value, contiguousAccess(shape()));
  }

  void gather() {
    const Dim axis = node_.attrs[0];
    KernelBuilder builder = mapBuilder(shape());
    const GatherAccess access = gatherAccess(operands_[0].layout, operandType(0).shape, axis);
    const int value = builder.gather(
        operands_[0].buffer, node_.type.type, broadcastAccess(access.layout, access.shape, shape()),
        read(builder, 1, shape()), access.stride, access.bound, node_.origin);
    storeMap(builder, value, contiguousAccess(shape()));
  }

  void iota() {
    KernelBuilder builder = mapBuilder(shape());
    Access access{{}, std::vector<Dim>(shape().ndim(), 0)};
    if (shape().ndim() > 0) access.strides[node_.attrs[1]] = 1;
    const int value = builder.apply(Op::Cast, node_.type.type, {builder.index(access)});
    storeMap(builder, value, contiguousAccess(shape()));
  }

  void random() {
    KernelBuilder builder = mapBuilder(shape());
    std::vector<int> operands;
    for (size_t i = 0; i < node_.operands.size(); ++i)
      operands.push_back(read(builder, i, shape()));
    const int index = builder.index(contiguousAccess(shape()));
    storeMap(builder, builder.random(node_.type.type, operands, index), contiguousAccess(shape()));
  }

  void view() {
    const bool number = numberOf(0).has_value();
    const auto layout = viewLayout(graph_, node_, number ? StridedLayout{} : operands_[0].layout);
    FL_INTERNAL_CHECK(layout, "a reshape of this layout copies first");
    KernelBuilder builder = mapBuilder(shape());
    const int value = readAt(builder, 0, {layout->offset, layout->strides});
    storeMap(builder, value, contiguousAccess(shape()));
  }

  // Copies operand i to a box of the result.
  void copyInto(size_t i, Access access) {
    if (operandType(i).shape.elements() == 0) return;
    KernelBuilder builder = mapBuilder(operandType(i).shape);
    const int value = read(builder, i, operandType(i).shape);
    storeMap(builder, value, std::move(access));
  }

  void join() {
    if (node_.op == Op::Pad)
      fillsAround(node_) ? fillAround() : fill(shape(), contiguousAccess(shape()));
    const auto parts = partLayouts(graph_, node_, contiguousLayout(shape()));
    for (size_t i = 0; i < parts.size(); ++i)
      if (operands_[i].buffer != result_.buffer) copyInto(i, {parts[i].offset, parts[i].strides});
  }

  void fill(const Shape& space, Access access) {
    if (space.elements() > 0) {
      KernelBuilder builder = mapBuilder(space);
      storeMap(builder, read(builder, 1, space), std::move(access));
    }
  }

  // From the last dimension on, what lies before and after the box in it, within the box's extent
  // in the dimensions above.
  void fillAround() {
    Shape left = shape();
    Access access = contiguousAccess(shape());
    for (int i = shape().ndim(); i-- > 0;) {
      const Dim before = node_.attrs[i], size = operandType(0).shape[i];
      const Dim stride = access.strides[i];
      Access after = access;
      after.offset.constant += (before + size) * stride;
      left[i] = before;
      fill(left, access);
      left[i] = shape()[i] - before - size;
      fill(left, std::move(after));
      left[i] = size;
      access.offset.constant += before * stride;
    }
  }

  // The old value is in the result already.
  void update() {
    Access box = contiguousAccess(shape());
    for (int i = 0; i < shape().ndim(); ++i) {
      box.offset.terms.push_back({node_.operands[2 + i], box.strides[i]});
      box.strides[i] *= node_.attrs[1 + i];
    }
    copyInto(1, std::move(box));
  }

  void reduce() {
    const Shape& in = operandType(0).shape;
    const std::vector<Dim> axes = node_.attrs.list(1);
    std::vector<bool> reduced(in.ndim(), axes.empty());
    for (Dim axis : axes) reduced[axis] = true;
    KernelBuilder builder(in, reduced);
    int value = read(builder, 0, in);
    const dtype computed = computeType(node_.type.type);
    value = builder.apply(Op::Cast, computed, {value});
    builder.beginStage(true);
    const int total = builder.total(builder.reduce(node_.op, value), computed);
    const int result = builder.apply(Op::Cast, node_.type.type, {total});
    storeMap(builder, result, keptAccess(in, reduced));
  }

  // x[K,M,B] y[K,N,B]: a row reduction over K for each (m, n, b).
  void contract() {
    const Dim k = operandType(0).shape[0], m = shape()[0], n = shape()[1], b = shape()[2];
    KernelBuilder builder(Shape({k, m, n, b}), {true, false, false, false});
    const dtype computed = computeType(node_.type.type);
    const auto cast = [&](int i, std::vector<Dim> strides) {
      const Access access{operands_[i].layout.offset, std::move(strides)};
      return builder.apply(Op::Cast, computed, {readAt(builder, i, access)});
    };
    const int x = cast(0, {1, k, 0, k * m}), y = cast(1, {1, 0, k, k * n});
    builder.beginStage(true);
    const int product = builder.apply(Op::Mul, computed, {x, y});
    const int total = builder.total(builder.reduce(Op::Sum, product), computed);
    const int result = builder.apply(Op::Cast, node_.type.type, {total});
    storeMap(builder, result, {{}, {0, 1, m, m * n}});
  }

  void call() {
    LibraryStep step;
    step.op = node_.op;
    step.attrs = node_.attrs;
    step.result = result_;
    step.resultType = node_.type;
    step.site = node_.site;
    step.origin = node_.origin;
    for (size_t i = 0; i < node_.operands.size(); ++i) {
      step.operandTypes.push_back(operandType(i));
      step.operands.push_back({operands_[i].buffer, operands_[i].layout.offset});
    }
    schedule_->steps.emplace_back(std::move(step));
  }

  const Graph& graph_;
  const Node& node_;
  const std::vector<OperandSource>& operands_;
  const BufferPlace& result_;
  Schedule* schedule_;
  bool held_ = true;  // by the kernel form
};

}  // namespace

bool needsDenseOperands(Op op, Lowering lowering) {
  const Kind kind = opKind(op);
  return lowering == Lowering::Calls || kind == Kind::Library || kind == Kind::Contract ||
         kind == Kind::Scan || kind == Kind::Order || kind == Kind::Reduce ||
         (kind == Kind::Update && op != Op::Update);
}

bool writesBox(Op op, Lowering lowering) {
  return op == Op::Update && lowering == Lowering::Kernels;
}

std::vector<StridedLayout> partLayouts(const Graph& graph, const Node& node, StridedLayout whole) {
  if (node.op == Op::Pad) {
    for (int i = 0; i < node.type.shape.ndim(); ++i)
      whole.offset.constant += node.attrs[i] * whole.strides[i];
    return {whole};
  }
  const Dim axis = node.attrs[0];
  std::vector<StridedLayout> parts;
  for (const ValueId operand : node.operands) {
    parts.push_back(whole);
    whole.offset.constant += graph.type(operand).shape[axis] * whole.strides[axis];
  }
  return parts;
}

bool fillsAround(const Node& node) {
  // What no cache holds is written once.
  return node.op == Op::Pad && node.type.shape.elements() >= Dim{1} << 20;
}

bool lowerNode(const Graph& graph, const Node& node, const std::vector<OperandSource>& operands,
               const BufferPlace& result, Lowering lowering, Schedule* schedule) {
  return NodeLowering(graph, node, operands, result, schedule).run(lowering);
}

Schedule scheduleSingleNode(const Graph& graph, Lowering lowering) {
  FL_INTERNAL_CHECK(graph.nodes().size() == 1);
  const Node& node = graph.nodes()[0];
  Schedule schedule;
  schedule.parameters = graph.parameters();
  schedule.outputs.push_back({node.type, false, {}});
  std::vector<OperandSource> operands;
  for (ValueId operand : node.operands) {
    operands.push_back(
        {{BufferRef::Space::Parameter, operand}, contiguousLayout(graph.type(operand).shape)});
  }
  const BufferRef result{BufferRef::Space::Output, 0};
  // A number's one element is the box.
  if (writesBox(node.op, lowering) && !graph.isNumber(node.operands[0])) {
    schedule.outputs[0].over = node.operands[0];
    operands[0].buffer = result;
  }
  lowerNode(graph, node, operands, {result}, lowering, &schedule);
  return schedule;
}

}  // namespace fl::ir
