#include "fl/kernel/Schedule.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <ranges>
#include <set>

#include "fl/base/Error.h"
#include "fl/ir/Inference.h"
#include "fl/kernel/Strided.h"

namespace fl::ir {
namespace {

size_t typeBytes(const ValueType& type) { return bytesOf(type.type, type.shape); }

// Elements an operand touches: broadcast axes do not count.
size_t touchedBytes(const KernelOperand& operand, const LaunchOperand& binding,
                    const std::vector<Dim>& extents) {
  if (operand.role == KernelOperand::Role::Index) return 0;
  Dim elements = 1;
  for (size_t axis = 0; axis < extents.size(); ++axis)
    elements *= binding.strides[axis] == 0 ? std::min<Dim>(extents[axis], 1) : extents[axis];
  return static_cast<size_t>(elements) * getTypeSize(operand.type);
}

bool isNumber(const Schedule& schedule, const BufferRef& ref) {
  return ref.space == BufferRef::Space::Parameter &&
         static_cast<size_t>(ref.index) < schedule.parameters.size() &&
         schedule.parameters[ref.index].number;
}

std::string refName(const BufferRef& ref) {
  static const char* const kNames[] = {"parameter ", "output ", "temporary "};
  return kNames[static_cast<int>(ref.space)] + std::to_string(ref.index);
}

// A buffer that a step may use.
void checkRef(const Schedule& schedule, const BufferRef& ref, int step, bool isMoved = false) {
  const size_t index = static_cast<size_t>(ref.index);
  const size_t counts[] = {schedule.parameters.size(), schedule.outputs.size(),
                           schedule.temporaries.size()};
  FL_INTERNAL_CHECK(index < counts[static_cast<int>(ref.space)], "step ", step, " uses ",
                    refName(ref), ", which does not exist");
  FL_INTERNAL_CHECK(!isNumber(schedule, ref), "step ", step, " uses ", refName(ref),
                    ", a number, as a buffer");
  FL_INTERNAL_CHECK(ref.space != BufferRef::Space::Output || !schedule.outputs[index].shared,
                    "step ", step, " uses ", refName(ref), ", which only shares another buffer");
  if (ref.space == BufferRef::Space::Temporary) {
    const Temporary& temporary = schedule.temporaries[index];
    FL_INTERNAL_CHECK(temporary.first <= step && step <= temporary.last, refName(ref),
                      " is not alive at step ", step);
    FL_INTERNAL_CHECK(isMoved || !temporary.onHost, "step ", step, " uses ", refName(ref),
                      ", which is on the host, and does not move it");
  }
}

void checkWritable(const BufferRef& ref, int step) {
  FL_INTERNAL_CHECK(ref.space != BufferRef::Space::Parameter, "step ", step, " writes ",
                    refName(ref));
}

// Parameters and outputs are read and written as what they are.
void checkType(const Schedule& schedule, const BufferRef& ref, dtype type, int step) {
  const dtype stated =
      ref.space == BufferRef::Space::Parameter ? schedule.parameters[ref.index].type.type
      : ref.space == BufferRef::Space::Output  ? schedule.outputs[ref.index].type.type
                                               : type;
  FL_INTERNAL_CHECK(stated == type, "step ", step, " uses ", refName(ref), ", of ", stated, ", as ",
                    type);
}

void verifyLaunchShape(const Schedule& schedule, const LaunchStep& launch, int step) {
  FL_INTERNAL_CHECK(launch.kernel >= 0 && launch.kernel < static_cast<int>(schedule.kernels.size()),
                    "step ", step, " launches kernel ", launch.kernel, " of ",
                    schedule.kernels.size());
  const Kernel& kernel = schedule.kernels[launch.kernel];
  FL_INTERNAL_CHECK(static_cast<int>(launch.extents.size()) == kernel.rank, "step ", step, " has ",
                    launch.extents.size(), " extents for a kernel of rank ", kernel.rank);
  FL_INTERNAL_CHECK(launch.operands.size() == kernel.operands.size(), "step ", step, " has ",
                    launch.operands.size(), " operands for a kernel of ", kernel.operands.size());
  FL_INTERNAL_CHECK(launch.numbers.size() == kernel.scalars.size(), "step ", step, " has ",
                    launch.numbers.size(), " numbers for a kernel of ", kernel.scalars.size());
  const bool empty = std::ranges::count(launch.extents, 0) > 0;
  Dim elements = 1;
  for (Dim extent : launch.extents) {
    FL_INTERNAL_CHECK(extent >= 0, "step ", step, " has an extent of ", extent);
    FL_INTERNAL_CHECK(empty || !__builtin_mul_overflow(elements, extent, &elements), "step ", step,
                      " has too many elements");
  }
}

void checkNumber(const Schedule& schedule, int parameter, dtype type, int step) {
  FL_INTERNAL_CHECK(isNumber(schedule, {BufferRef::Space::Parameter, parameter}), "step ", step,
                    ": parameter ", parameter, " is no number");
  const dtype stated = schedule.parameters[parameter].type.type;
  FL_INTERNAL_CHECK(stated == type, "step ", step, " uses number ", parameter, ", of ", stated,
                    ", as ", type);
}

template <class Name>
void verifyStrides(const KernelOperand& operand, const LaunchOperand& binding, int rank,
                   Name&& which) {
  FL_INTERNAL_CHECK(static_cast<int>(binding.strides.size()) == rank, which(), " has ",
                    binding.strides.size(), " strides, not ", rank);
  for (int axis = 0; axis < rank; ++axis) {
    const Stride known = operand.strides[axis];
    FL_INTERNAL_CHECK(known == Stride::Any || binding.strides[axis] == (known == Stride::One),
                      which(), " breaks its stride class");
  }
}

void verifyLaunch(const Schedule& schedule, const LaunchStep& launch, int step) {
  verifyLaunchShape(schedule, launch, step);
  const Kernel& kernel = schedule.kernels[launch.kernel];
  for (size_t i = 0; i < launch.operands.size(); ++i) {
    const KernelOperand& operand = kernel.operands[i];
    const LaunchOperand& binding = launch.operands[i];
    const auto which = [&] { return detail::concat("operand ", i, " of step ", step); };
    verifyStrides(operand, binding, kernel.rank, which);
    for (const ElementOffset::Term& term : binding.offset.terms)
      checkNumber(schedule, term.parameter, dtype::s64, step);
    const bool index = operand.role == KernelOperand::Role::Index;
    FL_INTERNAL_CHECK(binding.buffer.has_value() != index, which(),
                      index ? " is an index and has a buffer" : " has no buffer");
    if (index) continue;
    checkRef(schedule, *binding.buffer, step);
    checkType(schedule, *binding.buffer, operand.type, step);
    if (operand.role == KernelOperand::Role::Output) checkWritable(*binding.buffer, step);
    if (binding.offset.terms.empty()) {
      const ElementRange range = touchedElements(binding, launch.extents, {});
      const Dim count = bufferElements(schedule, *binding.buffer, operand.type);
      FL_INTERNAL_CHECK(range.begin == range.end || (range.begin >= 0 && range.end <= count),
                        which(), " touches elements ", range.begin, " to ", range.end - 1, " of ",
                        refName(*binding.buffer), ", which has ", count);
    }
  }
  for (size_t i = 0; i < launch.numbers.size(); ++i)
    checkNumber(schedule, launch.numbers[i], kernel.scalars[i], step);
}

void verifyCall(const Schedule& schedule, const LibraryStep& call, int step) {
  const auto checkOperand = [&](const BufferPlace& place, const ValueType& type) {
    const auto& [ref, offset] = place;
    if (isNumber(schedule, ref) && offset == ElementOffset()) {
      FL_INTERNAL_CHECK(type.shape.elements() == 1, "step ", step, " uses ", refName(ref),
                        ", a number, as ", type.toString());
      return checkNumber(schedule, ref.index, type.type, step);
    }
    checkRef(schedule, ref, step, isMove(schedule, call));
    checkType(schedule, ref, type.type, step);
    for (const auto& term : offset.terms) checkNumber(schedule, term.parameter, dtype::s64, step);
    const Dim count = bufferElements(schedule, ref, type.type);
    const Dim first = offset.terms.empty() ? offset.constant : 0;  // where that is known
    FL_INTERNAL_CHECK(first >= 0 && type.shape.elements() <= count - first, "step ", step, " uses ",
                      refName(ref), ", which has ", count, " elements, as ", type.toString(),
                      first == 0 ? "" : " from element " + std::to_string(first) + " on");
  };
  std::vector<const ValueType*> types;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    checkOperand(call.operands[i], call.operandTypes[i]);
    types.push_back(&call.operandTypes[i]);
  }
  checkOperand(call.result, call.resultType);
  checkWritable(call.result.buffer, step);
  const int arity = opInfo(call.op).arity, count = static_cast<int>(types.size());
  FL_INTERNAL_CHECK(arity < 0 ? count >= -arity : count == arity, "step ", step, ": ",
                    opName(call.op), " has ", count, " operands");
  ValueType expected;
  std::string rule;
  try {
    expected = inferType(call.op, types, call.attrs);
  } catch (const std::invalid_argument& error) {
    rule = error.what();
  }
  FL_INTERNAL_CHECK(rule.empty(), "step ", step, ": ", rule);
  FL_INTERNAL_CHECK(expected == call.resultType, "step ", step, ": the result is ",
                    expected.toString(), ", not ", call.resultType.toString());
}

// The call's operands must live until its epilogue ends.
void verifyEpilogue(const Schedule& schedule, const LaunchStep& launch, int step) {
  const auto* call = step > 0 ? std::get_if<LibraryStep>(&schedule.steps[step - 1]) : nullptr;
  FL_INTERNAL_CHECK(call && fitsAsEpilogue(schedule, launch, *call), "step ", step,
                    " is no epilogue of the step before it");
  for (const BufferRef& ref : stepBuffers(schedule, *call).reads) checkRef(schedule, ref, step);
  if (call->scratch >= 0) checkRef(schedule, {BufferRef::Space::Temporary, call->scratch}, step);
}

// Follows what the steps have written, which is all that they may read.
class WrittenBuffers {
 public:
  explicit WrittenBuffers(const Schedule& schedule) : schedule_(schedule) {
    for (size_t i = 0; i < schedule.outputs.size(); ++i) {
      if (schedule.outputs[i].over >= 0) write({BufferRef::Space::Output, static_cast<int>(i)});
    }
  }

