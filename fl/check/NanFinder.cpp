#include "fl/check/NanFinder.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "fl/base/Log.h"
#include "fl/check/CheckedPlan.h"
#include "fl/check/Values.h"

namespace fl::check {

using ir::HostOperand;
using ir::KernelValue;
using ir::Kind;
using ir::ValueType;
using runtime::StepMemory;
using Form = KernelValue::Form;

namespace {

// Whether an operator makes what no operand holds: NaN of none, or an infinity of finite numbers.
bool isMade(double made, const std::vector<HostOperand>& operands) {
  return std::ranges::none_of(operands, [&](const HostOperand& operand) {
    return std::isnan(made) ? holdsNan(operand)
                            : firstNotFinite(*operand.type, operand.data).has_value();
  });
}

// The first element that is NaN where the operands' are not, or infinite where they are finite.
std::optional<Dim> firstMade(const ValueType& type, const void* data,
                             const std::vector<HostOperand>& operands) {
  const Dim count = firstNotFinite(type, data) ? type.shape.elements() : 0;
  for (Dim i = 0; i < count; ++i) {
    const double x = elementAt(type.type, data, i).toDouble();
    const auto isLike = [&](const HostOperand& operand) {
      const double y = elementAt(operand.type->type, operand.data, i).toDouble();
      return std::isnan(y) || (std::isinf(x) && std::isinf(y));
    };
    if (!std::isfinite(x) && std::ranges::none_of(operands, isLike)) return i;
  }
  return std::nullopt;
}

// An extreme of nothing is infinite.
bool isExtreme(ir::Op op) { return ir::opKind(op) == Kind::Reduce && op != ir::Op::Sum; }

// Values that come from somewhere else are none that a kernel makes.
bool isMaker(const ir::Kernel& kernel, const KernelValue& value) {
  const bool applies = value.form == Form::Apply && ir::opKind(value.op) != Kind::Select;
  return isFloating(value.type) &&
         (applies || (value.form == Form::Total && !isExtreme(kernel.reductionOf(value).op)));
}

}  // namespace

void NanFinder::afterSteps(size_t begin, size_t end, const StepMemory& memory) {
  if (next_) next_->afterSteps(begin, end, memory);
  for (size_t i = begin; i < end; ++i) {
    const auto* call = std::get_if<ir::LibraryStep>(&schedule_.steps[i]);
    call ? checkCall(*call, memory) : checkLaunch(i, memory);
  }
}

NanFinder::Subject NanFinder::subjectOf(ir::ValueId id) const {
  const ir::Node& node = compiled_.node(id);
  if (node.origin >= 0) {
    const ir::Node& as = recorded_.nodes()[node.origin];
    const bool isSame = as.type.shape.elements() == node.type.shape.elements();
    if (isSame) return {as.op, as.type, as.site, id};
  }
  return {node.op, node.type, node.site};
}

void NanFinder::tell(const Subject& subject, Dim element, double value,
                     const std::string& ranges) const {
  const std::string fault = std::isnan(value) ? " is NaN and its operands are not"
                            : std::isinf(value)
                                ? " is infinite and its operands are finite"
                                : absl::StrFormat(
                                      " is NaN or infinite in machine code, and %g where its "
                                      "kernel is interpreted",
                                      value);
  const bool isMoved = subject.made >= 0 && movedValues(compiled_)[subject.made];
  if (isMoved)
    element = recordedElement(element, subject.type.shape, compiled_.type(subject.made).shape);
  const std::string what = absl::StrCat("element ", element, fault, ranges);
  const std::string found = finding(flag_, subject.op, subject.type, subject.site, what);
  if (flag_ == "nan") throw Finding(found);
  static auto& told = *new CallSites();
  if (told.insert(subject.site)) logWarning(found);
}

void NanFinder::checkCall(const ir::LibraryStep& call, const StepMemory& memory) const {
  const MemoryBlockPtr result = memory.read(call.result, call.resultType.type);
  const auto element = firstNotFinite(call.resultType, result->data());
  if (!element || isExtreme(call.op)) return;
  std::vector<MemoryBlockPtr> blocks;
  std::vector<HostOperand> operands;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    blocks.push_back(memory.read(call.operands[i], call.operandTypes[i].type));
    operands.push_back({&call.operandTypes[i], blocks.back()->data()});
  }
  const double value = elementAt(call.resultType.type, result->data(), *element).toDouble();
  if (!isMade(value, operands)) return;
  tell(call.node >= 0 ? subjectOf(call.node) : Subject{call.op, call.resultType, call.site},
       *element, value, rangesOf(operands, call.operandTypes));
}

