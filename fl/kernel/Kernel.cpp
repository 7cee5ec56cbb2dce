#include "fl/kernel/Kernel.h"

#include <algorithm>

#include "fl/base/Error.h"

namespace fl::ir {
namespace {

void verifyOperands(const Kernel& kernel) {
  for (size_t i = 0; i < kernel.operands.size(); ++i) {
    const KernelOperand& operand = kernel.operands[i];
    FL_INTERNAL_CHECK(static_cast<int>(operand.strides.size()) == kernel.rank, "operand ", i,
                      " has ", operand.strides.size(), " strides, not one an axis");
    FL_INTERNAL_CHECK(operand.role != KernelOperand::Role::Index || operand.type == dtype::s64,
                      "operand ", i, ": an index is s64");
  }
}

dtype typeOf(const Kernel& kernel, const KernelValue& value, size_t arg) {
  return kernel.values[value.args[arg]].type;
}

void verifyApply(const Kernel& kernel, const KernelValue& value) {
  FL_INTERNAL_CHECK(
      !value.isShort || (isApproximated(opInfo(value.op)) && value.type == dtype::f32),
      opName(value.op), " of ", value.type, " has no short formula");
  if (value.op == Op::Random) {
    const bool uniform = value.args.size() == 3 && typeOf(kernel, value, 0) == dtype::u64 &&
                         typeOf(kernel, value, 1) == dtype::u64 &&
                         typeOf(kernel, value, 2) == dtype::s64;
    const bool normal = value.args.size() == 2 && typeOf(kernel, value, 0) == value.type &&
                        typeOf(kernel, value, 1) == value.type &&
                        (value.type == dtype::f32 || value.type == dtype::f64);
    FL_INTERNAL_CHECK(uniform || normal,
                      "rand takes a seed and an offset of u64 and an index of "
                      "s64, or two numbers of its own float type");
    FL_INTERNAL_CHECK(
        value.type == dtype::u32 || value.type == dtype::f32 || value.type == dtype::f64,
        "rand draws no ", value.type);
    return;
  }
  FL_INTERNAL_CHECK(isElementwise(value.op), opName(value.op), " is not elementwise");
  FL_INTERNAL_CHECK(static_cast<int>(value.args.size()) == opInfo(value.op).arity, opName(value.op),
                    " has ", value.args.size(), " operands");
  if (value.op == Op::Cast) return;
  const size_t first = opKind(value.op) == Kind::Select ? 1 : 0;
  const dtype type = typeOf(kernel, value, first);
  FL_INTERNAL_CHECK(first == 1 || computeType(type) == type, "arithmetic on ", type,
                    " is explicit");
  const Types types = opInfo(value.op).types;
  FL_INTERNAL_CHECK(types == Types::All || (types == Types::Float) == isFloating(type),
                    opName(value.op), " is not for ", type);
  FL_INTERNAL_CHECK(first == 0 || typeOf(kernel, value, 0) == dtype::b8, opName(value.op),
                    ": the condition must be b8");
  for (size_t i = first; i < value.args.size(); ++i)
    FL_INTERNAL_CHECK(typeOf(kernel, value, i) == type, opName(value.op), " mixes dtypes");
  const bool boolean = opInfo(value.op).result == Result::Bool;
  FL_INTERNAL_CHECK(value.type == (boolean ? dtype::b8 : type), opName(value.op), " gives ",
                    boolean ? dtype::b8 : type, ", not ", value.type);
}

const KernelOperand& operandOf(const Kernel& kernel, const KernelValue& value) {
  FL_INTERNAL_CHECK(value.index >= 0 && value.index < static_cast<int>(kernel.operands.size()),
                    "operand ", value.index, " does not exist");
  return kernel.operands[value.index];
}

void verifyGather(const Kernel& kernel, const KernelValue& value) {
  const KernelOperand& operand = operandOf(kernel, value);
  FL_INTERNAL_CHECK(operand.role == KernelOperand::Role::Input &&
                        operand.strides == std::vector<Stride>(kernel.rank, Stride::Zero),
                    "operand ", value.index, " is gathered and no input of strides 0");
  FL_INTERNAL_CHECK(operand.type == value.type, "operand ", value.index, " is ", operand.type,
                    ", not ", value.type);
  const auto isS64 = [&](int arg) { return kernel.values[arg].type == dtype::s64; };
  FL_INTERNAL_CHECK(value.args.size() == 3 && std::ranges::all_of(value.args, isS64),
                    "gather takes element, index and bound of s64");
}

void verifyValue(const Kernel& kernel, size_t index) {
  const KernelValue& value = kernel.values[index];
  for (int arg : value.args) {
    FL_INTERNAL_CHECK(arg >= 0 && arg < static_cast<int>(index), "%", arg,
                      " is not defined before %", index, ", which uses it");
  }
  switch (value.form) {
    case KernelValue::Form::Load:
      FL_INTERNAL_CHECK(operandOf(kernel, value).role != KernelOperand::Role::Output, "operand ",
                        value.index, " is an output and loaded");
      FL_INTERNAL_CHECK(kernel.operands[value.index].type == value.type, "operand ", value.index,
                        " is ", kernel.operands[value.index].type, ", not ", value.type);
      break;
    case KernelValue::Form::Scalar:
      FL_INTERNAL_CHECK(value.index >= 0 && value.index < static_cast<int>(kernel.scalars.size()),
                        "scalar ", value.index, " does not exist");
      FL_INTERNAL_CHECK(kernel.scalars[value.index] == value.type, "scalar ", value.index, " is ",
                        kernel.scalars[value.index], ", not ", value.type);
      break;
    case KernelValue::Form::Apply:
      verifyApply(kernel, value);
      break;
    case KernelValue::Form::Gather:
      verifyGather(kernel, value);
      break;
    case KernelValue::Form::Total:
      FL_INTERNAL_CHECK(value.index >= 0 && value.index < kernel.reductionCount(), "total ",
                        value.index, " does not exist");
      break;
  }
}

// Bit a: the operand's element depends on the index along axis a.
uint32_t movingAxes(const KernelOperand& operand) {
  uint32_t axes = 0;
  for (size_t axis = 0; axis < operand.strides.size(); ++axis)
    axes |= static_cast<uint32_t>(operand.strides[axis] != Stride::Zero) << axis;
  return axes;
}

// The first stage in which each value may be used: one after the stages of its totals.
std::vector<int> availableStages(const Kernel& kernel) {
  std::vector<int> totalStage(kernel.reductionCount(), 0);
  for (size_t s = 0; s < kernel.stages.size(); ++s) {
    for (const KernelStage::Reduce& reduce : kernel.stages[s].reduces)
      totalStage[reduce.index] = static_cast<int>(s) + 1;
  }
  std::vector<int> stages;
  for (const KernelValue& value : kernel.values) {
    int stage = value.form == KernelValue::Form::Total ? totalStage[value.index] : 0;
    for (int arg : value.args) stage = std::max(stage, stages[arg]);
    stages.push_back(stage);
  }
  return stages;
}

// What a stage's stores and reductions may use.
struct StageRules {
  const Kernel& kernel;
  const std::vector<int> available;
  const std::vector<uint32_t> varied;

