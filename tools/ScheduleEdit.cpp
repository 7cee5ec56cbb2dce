#include "tools/ScheduleEdit.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "fl/base/Error.h"
#include "fl/planner/Memory.h"
#include "tools/Files.h"

namespace fl::tools {
namespace {

using ir::BufferRef;
using ir::KernelValue;
using Space = BufferRef::Space;

// What a kernel refers to by number.
enum Table { kValues, kOperands, kScalars, kReductions };

void forEachReference(ir::Kernel* kernel, const std::function<void(Table, int*)>& visit) {
  for (KernelValue& value : kernel->values) {
    for (int& arg : value.args) visit(kValues, &arg);
    if (value.form == KernelValue::Form::Apply) continue;
    visit(value.form == KernelValue::Form::Scalar  ? kScalars
          : value.form == KernelValue::Form::Total ? kReductions
                                                   : kOperands,
          &value.index);
  }
  for (ir::KernelStage& stage : kernel->stages) {
    for (ir::KernelStage::Store& store : stage.stores) {
      visit(kOperands, &store.operand);
      visit(kValues, &store.value);
    }
    for (ir::KernelStage::Reduce& reduce : stage.reduces) {
      visit(kValues, &reduce.value);
      visit(kReductions, &reduce.index);
    }
  }
}

// What a step refers to: so many elements of a buffer, or a number or scratch memory.
struct Reference {
  enum class Use { Reads, Writes, Other };
  BufferRef* buffer;
  Use use = Use::Other;
  dtype type = dtype::s64;
  Dim elements = 0;
};
using Visit = std::function<void(const Reference& reference)>;

void visitIndex(Space space, int* index, const Visit& visit) {
  if (*index < 0) return;
  BufferRef ref{space, *index};
  visit({&ref});
  *index = ref.index;
}

void visitOffset(ir::ElementOffset* offset, const Visit& visit) {
  for (auto& term : offset->terms) visitIndex(Space::Parameter, &term.parameter, visit);
}

// Those in each other's place, as in neighbouring windows, count once.
Dim elementsOf(const ir::LaunchOperand& operand, const std::vector<Dim>& extents) {
  const auto range = ir::touchedElements({{}, {}, operand.strides}, extents, {});
  Dim elements = 1;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    elements *= operand.strides[axis] == 0 ? 1 : extents[axis];
  }
  return std::min(elements, range.end - range.begin);
}

void visitLaunch(const ir::Kernel& kernel, ir::LaunchStep* launch, const Visit& visit) {
  for (const auto use : {Reference::Use::Reads, Reference::Use::Writes}) {
    for (size_t i = 0; i < launch->operands.size(); ++i) {
      ir::LaunchOperand& operand = launch->operands[i];
      const bool writes = kernel.operands[i].role == ir::KernelOperand::Role::Output;
      if (!operand.buffer || writes != (use == Reference::Use::Writes)) continue;
      const Dim elements = elementsOf(operand, launch->extents);
      visit({&*operand.buffer, use, kernel.operands[i].type, elements});
    }
  }
  for (ir::LaunchOperand& operand : launch->operands) visitOffset(&operand.offset, visit);
  for (int& number : launch->numbers) visitIndex(Space::Parameter, &number, visit);
}

void visitCall(ir::LibraryStep* call, const Visit& visit) {
  const auto place = [&](ir::BufferPlace* it, Reference::Use use, const ir::ValueType& type) {
    visit({&it->buffer, use, type.type, type.shape.elements()});
    visitOffset(&it->offset, visit);
  };
  for (size_t i = 0; i < call->operands.size(); ++i) {
    place(&call->operands[i], Reference::Use::Reads, call->operandTypes[i]);
  }
  place(&call->result, Reference::Use::Writes, call->resultType);
}

// In the order of steps, and what a step reads first.
void forEachReference(ir::Schedule* schedule, const Visit& visit) {
  for (ir::Step& step : schedule->steps) {
    if (auto* launch = std::get_if<ir::LaunchStep>(&step)) {
      visitLaunch(schedule->kernels[launch->kernel], launch, visit);
    } else {
      visitCall(&std::get<ir::LibraryStep>(step), visit);
    }
    std::visit([&](auto& s) { visitIndex(Space::Temporary, &s.scratch, visit); }, step);
  }
}

template <typename T>
void keepUsed(const std::vector<bool>& used, std::vector<T>* all) {
  size_t i = 0;
  std::erase_if(*all, [&](const T&) { return !used[i++]; });
}

// Of what is used.
std::vector<int> newNumbers(const std::vector<bool>& used) {
  std::vector<int> numbers;
  for (int next = 0; const bool isUsed : used) numbers.push_back(isUsed ? next++ : -1);
  return numbers;
}

std::vector<bool> neededValues(const ir::Kernel& kernel) {
  std::vector<int> pending;
  for (const ir::KernelStage& stage : kernel.stages) {
    for (const ir::KernelStage::Store& store : stage.stores) pending.push_back(store.value);
  }
  std::vector<bool> needed(kernel.values.size(), false);
  while (!pending.empty()) {
    const int i = pending.back();
    pending.pop_back();
    if (needed[i]) continue;
    needed[i] = true;
    const KernelValue& value = kernel.values[i];
    pending.insert(pending.end(), value.args.begin(), value.args.end());
    if (value.form == KernelValue::Form::Total) pending.push_back(kernel.reductionOf(value).value);
  }
  return needed;
}

// What no store needs; launches lose the operands and numbers, too.
void dropUnneeded(ir::Schedule* schedule, int number) {
  ir::Kernel& kernel = schedule->kernels[number];
  std::array<std::vector<bool>, 4> used = {neededValues(kernel)};
  used[kOperands].resize(kernel.operands.size());
  used[kScalars].resize(kernel.scalars.size());
  used[kReductions].resize(kernel.reductionCount());
  keepUsed(used[kValues], &kernel.values);
  for (const KernelValue& value : kernel.values) {
    if (value.form == KernelValue::Form::Total) used[kReductions][value.index] = true;
  }
  for (ir::KernelStage& stage : kernel.stages) {
    std::erase_if(stage.reduces, [&](const auto& it) { return !used[kReductions][it.index]; });
  }
  std::erase_if(kernel.stages,
                [](const auto& it) { return it.stores.empty() && it.reduces.empty(); });
  forEachReference(&kernel, [&](Table table, int* at) { used[table][*at] = true; });
  std::array<std::vector<int>, 4> names;
  std::ranges::transform(used, names.begin(), newNumbers);
  forEachReference(&kernel, [&](Table table, int* at) { *at = names[table][*at]; });
  keepUsed(used[kOperands], &kernel.operands);
  keepUsed(used[kScalars], &kernel.scalars);
  for (ir::Step& step : schedule->steps) {
    auto* launch = std::get_if<ir::LaunchStep>(&step);
    if (!launch || launch->kernel != number) continue;
    keepUsed(used[kOperands], &launch->operands);
    keepUsed(used[kScalars], &launch->numbers);
  }
}

// Launches that write nothing, and kernels that nothing launches.
void dropIdle(ir::Schedule* schedule) {
  std::vector<bool> used(schedule->kernels.size(), false);
  for (size_t i = schedule->steps.size(); i-- > 0;) {
    const auto* launch = std::get_if<ir::LaunchStep>(&schedule->steps[i]);
    if (!launch) continue;
    used[launch->kernel] = storesOf(schedule->kernels[launch->kernel]) > 0;
    if (!used[launch->kernel]) dropSteps(schedule, i, i + 1);
  }
  const std::vector<int> names = newNumbers(used);
  for (ir::Step& step : schedule->steps) {
    if (auto* launch = std::get_if<ir::LaunchStep>(&step)) launch->kernel = names[launch->kernel];
  }
  keepUsed(used, &schedule->kernels);
}

// A read of more elements than steps before it write is of a parameter, as some would have no
// value. Returns how many steps write, by buffer.
std::map<BufferRef, Dim> addParameters(ir::Schedule* schedule) {
  std::map<BufferRef, Dim> written;
  for (int i = 0; i < std::ssize(schedule->outputs); ++i) {
    const ir::ScheduleOutput& output = schedule->outputs[i];
    if (output.over >= 0) written[{Space::Output, i}] = output.type.shape.elements();
  }
  std::map<BufferRef, BufferRef> added;
  forEachReference(schedule, [&](const Reference& it) {
    const BufferRef ref = *it.buffer;
    if (it.use == Reference::Use::Writes) written[ref] += it.elements;
    if (it.use != Reference::Use::Reads || ref.space == Space::Parameter) return;
    if (it.elements <= written[ref]) return;
    if (!added.contains(ref)) {
      added[ref] = {Space::Parameter, static_cast<int>(schedule->parameters.size())};
      const Shape shape{ir::bufferElements(*schedule, ref, it.type)};
      schedule->parameters.push_back({.type = {it.type, shape}});
    }
    *it.buffer = added[ref];
  });
  return written;
}

// A temporary that nothing reads after it is written is an output.
void addOutputs(ir::Schedule* schedule, const std::map<BufferRef, Dim>& written) {
  std::map<BufferRef, dtype> unread;
  forEachReference(schedule, [&](const Reference& it) {
    unread.erase(*it.buffer);
    const bool writes = it.use == Reference::Use::Writes;
    if (writes && it.buffer->space == Space::Temporary) unread[*it.buffer] = it.type;
  });
  std::map<BufferRef, BufferRef> added;
  for (const auto& [ref, type] : unread) {
    added[ref] = {Space::Output, static_cast<int>(schedule->outputs.size())};
    const Dim elements = std::min(written.at(ref), ir::bufferElements(*schedule, ref, type));
    schedule->outputs.push_back({.type = {type, Shape{elements}}, .source = {}});
  }
  forEachReference(schedule, [&](const Reference& it) {
    if (const auto found = added.find(*it.buffer); found != added.end()) *it.buffer = found->second;
  });
}

// Every element of an output is written: of what steps write in part, no more is left.
void cutOutputs(ir::Schedule* schedule, const std::map<BufferRef, Dim>& written) {
  for (const auto& [ref, elements] : written) {
    if (ref.space != Space::Output || elements == 0) continue;
    Shape& shape = schedule->outputs[ref.index].type.shape;
    if (elements < shape.elements()) shape = Shape{elements};
  }
}

using UsedBuffers = std::array<std::vector<bool>, 3>;  // by space

UsedBuffers usedBuffers(ir::Schedule* schedule) {
  UsedBuffers used;
  used[0].resize(schedule->parameters.size());
  used[1].resize(schedule->outputs.size());
  used[2].resize(schedule->temporaries.size());
  const auto at = [&](const BufferRef& ref) {
    return used[static_cast<int>(ref.space)][ref.index];
  };
  forEachReference(schedule, [&](const Reference& it) { at(*it.buffer) = true; });
  for (size_t i = 0; i < schedule->outputs.size(); ++i) {
    const auto& [type, shared, source, over] = schedule->outputs[i];
    if (shared) used[1][i] = source.space == Space::Parameter || at(source);
    if (used[1][i] && shared) at(source) = true;
    if (used[1][i] && over >= 0) used[0][over] = true;
  }
  return used;
}

void dropUnusedBuffers(ir::Schedule* schedule) {
  const UsedBuffers used = usedBuffers(schedule);
  std::array<std::vector<int>, 3> names;
  std::ranges::transform(used, names.begin(), newNumbers);
  const auto rename = [&](BufferRef* ref) {
    ref->index = names[static_cast<int>(ref->space)][ref->index];
  };
  forEachReference(schedule, [&](const Reference& it) { rename(it.buffer); });
  std::vector<ir::Temporary>& temporaries = schedule->temporaries;
  for (size_t i = temporaries.size(); i-- > 0;) {
    int& home = temporaries[i].shares;
    while (home >= 0 && !used[2][home]) home = temporaries[home].shares;
    if (home >= 0) home = names[2][home];
  }
  keepUsed(used[0], &schedule->parameters);
  keepUsed(used[1], &schedule->outputs);
  keepUsed(used[2], &temporaries);
  for (ir::ScheduleOutput& output : schedule->outputs) {
    if (output.shared) rename(&output.source);
    if (output.over >= 0) output.over = names[0][output.over];
  }
}

}  // namespace

