#include "fl/kernel/KernelBuilder.h"

#include <algorithm>

#include "fl/base/Error.h"

namespace fl::ir {

KernelBuilder::KernelBuilder(Shape space, std::vector<bool> reduced)
    : space_(std::move(space)), reduced_(std::move(reduced)) {}

int KernelBuilder::addOperand(KernelOperand::Role role, std::optional<BufferRef> buffer, dtype type,
                              Access access) {
  FL_INTERNAL_CHECK(static_cast<int>(access.strides.size()) == space_.ndim());
  kernel_.operands.push_back({role, type, {}});
  buffers_.push_back(buffer);
  accesses_.push_back(std::move(access));
  return operandCount() - 1;
}

int KernelBuilder::addInput(BufferRef buffer, dtype type, Access access) {
  for (int i = 0; i < operandCount(); ++i) {
    const KernelOperand& operand = kernel_.operands[i];
    if (operand.role == KernelOperand::Role::Input && operand.type == type &&
        buffers_[i] == buffer && accesses_[i] == access) {
      return i;
    }
  }
  return addOperand(KernelOperand::Role::Input, buffer, type, std::move(access));
}

int KernelBuilder::addOutput(BufferRef buffer, dtype type, Access access) {
  return addOperand(KernelOperand::Role::Output, buffer, type, std::move(access));
}

int KernelBuilder::addValue(KernelValue value) {
  const auto& values = kernel_.values;
  const auto found = std::find(values.begin(), values.end(), value);
  if (found != values.end()) return static_cast<int>(found - values.begin());
  kernel_.values.push_back(std::move(value));
  nodes_.push_back(node_);
  return valueCount() - 1;
}

int KernelBuilder::load(int operand) {
  return addValue({.form = KernelValue::Form::Load,
                   .type = kernel_.operands[operand].type,
                   .index = operand,
                   .args = {}});
}

int KernelBuilder::index(Access access) {
  for (int i = 0; i < operandCount(); ++i) {
    if (kernel_.operands[i].role == KernelOperand::Role::Index && accesses_[i] == access)
      return load(i);
  }
  return load(addOperand(KernelOperand::Role::Index, std::nullopt, dtype::s64, std::move(access)));
}

int KernelBuilder::number(int parameter, dtype type) {
  const auto found = std::find(numbers_.begin(), numbers_.end(), parameter);
  const int index = static_cast<int>(found - numbers_.begin());
  if (found == numbers_.end()) {
    numbers_.push_back(parameter);
    kernel_.scalars.push_back(type);
  }
  return addValue({.form = KernelValue::Form::Scalar, .type = type, .index = index, .args = {}});
}

int KernelBuilder::cast(dtype to, int value) {
  if (type(value) == to) return value;
  const int source = value < std::ssize(rounded_) ? rounded_[value] : -1;
  return source >= 0 && type(source) == to
             ? source
             : addValue(
                   {.form = KernelValue::Form::Apply, .op = Op::Cast, .type = to, .args = {value}});
}

int KernelBuilder::apply(Op op, dtype result, const std::vector<int>& args) {
  if (op == Op::Cast) return cast(result, args[0]);
  if (opKind(op) == Kind::Select)
    return addValue({.form = KernelValue::Form::Apply, .op = op, .type = result, .args = args});
  std::vector<int> wide;
  for (int arg : args) wide.push_back(cast(computeType(type(arg)), arg));
  const int computed =
      addValue({.form = KernelValue::Form::Apply,
                .op = op,
                .type = computeType(result),
                .args = std::move(wide),
                .isShort = computeType(result) != result && isApproximated(opInfo(op))});
  const int value = cast(result, computed);
  // An op without error makes of 16-bit numbers one of those: rounding it changes nothing.
  if (value != computed && opInfo(op).ulp == 0) {
    rounded_.resize(valueCount(), -1);
    rounded_[value] = computed;
  }
  return value;
}

int KernelBuilder::random(dtype type, const std::vector<int>& operands, int index) {
  const auto add = [&](std::vector<int> args) {
    return addValue({.form = KernelValue::Form::Apply,
                     .op = Op::Random,
                     .type = type,
                     .args = std::move(args)});
  };
  const int uniform = add({operands[0], operands[1], index});
  return operands.size() == 2 ? uniform : add({uniform, add({operands[0], operands[2], index})});
}

// A number that is part of the launch, not of the kernel.
int KernelBuilder::constant(Dim value) {
  return index({{value, {}}, std::vector<Dim>(space_.ndim(), 0)});
}

int KernelBuilder::gather(BufferRef buffer, dtype type, Access layout, int index, Dim stride,
                          Dim bound, int origin) {
  const Access whole{layout.offset, std::vector<Dim>(space_.ndim(), 0)};
  const int operand = addInput(buffer, type, whole);
  layout.offset = {};
  int element = stride == 1 ? index : apply(Op::Mul, dtype::s64, {index, constant(stride)});
  if (std::ranges::count(layout.strides, 0) != space_.ndim())
    element = apply(Op::Add, dtype::s64, {this->index(std::move(layout)), element});
  const int limit = constant(bound), values = valueCount();
  const int value = addValue({.form = KernelValue::Form::Gather,
                              .type = type,
                              .index = operand,
                              .args = {element, index, limit}});
  if (value == values) gathers_.push_back(origin);
  return value;
}

int KernelBuilder::total(int reduction, dtype type) {
  return addValue({.form = KernelValue::Form::Total, .type = type, .index = reduction, .args = {}});
}

void KernelBuilder::beginStage(bool sweep) {
  kernel_.stages.emplace_back();
  kernel_.stages.back().sweep = sweep;
}

void KernelBuilder::store(int operand, int value) {
  kernel_.stages.back().stores.push_back({operand, value});
}

int KernelBuilder::reduce(Op op, int value) {
  const int number = kernel_.reductionCount();
  kernel_.stages.back().reduces.push_back({op, value, number});
  return number;
}

std::vector<KernelBuilder::Axis> KernelBuilder::mergedAxes() const {
  std::vector<Axis> axes;
  for (int a = 0; a < space_.ndim(); ++a) {
    if (space_[a] == 1) continue;
    Axis axis{space_[a], reduced_[a], {}};
    for (const Access& access : accesses_) axis.strides.push_back(access.strides[a]);
    bool merge = !axes.empty() && axes.back().reduced == axis.reduced;
    for (size_t k = 0; merge && k < axis.strides.size(); ++k)
      merge = axis.strides[k] == axes.back().strides[k] * axes.back().extent;
    if (merge)
      axes.back().extent *= axis.extent;
    else
      axes.push_back(std::move(axis));
  }
  return axes;
}

// An operand that axis 0 crosses but that lies along a later axis gets that one as axis 1, where
// executors expect it (crossesMemory). Reductions have their tree and gathers the first bad index
// by the order of axes, so that these keep it.
void KernelBuilder::orderAxes(std::vector<Axis>* axes) const {
  const auto crossed = [&](size_t a) {
    for (size_t k = 0; k < accesses_.size(); ++k) {
      const Dim first = axes->front().strides[k];
      if (buffers_[k] && first != 0 && first != 1 && (*axes)[a].strides[k] == 1) return true;
    }
    return false;
  };
  const bool isFree = gathers_.empty() && std::ranges::none_of(*axes, &Axis::reduced);
  for (size_t a = 1; isFree && a < axes->size(); ++a) {
    if (crossed(a)) {
      std::rotate(axes->begin() + 1, axes->begin() + a, axes->begin() + a + 1);
      return;
    }
  }
}

std::optional<BuiltKernel> KernelBuilder::finish() {
  std::vector<Axis> axes = mergedAxes();
  orderAxes(&axes);
  const bool sweeps = std::ranges::any_of(kernel_.stages, &KernelStage::sweep);
  const bool anyReduced = std::ranges::any_of(axes, &Axis::reduced);
  // A reduction over axes of extent 1 still runs its stages once.
  if (axes.empty() || (sweeps && !anyReduced))
    axes.push_back({1, sweeps, std::vector<Dim>(accesses_.size(), 0)});
  for (size_t a = 1; a < axes.size(); ++a) {
    if (axes[a].reduced && axes[a - 1].reduced) return std::nullopt;
  }
  if (axes.size() > kMaxRank || kernel_.operands.size() > kMaxOperands ||
      kernel_.scalars.size() > kMaxOperands)
    return std::nullopt;
  // A map of one element is the kernel of maps of many.
  const bool isAlone = axes.size() == 1 && !sweeps && gathers_.empty();
  BuiltKernel built;
  kernel_.rank = static_cast<int>(axes.size());
  for (size_t k = 0; k < accesses_.size(); ++k) {
    LaunchOperand operand{buffers_[k], accesses_[k].offset, {}};
    kernel_.operands[k].strides.clear();
    for (const Axis& axis : axes) {
      const Dim stride = axis.extent == 1 ? Dim{isAlone} : axis.strides[k];
      operand.strides.push_back(stride);
      kernel_.operands[k].strides.push_back(stride == 0   ? Stride::Zero
                                            : stride == 1 ? Stride::One
                                                          : Stride::Any);
    }
    built.launch.operands.push_back(std::move(operand));
  }
  for (size_t a = 0; a < axes.size(); ++a) {
    kernel_.reduced |= static_cast<uint32_t>(axes[a].reduced) << a;
    built.launch.extents.push_back(axes[a].extent);
  }
  built.launch.numbers = numbers_;
  built.launch.gathers = gathers_;
  built.launch.nodes = nodes_;
  built.kernel = std::move(kernel_);
  return built;
}

Access contiguousAccess(const Shape& shape) { return {{}, contiguousStrides(shape)}; }

Access keptAccess(const Shape& space, const std::vector<bool>& reduced) {
  Shape kept = space;
  for (int i = 0; i < space.ndim(); ++i)
    if (reduced[i]) kept[i] = 1;
  Access access = contiguousAccess(kept);
  for (int i = 0; i < space.ndim(); ++i)
    if (reduced[i]) access.strides[i] = 0;
  return access;
}

int addKernel(Schedule* schedule, const Kernel& kernel) {
  auto& kernels = schedule->kernels;
  const auto found = std::find(kernels.begin(), kernels.end(), kernel);
  if (found != kernels.end()) return static_cast<int>(found - kernels.begin());
  kernels.push_back(kernel);
  return static_cast<int>(kernels.size()) - 1;
}

}  // namespace fl::ir