  dtype use(int value, size_t stage) const {
    FL_INTERNAL_CHECK(value < static_cast<int>(kernel.values.size()), "%", value,
                      " is not defined and a stage uses it");
    FL_INTERNAL_CHECK(available[value] <= static_cast<int>(stage), "stage ", stage, " uses %",
                      value, " before its total");
    FL_INTERNAL_CHECK(kernel.stages[stage].sweep || (varied[value] & kernel.reduced) == 0, "stage ",
                      stage, " is no sweep and uses %", value,
                      ", which varies along a reduced axis");
    return kernel.values[value].type;
  }

  void verifyStore(const KernelStage::Store& store, size_t stage) const {
    FL_INTERNAL_CHECK(store.operand < static_cast<int>(kernel.operands.size()), "operand ",
                      store.operand, " does not exist");
    const KernelOperand& operand = kernel.operands[store.operand];
    FL_INTERNAL_CHECK(operand.role == KernelOperand::Role::Output, "operand ", store.operand,
                      " is no output and stored");
    const dtype type = use(store.value, stage);
    FL_INTERNAL_CHECK(operand.type == type, "operand ", store.operand, " is ", operand.type,
                      ", not ", type);
    FL_INTERNAL_CHECK(kernel.stages[stage].sweep || (movingAxes(operand) & kernel.reduced) == 0,
                      "operand ", store.operand,
                      " moves along a reduced axis and no sweep stores it");
  }