std::optional<ir::Schedule> applyEdit(const ir::Schedule& schedule, const ScheduleEdit& edit) {
  ir::Schedule edited = schedule;
  if (edit) edit(&edited);
  for (int i = 0; i < std::ssize(edited.kernels); ++i) dropUnneeded(&edited, i);
  const bool isAlone = schedule.steps.empty();
  if (isAlone && !std::ranges::all_of(edited.kernels, storesOf)) return std::nullopt;
  if (!isAlone) dropIdle(&edited);
  const std::map<BufferRef, Dim> written = addParameters(&edited);
  cutOutputs(&edited, written);
  addOutputs(&edited, written);
  dropUnusedBuffers(&edited);
  if (edited.temporaries.empty()) edited.arenaBytes = 0;
  edited.arenaBound = planner::mostAlive(edited);
  edited.recordedBound = edited.unplannedBytes = edited.recomputed = 0;
  try {
    parsePackedSchedule(printSchedule(edited, "s"));
  } catch (const InternalError&) {
    return std::nullopt;
  }
  return edited;
}

ScheduleSize sizeOf(ir::Schedule schedule) {
  size_t instructions = 0, stores = 0;
  size_t others =
      schedule.parameters.size() + schedule.outputs.size() + schedule.temporaries.size();
  Dim elements = 0;
  for (const ir::Kernel& kernel : schedule.kernels) {
    const auto isInstruction = [](const KernelValue& value) {
      return value.form != KernelValue::Form::Load && value.form != KernelValue::Form::Scalar;
    };
    instructions += std::ranges::count_if(kernel.values, isInstruction);
    stores += storesOf(kernel);
    others += kernel.values.size() + kernel.operands.size() + kernel.scalars.size();
  }
  for (const auto& parameter : schedule.parameters) elements += parameter.type.shape.elements();
  for (const auto& output : schedule.outputs) elements += output.type.shape.elements();
  forEachReference(&schedule, [&](const Reference& it) { elements += it.elements; });
  return {schedule.steps.size(), instructions, stores, others, elements};
}

