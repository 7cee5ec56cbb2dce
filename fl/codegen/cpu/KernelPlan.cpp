#include "fl/codegen/cpu/KernelPlan.h"

#include <algorithm>

namespace fl::codegen::cpu {
namespace {

using ir::Kernel;
using ir::KernelStage;
using ir::KernelValue;

AxisSet axesOf(const ir::KernelOperand& operand) {
  AxisSet axes = 0;
  for (size_t axis = 0; axis < operand.strides.size(); ++axis) {
    axes |= (operand.strides[axis] != ir::Stride::Zero) << axis;
  }
  return axes;
}

std::vector<AxisSet> variation(const Kernel& kernel, AxisSet kept) {
  std::vector<AxisSet> varies;
  for (const KernelValue& value : kernel.values) {
    AxisSet axes = 0;
    if (value.form == KernelValue::Form::Load) {
      axes = axesOf(kernel.operands[value.index]);
    } else if (value.form == KernelValue::Form::Total) {
      axes = kept;
    }
    for (int arg : value.args) {
      axes |= varies[arg];
    }
    varies.push_back(axes);
  }
  return varies;
}

std::vector<int> neededBy(const Kernel& kernel, const KernelStage& stage) {
  std::vector<bool> marked(kernel.values.size());
  for (const auto& store : stage.stores) marked[store.value] = true;
  for (const auto& reduce : stage.reduces) marked[reduce.value] = true;
  std::vector<int> needed;
  for (int value = static_cast<int>(kernel.values.size()) - 1; value >= 0; --value) {
    if (!marked[value]) continue;
    needed.push_back(value);
    for (int arg : kernel.values[value].args) marked[arg] = true;
  }
  std::reverse(needed.begin(), needed.end());
  return needed;
}

std::vector<bool> spreadValues(const Kernel& kernel, const KernelPlan& plan) {
  std::vector<bool> spread(kernel.values.size());
  for (size_t value = 0; value < kernel.values.size(); ++value) {
    if (!plan.isVector(value)) continue;
    for (int arg : kernel.values[value].args) spread[arg] = true;
  }
  for (const KernelStage& stage : kernel.stages) {
    if (!stage.sweep && kernel.rows()) continue;  // such a stage runs on one element
    for (const auto& store : stage.stores) spread[store.value] = true;
    for (const auto& reduce : stage.reduces) spread[reduce.value] = true;
  }
  for (size_t value = 0; value < kernel.values.size(); ++value) {
    spread[value] = spread[value] && !plan.isVector(value);
  }
  return spread;
}

// Bodies above it are long enough to fill the processor with one vector.
constexpr int kCostLimit = 1;

// Instructions of a value in units of an exponential's 20; 0 for fewer than ten.
int cost(const KernelValue& value) {
  if (value.form != KernelValue::Form::Apply) return 0;
  const ir::OpInfo& info = ir::opInfo(value.op);
  const bool isLong = value.op == ir::Op::Power || info.kind == ir::Kind::Random ||
                      (value.op == ir::Op::Mod && isFloating(value.type));
  const bool isApproximated = info.types == ir::Types::Float && info.ulp >= 1;
  return isLong ? 2 : isApproximated ? 1 : 0;
}

// Two vectors hide latencies in a map or row kernel; a column kernel also walks memory in runs of
// that many vectors. More code than this only costs time to compile.
int chooseUnroll(const Kernel& kernel, const KernelPlan& plan, int vectorBits) {
  int costs = 0, vectors = 0, widest = 1;
  for (size_t value = 0; value < kernel.values.size(); ++value) {
    if (!plan.isVector(value)) continue;
    ++vectors;
    costs += cost(kernel.values[value]);
    widest = std::max(widest, static_cast<int>(getTypeSize(kernel.values[value].type)));
  }
  constexpr int kSmallBody = 8;
  const int registersEach = ir::kLanes * widest * 8 / vectorBits;
  // In a tile a second vector would double the cache lines in use.
  if (plan.tiled || costs > (registersEach > 1 ? 0 : kCostLimit)) return 1;
  const bool columns = kernel.reduced != 0 && !kernel.rows();
  if (!columns || costs > 0 || vectors > kSmallBody || registersEach > 2) return 2;
  return registersEach > 1 ? 4 : 8;
}

bool crossesMemory(const Kernel& kernel) {
  if (kernel.reduced != 0 || kernel.rank < 2) return false;
  return std::any_of(kernel.operands.begin(), kernel.operands.end(), [](const auto& operand) {
    return operand.role != ir::KernelOperand::Role::Index &&
           operand.strides[0] == ir::Stride::Any && operand.strides[1] == ir::Stride::One;
  });
}

}  // namespace

KernelPlan planKernel(const Kernel& kernel, int vectorBits) {
  KernelPlan plan;
  plan.kept = ~kernel.reduced & ((1u << kernel.rank) - 1);
  plan.varies = variation(kernel, plan.kept);
  for (const KernelStage& stage : kernel.stages) {
    plan.needed.push_back(neededBy(kernel, stage));
  }
  plan.spread = spreadValues(kernel, plan);
  plan.tiled = crossesMemory(kernel);
  plan.unroll = chooseUnroll(kernel, plan, vectorBits);
  return plan;
}

}  // namespace fl::codegen::cpu