  void read(const BufferRef& ref, int step) const {
    FL_INTERNAL_CHECK(ref.space == BufferRef::Space::Parameter || has(ref), "step ", step,
                      " reads what no step before it has written: ", refName(ref));
  }
  void write(const BufferRef& ref) { written_.insert(ref); }
  bool has(const BufferRef& ref) const { return isEmpty(ref) || written_.contains(ref); }

 private:
  bool isEmpty(const BufferRef& ref) const {
    return ref.space == BufferRef::Space::Output
               ? schedule_.outputs[ref.index].type.shape.elements() == 0
               : schedule_.temporaries[ref.index].bytes == 0;
  }
  const Schedule& schedule_;
  std::set<BufferRef> written_;
};

void verifyPacking(const Schedule& schedule) {
  const auto& all = schedule.temporaries;
  std::vector<int> homes;  // the first of those that share
  for (size_t i = 0; i < all.size(); ++i) {
    homes.push_back(all[i].shares < 0 ? static_cast<int>(i) : homes[all[i].shares]);
    FL_INTERNAL_CHECK(
        all[i].offset == all[homes[i]].offset && all[i].onHost == all[homes[i]].onHost,
        "temporary ", i, " does not share the memory of ", homes[i]);
    FL_INTERNAL_CHECK(all[i].onHost || (all[i].bytes <= schedule.arenaBytes &&
                                        all[i].offset <= schedule.arenaBytes - all[i].bytes),
                      "temporary ", i, " ends behind the arena's ", schedule.arenaBytes, " bytes");
    for (size_t j = 0; j < i; ++j) {
      const bool together = all[i].first <= all[j].last && all[j].first <= all[i].last;
      const bool apart = all[i].onHost != all[j].onHost ||
                         all[i].offset + all[i].bytes <= all[j].offset ||
                         all[j].offset + all[j].bytes <= all[i].offset;
      FL_INTERNAL_CHECK(!together || apart || homes[i] == homes[j], "temporaries ", j, " and ", i,
                        " overlap");
    }
  }
}

void verifyOutputs(const Schedule& schedule, const WrittenBuffers& written) {
  for (size_t i = 0; i < schedule.outputs.size(); ++i) {
    const ScheduleOutput& output = schedule.outputs[i];
    const BufferRef self{BufferRef::Space::Output, static_cast<int>(i)};
    const bool over = output.over >= 0;
    if (!output.shared && !over) {
      FL_INTERNAL_CHECK(written.has(self), "no step writes ", refName(self));
      continue;
    }
    const BufferRef from =
        over ? BufferRef{BufferRef::Space::Parameter, output.over} : output.source;
    FL_INTERNAL_CHECK(from.space != BufferRef::Space::Temporary, refName(self), " shares ",
                      refName(from));
    checkRef(schedule, from, static_cast<int>(schedule.steps.size()));
    checkType(schedule, from, output.type.type, static_cast<int>(schedule.steps.size()));
    const Dim count = bufferElements(schedule, from, output.type.type);
    FL_INTERNAL_CHECK(output.type.shape.elements() == count, refName(self), " is ",
                      output.type.toString(), over ? " over " : " and shares ", refName(from),
                      ", which has ", count, " elements of it");
  }
}

}  // namespace