void NanFinder::checkLaunch(size_t step, const StepMemory& memory) const {
  const auto& launch = std::get<ir::LaunchStep>(schedule_.steps[step]);
  const ir::Kernel& kernel = schedule_.kernels[launch.kernel];
  const std::span<const uint64_t> found = memory.found(step);
  std::vector<int> suspects;
  for (size_t value = 0; value < kernel.values.size(); ++value) {
    const bool isSuspect = found.empty() || found[value] != StepMemory::kNotFound;
    if (isSuspect && isMaker(kernel, kernel.values[value])) {
      suspects.push_back(static_cast<int>(value));
    }
  }
  // In the order of recording.
  const auto nodeOf = [&](int value) { return launch.nodes.empty() ? -1 : launch.nodes[value]; };
  std::ranges::stable_sort(suspects, {}, nodeOf);
  for (int value : suspects) {
    checkValue(launch, value, found.empty() ? StepMemory::kNotLooked : found[value], memory);
  }
}

const KernelValue& NanFinder::applied(const ir::Kernel& kernel, const ir::LaunchStep& launch,
                                      int value) {
  const auto isResultCast = [&](const KernelValue& cast) {
    const bool casts = cast.form == Form::Apply && cast.op == ir::Op::Cast;
    return casts && !launch.nodes.empty() && launch.nodes[cast.args[0]] == launch.nodes[value] &&
           isMaker(kernel, kernel.values[cast.args[0]]);
  };
  const KernelValue* made = &kernel.values[value];
  while (isResultCast(*made)) made = &kernel.values[made->args[0]];
  return *made;
}

void NanFinder::checkValue(const ir::LaunchStep& launch, int value, uint64_t place,
                           const StepMemory& memory) const {
  const ir::Kernel& kernel = schedule_.kernels[launch.kernel];
  const ir::ValueId id = launch.nodes.empty() ? -1 : launch.nodes[value];
  const ir::Node* node = id < 0 ? nullptr : &compiled_.node(id);
  const KernelValue& made = applied(kernel, launch, value);
  const bool isTotal = made.form == Form::Total;
  const bool isKnown = place < StepMemory::kNotLooked && !isTotal;
  const Probe probe(schedule_, launch, memory);
  const uint32_t all = (1u << kernel.rank) - 1, varied = variedAxes(kernel)[value];
  uint32_t axes = varied & kernel.reduced ? all : all & ~kernel.reduced;
  if (node && node->type.shape.elements() != probe.count(axes)) axes = varied;
  const std::vector<char> result = probe.elements(value, axes);
  const ValueType flat{kernel.values[value].type, {probe.count(axes)}};
  if (!isKnown && !firstNotFinite(flat, result.data())) return;

  const std::vector<int> read = isTotal ? std::vector{kernel.reductionOf(made).value} : made.args;
  std::vector<std::vector<char>> elements;
  std::vector<ValueType> types, shown;
  for (size_t i = 0; i < read.size(); ++i) {
    elements.push_back(probe.elements(read[i], isTotal ? all : axes));
    types.push_back({kernel.values[read[i]].type, {probe.count(isTotal ? all : axes)}});
    const bool isOperand = node && node->operands.size() == read.size();
    shown.push_back(isOperand ? compiled_.type(node->operands[i]) : types.back());
  }
  std::vector<HostOperand> operands;
  for (size_t i = 0; i < read.size(); ++i) operands.push_back({&types[i], elements[i].data()});
  const auto first = isKnown   ? probe.elementAt(place, axes)
                     : isTotal ? firstNotFinite(flat, result.data())
                               : firstMade(flat, result.data(), operands);
  if (!first) return;
  const double x = elementAt(flat.type, result.data(), *first).toDouble();
  if (isTotal && !isMade(x, operands)) return;
  const ir::Op op = isTotal ? kernel.reductionOf(made).op : made.op;
  tell(node ? subjectOf(id) : Subject{op, flat, launch.site}, *first, x, rangesOf(operands, shown));
}

}  // namespace fl::check
