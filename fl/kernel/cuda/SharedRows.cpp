#include "fl/kernel/cuda/SharedRows.h"

#include <algorithm>

namespace fl::ir::cuda {
namespace {

using Form = KernelValue::Form;

// What is read from memory and differs from row to row.
bool isReadForRow(const Kernel& kernel, int number, uint32_t varies) {
  const KernelValue& value = kernel.values[number];
  const bool isLoad =
      value.form == Form::Load && kernel.operands[value.index].role == KernelOperand::Role::Input;
  const uint32_t kept = ~kernel.reduced & ((1u << kernel.rank) - 1);
  return value.form == Form::Gather || (isLoad && (varies & kept) == kept);
}

// What is read, long to compute, or made of several values that would be read. Else it is little
// work to compute it again of the one that is read.
std::vector<bool> worthKeeping(const Kernel& kernel, const std::vector<bool>& given) {
  constexpr int kNone = -1, kSeveral = -2;
  const std::vector<uint32_t> varies = variedAxes(kernel);
  std::vector<bool> isWorth = longValues(kernel, given);
  std::vector<int> read(kernel.values.size(), kNone);  // what each value is made of
  for (int number = 0; number < static_cast<int>(kernel.values.size()); ++number) {
    if (!(varies[number] & 1) || given[number]) continue;
    if (isReadForRow(kernel, number, varies[number])) {
      read[number] = number;
      isWorth[number] = true;
      continue;
    }
    for (int arg : kernel.values[number].args) {
      if (read[arg] == kNone || read[arg] == read[number]) continue;
      read[number] = read[number] == kNone ? read[arg] : kSeveral;
    }
    isWorth[number] = isWorth[number] || read[number] == kSeveral;
  }
  return isWorth;
}

// Bytes for each element that rows of one type have in turn: in the places of another size lie
// other elements, and compilers take those of another type for other memory.
struct Place {
  dtype type;
  int offset, lastRead;
};

}  // namespace

SharedRows sharedRows(const Kernel& kernel) {
  if (!kernel.rows()) return {};
  StageValues values = valuesOfStages(
      kernel, [&](const std::vector<bool>& given) { return worthKeeping(kernel, given); });
  std::ranges::stable_sort(values.keptRows, {}, &KeptRow::writer);
  SharedRows result;
  std::vector<Place> places;
  for (const KeptRow& row : values.keptRows) {
    const KernelValue& value = kernel.values[row.value];
    const bool isFetched =
        value.form == Form::Load && kernel.operands[value.index].strides[0] == Stride::One;
    int lastRead = row.firstRead;
    for (int stage = row.firstRead; stage < static_cast<int>(values.needed.size()); ++stage) {
      if (std::ranges::find(values.needed[stage], row.value) != values.needed[stage].end()) {
        lastRead = stage;
      }
    }
    // A sweep that reads an element's place may write to it afterwards.
    auto place = std::ranges::find_if(places, [&](const Place& old) {
      return old.type == value.type && old.lastRead <= row.writer - isFetched;
    });
    if (place == places.end()) {
      place = places.insert(place, {value.type, result.bytesEach, 0});
      result.bytesEach += static_cast<int>(getTypeSize(value.type));
    }
    place->lastRead = lastRead;
    result.rows.push_back({row.value, row.writer, isFetched, place->offset});
  }
  result.needed = std::move(values.needed);
  return result;
}

}  // namespace fl::ir::cuda