std::vector<int64_t> placesOf(const Kernel& kernel, const LaunchStep& launch) {
  std::vector<int> axes(kernel.rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (kernel.reduced == 0) {
    // The axes of a map may be in another order than its results'.
    const auto isOutput = [](const auto& x) { return x.role == KernelOperand::Role::Output; };
    const auto output = std::ranges::find_if(kernel.operands, isOutput) - kernel.operands.begin();
    std::ranges::stable_sort(axes, {}, [&](int a) { return launch.operands[output].strides[a]; });
  }
  std::vector<int64_t> places(kernel.rank);
  int64_t place = 1;
  for (int axis : axes) {
    places[axis] = place;
    place *= std::max<int64_t>(1, launch.extents[axis]);  // sums of nothing have places, too
  }
  return places;
}

ElementRange touchedElements(const LaunchOperand& operand, const std::vector<Dim>& extents,
                             const std::vector<Number>& numbers) {
  bool overflows = false;
  const auto add = [&](Dim count, Dim factor, Dim* sum) {
    Dim product = 0;
    overflows |= __builtin_mul_overflow(count, factor, &product);
    overflows |= __builtin_add_overflow(*sum, product, sum);
  };
  ElementRange range{operand.offset.constant, 0};
  for (const ElementOffset::Term& term : operand.offset.terms)
    add(numbers[term.parameter].toInt(), term.factor, &range.begin);
  range.end = range.begin;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] == 0) return {range.begin, range.begin};
    const Dim stride = operand.strides[axis];
    add(extents[axis] - 1, stride, stride < 0 ? &range.begin : &range.end);
  }
  add(1, 1, &range.end);
  using Limits = std::numeric_limits<Dim>;
  return overflows ? ElementRange{Limits::min(), Limits::max()} : range;
}