  void verifyReduce(const KernelStage::Reduce& reduce, size_t stage) const {
    FL_INTERNAL_CHECK(opKind(reduce.op) == Kind::Reduce, opName(reduce.op), " is no reduction");
    const dtype type = use(reduce.value, stage);
    FL_INTERNAL_CHECK(computeType(type) == type, "arithmetic on ", type, " is explicit");
    for (const KernelValue& value : kernel.values) {
      FL_INTERNAL_CHECK(value.form != KernelValue::Form::Total || value.index != reduce.index ||
                            value.type == type,
                        "total ", reduce.index, " is ", type, ", not ", value.type);
    }
  }
};

void verifyStages(const Kernel& kernel) {
  const StageRules rules{kernel, availableStages(kernel), variedAxes(kernel)};
  std::vector<int> stores(kernel.operands.size(), 0);
  int reductions = 0;
  for (size_t s = 0; s < kernel.stages.size(); ++s) {
    const KernelStage& stage = kernel.stages[s];
    FL_INTERNAL_CHECK(!stage.sweep || kernel.reduced != 0, "a sweep needs a reduced axis");
    FL_INTERNAL_CHECK(stage.sweep || stage.reduces.empty(), "only sweeps reduce");
    for (const KernelStage::Store& store : stage.stores) {
      rules.verifyStore(store, s);
      FL_INTERNAL_CHECK(++stores[store.operand] == 1, "operand ", store.operand,
                        " is stored twice");
    }
    for (const KernelStage::Reduce& reduce : stage.reduces) {
      FL_INTERNAL_CHECK(reduce.index == reductions++, "reductions are numbered in order");
      rules.verifyReduce(reduce, s);
    }
  }
  for (size_t i = 0; i < stores.size(); ++i) {
    FL_INTERNAL_CHECK(kernel.operands[i].role != KernelOperand::Role::Output || stores[i] == 1,
                      "operand ", i, " is an output that no stage stores");
  }
}

}  // namespace

const KernelStage::Reduce& Kernel::reductionOf(const KernelValue& total) const {
  int before = 0;
  size_t stage = 0;
  const auto count = [&] { return static_cast<int>(stages[stage].reduces.size()); };
  for (; total.index >= before + count(); ++stage) before += count();
  return stages[stage].reduces[total.index - before];
}

int Kernel::reductionCount() const {
  int count = 0;
  for (const KernelStage& stage : stages) count += static_cast<int>(stage.reduces.size());
  return count;
}

int Kernel::gatherNumber(int value) const {
  return static_cast<int>(std::count_if(
      values.begin(), values.begin() + value,
      [](const KernelValue& earlier) { return earlier.form == KernelValue::Form::Gather; }));
}

std::vector<uint32_t> variedAxes(const Kernel& kernel) {
  std::vector<uint32_t> varied;
  for (const KernelValue& value : kernel.values) {
    uint32_t axes = 0;
    if (value.form == KernelValue::Form::Load) axes = movingAxes(kernel.operands[value.index]);
    if (value.form == KernelValue::Form::Total) axes = ~kernel.reduced & ((1u << kernel.rank) - 1);
    for (int arg : value.args) axes |= varied[arg];
    varied.push_back(axes);
  }
  return varied;
}

int64_t kernelDomain(const Kernel& kernel, const int64_t* extents) {
  int64_t domain = 1;
  for (int axis = 0; axis < kernel.rank; ++axis)
    domain *= kernel.isReduced(axis) ? 1 : extents[axis];
  return domain;
}

bool crossesMemory(const Kernel& kernel, const KernelOperand& operand) {
  return kernel.reduced == 0 && kernel.rank > 1 && operand.role != KernelOperand::Role::Index &&
         operand.strides[0] == Stride::Any && operand.strides[1] == Stride::One;
}

bool crossesMemory(const Kernel& kernel) {
  return std::any_of(kernel.operands.begin(), kernel.operands.end(),
                     [&](const KernelOperand& operand) { return crossesMemory(kernel, operand); });
}

Kernel axesExchanged(Kernel kernel) {
  kernel.reduced = (kernel.reduced & ~3u) | (kernel.isReduced(0) ? 2 : 0) | kernel.isReduced(1);
  for (KernelOperand& operand : kernel.operands) std::swap(operand.strides[0], operand.strides[1]);
  return kernel;
}

void verify(const Kernel& kernel) {
  FL_INTERNAL_CHECK(kernel.rank >= 1 && kernel.rank <= kMaxRank, "rank ", kernel.rank,
                    " is not 1 to ", kMaxRank);
  FL_INTERNAL_CHECK(kernel.reduced >> kernel.rank == 0, "a reduced axis is not below the rank");
  FL_INTERNAL_CHECK(kernel.operands.size() <= kMaxOperands && kernel.scalars.size() <= kMaxOperands,
                    kernel.operands.size(), " operands and ", kernel.scalars.size(),
                    " scalars are more than ", kMaxOperands);
  verifyOperands(kernel);
  FL_INTERNAL_CHECK(
      std::ranges::count(kernel.operands, KernelOperand::Role::Output, &KernelOperand::role) > 0,
      "it has no output");
  for (size_t i = 0; i < kernel.values.size(); ++i) verifyValue(kernel, i);
  verifyStages(kernel);
}

}  // namespace fl::ir
