#include "fl/codegen/cpu/KernelPlan.h"

#include <algorithm>

namespace fl::codegen::cpu {
namespace {

using ir::Kernel;
using ir::KernelStage;

std::vector<int> neededBy(const Kernel& kernel, int value) {
  std::vector<bool> marked(kernel.values.size());
  marked[value] = true;
  return neededBy(kernel, std::move(marked), std::vector<bool>(kernel.values.size()));
}

// Nothing that varies along axis 0 is read from memory to find the element.
std::vector<int> findLineGathers(const Kernel& kernel, const KernelPlan& plan) {
  std::vector<int> gathers;
  for (size_t value = 0; value < kernel.values.size(); ++value) {
    const KernelValue& gather = kernel.values[value];
    if (gather.form != KernelValue::Form::Gather) continue;
    const std::vector<int> needed = neededBy(kernel, gather.args[0]);
    const bool isLine = std::all_of(needed.begin(), needed.end(), [&](int of) {
      const KernelValue& read = kernel.values[of];
      const bool isIndex = read.form == KernelValue::Form::Load &&
                           kernel.operands[read.index].role == ir::KernelOperand::Role::Index;
      return read.form != KernelValue::Form::Gather &&
             (read.form != KernelValue::Form::Load || isIndex || !plan.isVector(of));
    });
    if (isLine && plan.isVector(gather.args[0])) gathers.push_back(static_cast<int>(value));
  }
  return gathers;
}

bool hasOneIndexALine(const Kernel& kernel, const KernelPlan& plan) {
  return std::ranges::all_of(kernel.values, [&](const KernelValue& value) {
    return value.form != KernelValue::Form::Gather ||
           (!plan.isVector(value.args[1]) && !plan.isVector(value.args[2]));
  });
}

// The casts to bf16 among `needed` that are made there, not kept from before, and that nothing else
// there needs; they are taken out of it.
std::vector<int> takeRounded(const Kernel& kernel, const KernelPlan& plan,
                             std::vector<int>* needed) {
  std::vector<bool> there(kernel.values.size()), used(kernel.values.size());
  for (int value : *needed) {
    there[value] = true;
    for (int arg : kernel.values[value].args) used[arg] = true;
  }
  std::vector<int> rounded;
  std::erase_if(*needed, [&](int number) {
    const KernelValue& value = kernel.values[number];
    const bool last = value.form == KernelValue::Form::Apply && value.op == ir::Op::Cast &&
                      value.type == dtype::bf16 && there[value.args[0]] && !used[number] &&
                      plan.isVector(number);
    if (last) rounded.push_back(number);
    return last;
  });
  return rounded;
}

std::vector<bool> spreadValues(const Kernel& kernel, const KernelPlan& plan) {
  std::vector<bool> spread(kernel.values.size());
  for (size_t value = 0; value < kernel.values.size(); ++value) {
    if (!plan.isVector(value)) continue;
    for (int arg : kernel.values[value].args) spread[arg] = true;
  }
  for (const KernelStage& stage : kernel.stages) {
    if (!stage.sweep && kernel.rows()) continue;  // such a stage runs on one element
    addUsed(stage, &spread);
  }
  for (size_t value = 0; value < kernel.values.size(); ++value)
    spread[value] = spread[value] && !plan.isVector(value);
  return spread;
}

// Bodies above it are long enough to fill the processor with one vector.
constexpr int kCostLimit = 1;

void planStages(const Kernel& kernel, const ir::Target& target, bool keepsRows, KernelPlan* plan) {
  const auto isLong = [&](const std::vector<bool>& given) { return longValues(kernel, given); };
  ir::StageValues values = valuesOfStages(kernel, keepsRows ? isLong : ir::WorthKeeping());
  plan->needed = std::move(values.needed);
  plan->keptRows = std::move(values.keptRows);
  plan->rounded.resize(plan->needed.size());
  for (size_t stage = 0; roundsBfloat16(target) && stage < plan->needed.size(); ++stage)
    plan->rounded[stage] = takeRounded(kernel, *plan, &plan->needed[stage]);
}

// Values that are more than places of random numbers, which vectors are not made for.
std::vector<bool> readAsVectors(const Kernel& kernel) {
  std::vector<bool> read(kernel.values.size());
  for (const KernelStage& stage : kernel.stages) addUsed(stage, &read);
  for (const KernelValue& value : kernel.values)
    for (int arg : value.args) read[arg] = read[arg] || !drawsNumber(value);
  return read;
}

// Under strides elements are moved one by one. LLVM splits no vector of integers that it turns into
// 16-bit floats.
int chooseLanes(const Kernel& kernel, const KernelPlan& plan, int vectorBits) {
  size_t least = 8, most = 1;
  for (size_t i = 0; i < kernel.values.size(); ++i) {
    const KernelValue& value = kernel.values[i];
    if (!plan.isVector(static_cast<int>(i)) && !plan.spread[i]) continue;
    const size_t size = value.form == KernelValue::Form::Gather ? 8 : getTypeSize(value.type);
    if (size == 2 && value.form == KernelValue::Form::Apply && value.op == ir::Op::Cast)
      return ir::kLanes;
    least = std::min(least, size);
    most = std::max(most, size);
  }
  for (const ir::KernelOperand& operand : kernel.operands)
    if (operand.strides[0] == ir::Stride::Any) return ir::kLanes;
  return plan.tiled || least < most ? ir::kLanes : std::max<int>(ir::kLanes, vectorBits / 8 / most);
}

// Two vectors hide latencies in a map or row kernel, four in a column kernel, which also passes
// from row to row, and of random numbers, whose ten rounds wait for one another. More code than
// this only costs time to compile.
int chooseUnroll(const Kernel& kernel, const KernelPlan& plan, int vectorBits) {
  const std::vector<bool> read = readAsVectors(kernel);
  int costs = 0, vectors = 0, widest = 1;
  bool draws = false;
  for (size_t value = 0; value < kernel.values.size(); ++value) {
    if (!plan.isVector(value) || !read[value]) continue;
    draws = draws || drawsNumber(kernel.values[value]);
    ++vectors;
    costs += costOf(kernel.values[value]);
    widest = std::max(widest, static_cast<int>(getTypeSize(kernel.values[value].type)));
  }
  constexpr int kSmallBody = 8;
  const int registersEach = plan.lanes * widest * 8 / vectorBits;
  if (draws && registersEach == 1) return kernel.rows() ? 2 : 4;
  if (costs > (registersEach > 1 ? 0 : kCostLimit)) return 1;
  const bool isShort = costs == 0 && vectors <= kSmallBody && registersEach <= 2;
  return kernel.columns() && isShort ? 4 : 2;
}

// A sweep may take the elements of two vectors in any order if all of them come from pairs of bf16
// and none is stored.
bool takesEverySecond(const Kernel& kernel, const KernelPlan& plan, int stage) {
  const auto isPair = [&](int number) {
    const KernelValue& value = kernel.values[number];
    if (!plan.isVector(number)) return true;
    if (value.form != KernelValue::Form::Load)
      return value.form == KernelValue::Form::Apply && value.op != ir::Op::Random;
    const ir::KernelOperand& operand = kernel.operands[value.index];
    return operand.type == dtype::bf16 && operand.strides[0] == ir::Stride::One;
  };
  return kernel.rows() && kernel.stages[stage].sweep && kernel.stages[stage].stores.empty() &&
         plan.loadsPairs && plan.unroll == 2 && plan.keptRows.empty() &&
         std::ranges::all_of(plan.needed[stage], isPair) &&
         std::ranges::any_of(plan.needed[stage], [&](int value) { return plan.isVector(value); });
}

// True if a kernel does so little that memory keeps it waiting.
bool isBare(const Kernel& kernel) {
  constexpr size_t kMostValues = 8;
  const auto isLong = [](const KernelValue& value) {
    return value.form == KernelValue::Form::Gather || drawsNumber(value) ||
           ir::isApproximated(ir::opInfo(value.op));
  };
  return kernel.values.size() <= kMostValues && std::ranges::none_of(kernel.values, isLong);
}

bool findsFloatExtreme(const Kernel& kernel) {
  return std::ranges::any_of(kernel.stages, [&](const KernelStage& stage) {
    return std::ranges::any_of(stage.reduces, [&](const KernelStage::Reduce& reduce) {
      return reduce.op != ir::Op::Sum && isFloating(kernel.values[reduce.value].type);
    });
  });
}

constexpr int64_t kPageBytes = 1 << 12;

// Pages of memory are read whole, as far as the sums stay in the cache of level 1.
void planColumns(const Kernel& kernel, KernelPlan* plan) {
  constexpr int64_t kSumBytes = 1 << 15, kBytesEach = 2 * sizeof(double);
  constexpr int64_t kRunBytes = 128;  // of each of the rows that are added together
  int64_t widest = 1;
  for (const ir::KernelOperand& operand : kernel.operands) {
    if (operand.role != ir::KernelOperand::Role::Input) continue;
    widest = std::max<int64_t>(widest, getTypeSize(operand.type));
  }
  if (widest > 1 && !plan->sideBySide && isBare(kernel)) {
    // A step of a maximum that keeps NaN is three long, of which few rows should wait.
    const bool isFew = widest >= 4 && findsFloatExtreme(kernel);
    plan->rowsTogether = isFew ? 4 : 8;
    plan->unroll = std::clamp(
        static_cast<int>((isFew ? 2 : 1) * kRunBytes / (plan->lanes * widest)), 1, plan->unroll);
  }
  plan->columnsStay = std::ranges::count_if(kernel.stages, &KernelStage::sweep) > 1;
  plan->columnTile = kPageBytes / widest;
  const int64_t bytes = kernel.reductionCount() * kBytesEach;
  while (plan->columnTile * bytes > kSumBytes) plan->columnTile /= 2;
  plan->columnTile = std::max<int64_t>(plan->columnTile, plan->lanes * plan->unroll);
}

// Bytes that a tile takes in a row of memory: a shorter walk spends its time on finding pages.
constexpr int64_t kWrittenBytes = 256, kReadBytes = 512;
// Of few rows at a time a processor foresees by itself what is read next of each one's page.
constexpr int64_t kFewRows = 64;

void planTiles(const Kernel& kernel, ir::Stores stores, int vectorBits, KernelPlan* plan) {
  int64_t written = sizeof(uint64_t), read = sizeof(uint64_t);
  bool isAlong = true;
  for (size_t i = 0; i < kernel.operands.size(); ++i) {
    const ir::KernelOperand& operand = kernel.operands[i];
    const int64_t size = static_cast<int64_t>(getTypeSize(operand.type));
    if (operand.role == ir::KernelOperand::Role::Output) {
      written = std::min(written, size);
      isAlong = isAlong && operand.strides[0] == ir::Stride::One;
    } else if (crossesMemory(kernel, operand)) {
      plan->crossing.push_back(static_cast<int>(i));
      read = std::min(read, size);
    }
  }
  const bool isMove = kernel.values.size() == 1 && !plan->crossing.empty() && isAlong &&
                      stores != ir::Stores::Fetching;
  // Whole cache lines, if they are written around the caches, else what a square has.
  const int64_t rows = stores == ir::Stores::Streaming ? 64 / read
                       : read == 2                     ? vectorBits / 16
                                                       : ir::kLanes;
  if (isMove) plan->movedRows = std::max<int64_t>(ir::kLanes, rows);
  plan->tileLength = isMove ? kFewRows : kWrittenBytes / written;
  plan->tileRuns = (isMove ? kPageBytes : kReadBytes) / read;
}

}  // namespace

bool roundsBfloat16(const ir::Target& target) {
  return target.features.find("+avx512bf16") != std::string::npos;
}

KernelPlan planKernel(const Kernel& kernel, const ir::Target& target, ir::Stores stores,
                      bool findsNan) {
  KernelPlan plan;
  plan.varies = variedAxes(kernel);
  const bool isPlain = stores == ir::Stores::Cached || stores == ir::Stores::Fetching;
  // Runs that streaming code writes may begin at any multiple of kLanes.
  const bool isMap = kernel.reduced == 0 && (kernel.rank == 1 || stores == ir::Stores::Aligning);
  planStages(kernel, target, kernel.reduced == 1 && !isPlain, &plan);
  plan.spread = spreadValues(kernel, plan);
  plan.tiled = crossesMemory(kernel);
  if (plan.tiled) planTiles(kernel, stores, target.vectorBits, &plan);
  if (isPlain || isMap) plan.lanes = chooseLanes(kernel, plan, target.vectorBits);
  plan.loadsPairs = target.vectorBits == 512 && plan.lanes == ir::kLanes;
  plan.ahead = kernel.rows() ? 1 << 12 : kernel.columns() ? 0 : 1 << 10;
  plan.sideBySide = stores == ir::Stores::Across;
  plan.unroll = plan.sideBySide ? 1 : chooseUnroll(kernel, plan, target.vectorBits);
  if (kernel.columns()) planColumns(kernel, &plan);
  for (int stage = 0; stage < static_cast<int>(kernel.stages.size()); ++stage)
    plan.everySecond.push_back(!findsNan && takesEverySecond(kernel, plan, stage));
  plan.nested = kernel.reduced == 0 && kernel.rank > 1 && !plan.tiled;
  // In a nest only for small bodies.
  plan.rest = plan.unroll > (plan.nested && kernel.values.size() <= 12 ? 1 : 2);
  if (plan.nested) plan.lineGathers = findLineGathers(kernel, plan);
  plan.checksLines = plan.nested && hasOneIndexALine(kernel, plan);
  return plan;
}

KernelPlan planLines(const Kernel& kernel, const KernelPlan& plan) {
  std::vector<bool> marked(kernel.values.size());
  for (int gather : plan.lineGathers) marked[kernel.values[gather].args[0]] = true;
  KernelPlan lines = plan;
  lines.needed = {neededBy(kernel, std::move(marked), std::vector<bool>(kernel.values.size()))};
  lines.rounded = {std::vector<int>()};
  lines.everySecond = {false};
  return lines;
}

}  // namespace fl::codegen::cpu