bool fitsAsEpilogue(const Schedule& schedule, const LaunchStep& launch, const LibraryStep& call) {
  const Kernel& kernel = schedule.kernels[launch.kernel];
  const Shape space(launch.extents);
  // No axis is reduced, or axis 0 alone.
  bool fits = !crossesMemory(kernel) && (kernel.reduced == 0 || kernel.reduced == 1) &&
              kernel.gatherCount() == 0 && space.elements() == call.resultType.shape.elements();
  bool reads = false;
  for (size_t i = 0; i < launch.operands.size(); ++i) {
    const LaunchOperand& operand = launch.operands[i];
    const bool writes = kernel.operands[i].role == KernelOperand::Role::Output;
    if (writes && std::ranges::count(call.operands, *operand.buffer, &BufferPlace::buffer) > 0) {
      return false;  // other parts of the call still read it
    }
    if (operand.buffer == call.result.buffer) {
      reads = reads || !writes;
      fits = fits && kernel.operands[i].type == call.resultType.type &&
             operand.offset == call.result.offset &&
             operand.strides == contiguousLayout(space).strides;
    }
  }
  return reads && fits;
}

Dim bufferElements(const Schedule& schedule, const BufferRef& ref, dtype type) {
  const size_t bytes =
      ref.space == BufferRef::Space::Parameter ? typeBytes(schedule.parameters[ref.index].type)
      : ref.space == BufferRef::Space::Output  ? typeBytes(schedule.outputs[ref.index].type)
                                               : schedule.temporaries[ref.index].bytes;
  return static_cast<Dim>(bytes / getTypeSize(type));
}

