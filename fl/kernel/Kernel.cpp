#include "fl/kernel/Kernel.h"

#include <algorithm>

#include "fl/base/Error.h"

namespace fl::ir {
namespace {

void verifyOperands(const Kernel& kernel) {
  for (const KernelOperand& operand : kernel.operands) {
    FL_INTERNAL_CHECK(static_cast<int>(operand.strides.size()) == kernel.rank,
                      "an operand has one stride an axis");
    FL_INTERNAL_CHECK(operand.role != KernelOperand::Role::Index || operand.type == dtype::s64,
                      "an index is s64");
  }
}

void verifyApply(const Kernel& kernel, const KernelValue& value) {
  if (value.op == Op::RandomUniform) {
    FL_INTERNAL_CHECK(value.args.size() == 3, "rand takes seed, offset and index");
    return;
  }
  FL_INTERNAL_CHECK(isElementwise(value.op), opName(value.op), " is not elementwise");
  FL_INTERNAL_CHECK(static_cast<int>(value.args.size()) == opInfo(value.op).arity,
                    opName(value.op));
  if (value.op == Op::Cast) {
    return;
  }
  const size_t first = opKind(value.op) == Kind::Select ? 1 : 0;
  const dtype type = kernel.values[value.args[first]].type;
  FL_INTERNAL_CHECK(computeType(type) == type, "arithmetic on ", type, " is explicit");
  FL_INTERNAL_CHECK(first == 0 || kernel.values[value.args[0]].type == dtype::b8, "condition");
  for (size_t i = first; i < value.args.size(); ++i) {
    FL_INTERNAL_CHECK(kernel.values[value.args[i]].type == type, opName(value.op), " mixes dtypes");
  }
  const bool boolean = opInfo(value.op).result == Result::Bool;
  FL_INTERNAL_CHECK(value.type == (boolean ? dtype::b8 : type), opName(value.op), " result dtype");
}

void verifyGather(const Kernel& kernel, const KernelValue& value) {
  FL_INTERNAL_CHECK(value.index >= 0 && value.index < static_cast<int>(kernel.operands.size()));
  const KernelOperand& operand = kernel.operands[value.index];
  FL_INTERNAL_CHECK(operand.role == KernelOperand::Role::Input && operand.type == value.type &&
                        operand.strides == std::vector<Stride>(kernel.rank, Stride::Zero),
                    "gathered operand");
  FL_INTERNAL_CHECK(value.args.size() == 3, "gather takes element, index and bound");
  for (int arg : value.args) {
    FL_INTERNAL_CHECK(kernel.values[arg].type == dtype::s64, "gather index dtype");
  }
}

void verifyValue(const Kernel& kernel, size_t index) {
  const KernelValue& value = kernel.values[index];
  for (int arg : value.args) {
    FL_INTERNAL_CHECK(arg >= 0 && arg < static_cast<int>(index), "argument %", arg, " of %", index);
  }
  switch (value.form) {
    case KernelValue::Form::Load:
      FL_INTERNAL_CHECK(value.index >= 0 && value.index < static_cast<int>(kernel.operands.size()));
      FL_INTERNAL_CHECK(kernel.operands[value.index].role != KernelOperand::Role::Output);
      FL_INTERNAL_CHECK(kernel.operands[value.index].type == value.type, "load dtype");
      break;
    case KernelValue::Form::Scalar:
      FL_INTERNAL_CHECK(value.index >= 0 && value.index < static_cast<int>(kernel.scalars.size()));
      FL_INTERNAL_CHECK(kernel.scalars[value.index] == value.type, "scalar dtype");
      break;
    case KernelValue::Form::Apply:
      verifyApply(kernel, value);
      break;
    case KernelValue::Form::Gather:
      verifyGather(kernel, value);
      break;
    case KernelValue::Form::Total:
      FL_INTERNAL_CHECK(value.index >= 0 && value.index < kernel.reductionCount(), "total");
      break;
  }
}

// The first stage in which each value may be used: one after the stages of its totals.
std::vector<int> availableStages(const Kernel& kernel) {
  std::vector<int> totalStage(kernel.reductionCount(), 0);
  for (size_t s = 0; s < kernel.stages.size(); ++s) {
    for (const KernelStage::Reduce& reduce : kernel.stages[s].reduces) {
      totalStage[reduce.index] = static_cast<int>(s) + 1;
    }
  }
  std::vector<int> stages;
  for (const KernelValue& value : kernel.values) {
    int stage = value.form == KernelValue::Form::Total ? totalStage[value.index] : 0;
    for (int arg : value.args) {
      stage = std::max(stage, stages[arg]);
    }
    stages.push_back(stage);
  }
  return stages;
}

void verifyStages(const Kernel& kernel) {
  const std::vector<int> available = availableStages(kernel);
  int reductions = 0;
  for (size_t s = 0; s < kernel.stages.size(); ++s) {
    const KernelStage& stage = kernel.stages[s];
    FL_INTERNAL_CHECK(!stage.sweep || kernel.reduced != 0, "a sweep needs a reduced axis");
    FL_INTERNAL_CHECK(stage.sweep || stage.reduces.empty(), "only sweeps reduce");
    for (const KernelStage::Store& store : stage.stores) {
      const KernelOperand& operand = kernel.operands.at(store.operand);
      FL_INTERNAL_CHECK(operand.role == KernelOperand::Role::Output, "store to an input");
      FL_INTERNAL_CHECK(operand.type == kernel.values.at(store.value).type, "store dtype");
      FL_INTERNAL_CHECK(available[store.value] <= static_cast<int>(s), "stored before its total");
    }
    for (const KernelStage::Reduce& reduce : stage.reduces) {
      FL_INTERNAL_CHECK(opKind(reduce.op) == Kind::Reduce && reduce.index == reductions++,
                        "reductions are numbered in order");
      FL_INTERNAL_CHECK(available[reduce.value] <= static_cast<int>(s), "reduced before its total");
    }
  }
}

}  // namespace

int Kernel::reductionCount() const {
  int count = 0;
  for (const KernelStage& stage : stages) {
    count += static_cast<int>(stage.reduces.size());
  }
  return count;
}

int Kernel::gatherNumber(int value) const {
  return static_cast<int>(std::count_if(
      values.begin(), values.begin() + value,
      [](const KernelValue& earlier) { return earlier.form == KernelValue::Form::Gather; }));
}

int64_t kernelDomain(const Kernel& kernel, const int64_t* extents) {
  int64_t domain = 1;
  for (int axis = 0; axis < kernel.rank; ++axis) {
    domain *= kernel.isReduced(axis) ? 1 : extents[axis];
  }
  return domain;
}

void verify(const Kernel& kernel) {
  FL_INTERNAL_CHECK(kernel.rank >= 1 && kernel.rank <= kMaxRank, "rank ", kernel.rank);
  FL_INTERNAL_CHECK(kernel.reduced >> kernel.rank == 0, "reduced axes");
  FL_INTERNAL_CHECK(kernel.operands.size() <= kMaxOperands && kernel.scalars.size() <= kMaxOperands,
                    kernel.operands.size(), " operands");
  verifyOperands(kernel);
  for (size_t i = 0; i < kernel.values.size(); ++i) {
    verifyValue(kernel, i);
  }
  verifyStages(kernel);
}

}  // namespace fl::ir
