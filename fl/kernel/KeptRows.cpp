#include "fl/kernel/KeptRows.h"

#include <algorithm>

namespace fl::ir {

std::vector<int> neededBy(const Kernel& kernel, std::vector<bool> marked,
                          const std::vector<bool>& given) {
  std::vector<int> needed;
  for (int value = static_cast<int>(kernel.values.size()) - 1; value >= 0; --value) {
    if (!marked[value]) continue;
    needed.push_back(value);
    if (given[value]) continue;
    for (int arg : kernel.values[value].args) marked[arg] = true;
  }
  std::reverse(needed.begin(), needed.end());
  return needed;
}

void addUsed(const KernelStage& stage, std::vector<bool>* used) {
  for (const auto& store : stage.stores) (*used)[store.value] = true;
  for (const auto& reduce : stage.reduces) (*used)[reduce.value] = true;
}

StageValues valuesOfStages(const Kernel& kernel, const WorthKeeping& worth) {
  StageValues values;
  std::vector<bool> given(kernel.values.size());
  std::vector<int> writer(kernel.values.size(), -1);  // the first sweep that computes each value
  for (int stage = 0; stage < static_cast<int>(kernel.stages.size()); ++stage) {
    std::vector<bool> used(kernel.values.size());
    addUsed(kernel.stages[stage], &used);
    if (worth && kernel.stages[stage].sweep) {
      const std::vector<bool> isWorth = worth(given);
      std::vector<bool> read = used;
      for (int value = static_cast<int>(kernel.values.size()) - 1; value >= 0; --value) {
        if (!read[value] || given[value]) continue;
        if (writer[value] >= 0 && isWorth[value] && values.keptRows.size() < kMaxKeptRows) {
          values.keptRows.push_back({value, writer[value], stage});
          given[value] = true;
        } else {
          for (int arg : kernel.values[value].args) read[arg] = true;
        }
      }
    }
    values.needed.push_back(neededBy(kernel, std::move(used), given));
    if (!kernel.stages[stage].sweep) continue;
    for (int value : values.needed.back()) {
      if (writer[value] < 0) writer[value] = stage;
    }
  }
  return values;
}

int costOf(const KernelValue& value) {
  if (value.form != KernelValue::Form::Apply) return 0;
  const OpInfo& info = opInfo(value.op);
  const bool isLong = value.op == Op::Power || (value.op == Op::Random && !drawsNumber(value));
  const bool isFmod = value.op == Op::Mod && isFloating(value.type);
  return isLong ? 2 : isFmod || isApproximated(info) ? 1 : 0;
}

std::vector<bool> longValues(const Kernel& kernel, const std::vector<bool>& given) {
  const std::vector<uint32_t> varies = variedAxes(kernel);
  std::vector<bool> isLong(kernel.values.size());
  for (size_t number = 0; number < kernel.values.size(); ++number) {
    const KernelValue& value = kernel.values[number];
    if (given[number] || !(varies[number] & 1)) continue;
    isLong[number] = value.form == KernelValue::Form::Apply &&
                     (value.op == Op::Div || value.op == Op::Random || costOf(value) > 0);
    for (int arg : value.args) isLong[number] = isLong[number] || isLong[arg];
  }
  return isLong;
}

}  // namespace fl::ir