const char* stepName(const Schedule& schedule, const Step& step) {
  if (const auto* call = std::get_if<LibraryStep>(&step)) return opName(call->op);
  const Kernel& kernel = schedule.kernels[std::get<LaunchStep>(step).kernel];
  for (const KernelValue& value : std::views::reverse(kernel.values)) {
    if (value.form == KernelValue::Form::Apply && value.op != Op::Cast) return opName(value.op);
  }
  return kernel.reductionCount() > 0 ? "a reduction" : "a copy";
}

StepBuffers stepBuffers(const Schedule& schedule, const Step& step) {
  StepBuffers buffers;
  if (const auto* launch = std::get_if<LaunchStep>(&step)) {
    const Kernel& kernel = schedule.kernels[launch->kernel];
    buffers.reads.reserve(launch->operands.size());
    for (size_t i = 0; i < launch->operands.size(); ++i) {
      const auto role = kernel.operands[i].role;
      if (role != KernelOperand::Role::Index) {
        (role == KernelOperand::Role::Output ? buffers.writes : buffers.reads)
            .push_back(*launch->operands[i].buffer);
      }
    }
  } else {
    const auto& call = std::get<LibraryStep>(step);
    buffers.reads.reserve(call.operands.size());
    for (const auto& [ref, offset] : call.operands)
      if (!isNumber(schedule, ref)) buffers.reads.push_back(ref);
    buffers.writes.push_back(call.result.buffer);
  }
  if (const int scratch = scratchOf(step); scratch >= 0)
    buffers.writes.push_back({BufferRef::Space::Temporary, scratch});
  return buffers;
}

size_t stepBytes(const Schedule& schedule, const Step& step) {
  size_t bytes = 0;
  if (const auto* launch = std::get_if<LaunchStep>(&step)) {
    const Kernel& kernel = schedule.kernels[launch->kernel];
    for (size_t i = 0; i < launch->operands.size(); ++i)
      bytes += touchedBytes(kernel.operands[i], launch->operands[i], launch->extents);
    const std::vector<uint32_t> varied = variedAxes(kernel);
    for (size_t v = 0; v < varied.size(); ++v) {  // of tables what is looked up
      const KernelValue& value = kernel.values[v];
      if (value.form != KernelValue::Form::Gather) continue;
      Dim places = 1;
      for (int axis = 0; axis < kernel.rank; ++axis)
        places *= varied[v] >> axis & 1 ? launch->extents[axis] : 1;
      const Dim table = bufferElements(schedule, *launch->operands[value.index].buffer, value.type);
      bytes += static_cast<size_t>(std::min(places, table)) * getTypeSize(value.type);
    }
  } else {
    const auto& call = std::get<LibraryStep>(step);
    // Over the old value a scatter reads and writes what changes.
    const bool scatters = call.op == Op::Scatter || call.op == Op::ScatterAdd;
    const bool inPlace = scatters && call.operands[0].buffer == call.result.buffer;
    const auto& types = call.operandTypes;
    for (size_t i = inPlace; i < types.size(); ++i) bytes += typeBytes(types[i]);
    bytes += typeBytes(inPlace ? types.back() : call.resultType);
  }
  return bytes;
}

void verifySteps(const Schedule& schedule) {
  for (const Kernel& kernel : schedule.kernels) verify(kernel);
  WrittenBuffers written(schedule);
  for (size_t i = 0; i < schedule.steps.size(); ++i) {
    const int step = static_cast<int>(i);
    if (const auto* launch = std::get_if<LaunchStep>(&schedule.steps[i])) {
      verifyLaunch(schedule, *launch, step);
      if (launch->epilogue) verifyEpilogue(schedule, *launch, step);
    } else {
      verifyCall(schedule, std::get<LibraryStep>(schedule.steps[i]), step);
    }
    const StepBuffers buffers = stepBuffers(schedule, schedule.steps[i]);
    const BufferRef scratch{BufferRef::Space::Temporary, scratchOf(schedule.steps[i])};
    for (const BufferRef& ref : buffers.reads) written.read(ref, step);
    for (const BufferRef& ref : buffers.writes)
      if (ref != scratch) written.write(ref);
    if (scratch.index < 0) continue;
    checkRef(schedule, scratch, step);
    FL_INTERNAL_CHECK(!written.has(scratch), "step ", step, " works in ", refName(scratch),
                      ", which is empty or has a value");
  }
  verifyOutputs(schedule, written);
}

void verify(const Schedule& schedule) {
  verifySteps(schedule);
  verifyPacking(schedule);
}

}  // namespace fl::ir