size_t storesOf(const ir::Kernel& kernel) {
  size_t stores = 0;
  for (const ir::KernelStage& stage : kernel.stages) stores += stage.stores.size();
  return stores;
}

void dropSteps(ir::Schedule* schedule, size_t begin, size_t end) {
  std::vector<ir::Step>& steps = schedule->steps;
  steps.erase(steps.begin() + begin, steps.begin() + end);
  // Without the call before it a launch is no epilogue.
  auto* next = begin < steps.size() ? std::get_if<ir::LaunchStep>(&steps[begin]) : nullptr;
  if (next) next->epilogue = false;
  const int first = static_cast<int>(begin), count = static_cast<int>(end - begin);
  const auto moved = [&](int step) { return step - std::clamp(step - first, 0, count); };
  for (ir::Temporary& temporary : schedule->temporaries) {
    temporary.first = moved(temporary.first);
    temporary.last = moved(temporary.last + 1) - 1;
  }
}

void dropStores(ir::Kernel* kernel, size_t begin, size_t end) {
  size_t next = 0;
  for (ir::KernelStage& stage : kernel->stages) {
    std::erase_if(stage.stores, [&](const auto&) {
      const size_t number = next++;
      return begin <= number && number < end;
    });
  }
}

void bypass(ir::Kernel* kernel, size_t begin, size_t end, bool last) {
  const std::vector<KernelValue>& values = kernel->values;
  std::vector<int> names(values.size());
  std::iota(names.begin(), names.end(), 0);
  for (size_t i = begin; i < end; ++i) {
    std::vector<int> choices = values[i].args;
    for (size_t j = 0; values[i].args.empty() && j < i; ++j) {
      if (values[j].args.empty()) choices.push_back(static_cast<int>(j));
    }
    std::erase_if(choices, [&](int choice) { return values[choice].type != values[i].type; });
    if (!choices.empty()) names[i] = names[last ? choices.back() : choices.front()];
  }
  forEachReference(kernel, [&](Table table, int* at) {
    if (table == kValues) *at = names[*at];
  });
}

}  // namespace fl::tools
