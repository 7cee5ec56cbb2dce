#include "fl/check/CheckedPlan.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_format.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/base/Log.h"
#include "fl/check/UnfusedPlan.h"
#include "fl/ir/Interpreter.h"

namespace fl::check {
namespace {

using ir::HostOperand;
using ir::Kind;
using ir::ValueType;

Number elementAt(const ValueType& type, const void* data, Dim i) {
  const size_t size = getTypeSize(type.type);
  uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const char*>(data) + static_cast<size_t>(i) * size, size);
  return Number(type.type, bits);
}

template <typename T>
std::optional<Dim> firstOf(const T* elements, Dim count, bool (*is)(double)) {
  const T* found = std::find_if(elements, elements + count, [&](T x) { return is(x); });
  return found == elements + count ? std::nullopt : std::optional<Dim>(found - elements);
}

// The first element of a floating dtype that `is`.
std::optional<Dim> firstOf(const ValueType& type, const void* data, bool (*is)(double)) {
  const Dim count = isFloating(type.type) ? type.shape.elements() : 0;
  if (type.type == dtype::f32) return firstOf(static_cast<const float*>(data), count, is);
  if (type.type == dtype::f64) return firstOf(static_cast<const double*>(data), count, is);
  for (Dim i = 0; i < count; ++i) {
    if (is(elementAt(type, data, i).toDouble())) return i;
  }
  return std::nullopt;
}

bool isNan(double x) { return std::isnan(x); }
bool isNotFinite(double x) { return !std::isfinite(x); }

// "f32[8] from -3 to 4"
std::string rangeOf(const HostOperand& operand) {
  double lowest = std::numeric_limits<double>::infinity(), highest = -lowest;
  for (Dim i = 0; i < operand.type->shape.elements(); ++i) {
    const double x = elementAt(*operand.type, operand.data, i).toDouble();
    lowest = std::min(lowest, x);
    highest = std::max(highest, x);
  }
  return absl::StrFormat("%s from %g to %g", operand.type->toString(), lowest, highest);
}

// The distance to the next number of the dtype, from |x| on.
double unitAt(dtype type, double x) {
  const int digits = type == dtype::f64   ? 53
                     : type == dtype::f32 ? 24
                     : type == dtype::f16 ? 11
                                          : 8;
  const int lowest = type == dtype::f64   ? -1074
                     : type == dtype::f32 ? -149
                     : type == dtype::f16 ? -24
                                          : -133;
  return std::ldexp(1, std::max(x == 0 ? lowest : std::ilogb(x) + 1 - digits, lowest));
}

std::string finding(const std::string& flag, const ir::Node& node, const std::string& what) {
  return detail::concat("FL_CHECK=", flag, ": ", ir::opName(node.op), " ", node.type.toString(),
                        " at ", node.site.toString(), ": ", what);
}

[[noreturn]] void fail(const char* flag, const ir::Node& node, const std::string& what) {
  throw std::runtime_error(finding(flag, node, what));
}

// What an operator makes that is no number, of operands that are; empty if it does not.
std::string describeNan(const ir::Node& node, const std::vector<HostOperand>& operands,
                        const void* result) {
  if (!firstOf(node.type, result, isNotFinite)) return "";
  const std::optional<Dim> nan = firstOf(node.type, result, isNan);
  // An extreme of nothing is infinite.
  if (!nan && ir::opKind(node.op) == Kind::Reduce && node.op != ir::Op::Sum) return "";
  std::string ranges;
  for (const HostOperand& operand : operands) {
    if (firstOf(*operand.type, operand.data, nan ? isNan : isNotFinite)) return "";
    ranges += (ranges.empty() ? "; " : ", ") + rangeOf(operand);
  }
  const Dim first = nan ? *nan : *firstOf(node.type, result, isNotFinite);
  return detail::concat(
      "element ", first,
      nan ? " is NaN and no operand holds one" : " is infinite and all operands are finite",
      ranges);
}

// The rest of a walk of operators goes on from a warning, one a line.
Watch nanWatch(const std::string& flag) {
  const auto told = std::make_shared<CallSites>();
  return [=](const ir::Node& node, const std::vector<HostOperand>& operands, const void* result) {
    const std::string what = describeNan(node, operands, result);
    if (what.empty()) return;
    if (flag == "nan") fail("nan", node, what);
    if (told->insert(node.site)) logWarning(finding(flag, node, what));
  };
}

// What `node` gives by the interpreter, of its operands or of their magnitudes.
std::vector<char> interpreted(const ir::Node& node, const std::vector<HostOperand>& operands,
                              bool magnitudes) {
  std::vector<std::vector<char>> copies;
  std::vector<HostOperand> taken = operands;
  for (size_t i = 0; magnitudes && i < operands.size(); ++i) {
    const ValueType& type = *operands[i].type;
    if (isFloating(type.type)) {
      copies.emplace_back(bytesOf(type.type, type.shape));
      ir::interpret(ir::Op::Absolute, {operands[i]}, {}, type, copies.back().data());
      taken[i].data = copies.back().data();
    }
  }
  std::vector<char> result(bytesOf(node.type.type, node.type.shape));
  ir::interpret(node.op, taken, node.attrs, node.type, result.data());
  return result;
}

bool addsUp(ir::Op op) {
  return op == ir::Op::Sum || op == ir::Op::Cumsum || op == ir::Op::ScatterAdd ||
         op == ir::Op::Fold || op == ir::Op::Contract;
}

void checkReference(const ir::Node& node, const std::vector<HostOperand>& operands,
                    const void* result) {
  if (ir::opKind(node.op) == Kind::Library) {
    return;
  }
  const dtype type = node.type.type;
  const bool sums = isFloating(type) && addsUp(node.op);
  const std::vector<char> want = interpreted(node, operands, false);
  const std::vector<char> scale = sums ? interpreted(node, operands, true) : std::vector<char>();
  const bool narrow = isFloating(type) && computeType(type) != type;
  // The rows' bounds are for few terms; up to 128 are added one after the other, each time with
  // half a unit at most (fl/kernel/Kernel.h).
  const double units = ir::opInfo(node.op).ulp + (sums ? 64 : narrow ? 4 : 1);
  for (Dim i = 0; i < node.type.shape.elements(); ++i) {
    const Number got = elementAt(node.type, result, i),
                 right = elementAt(node.type, want.data(), i);
    const double x = got.toDouble(), y = right.toDouble();
    if (got.bits() == right.bits() || (std::isnan(x) && std::isnan(y)) || x == y) {
      continue;
    }
    const double unit =
        isFloating(type) ? unitAt(type, sums ? elementAt(node.type, scale.data(), i).toDouble() : y)
                         : 0;
    const double apart = std::fabs(x - y) / unit;
    if (!(apart <= units)) {
      fail("ref", node,
           absl::StrFormat("element %d is %.17g, not %.17g", i, x, y) +
               (isFloating(type) ? detail::concat(", ", apart, " ulp apart") : std::string()));
    }
  }
}

class CheckedPlan final : public runtime::LoadedSchedule {
 public:
  CheckedPlan(const ir::Graph& graph, std::unique_ptr<runtime::LoadedSchedule> plan,
              runtime::Device& device, runtime::KernelCache* kernels)
      : plan_(std::move(plan)), alone_(makeUnfusedPlan(graph, device, kernels, checkReference)) {
    for (const ir::Node& node : graph.nodes()) {
      callsLibraries_ = callsLibraries_ || ir::opKind(node.op) == Kind::Library;
    }
    for (ir::ValueId id : graph.results()) {
      results_.push_back(graph.isParameter(id) ? ir::Node() : graph.node(id));
    }
  }

  Outputs run(std::span<const MemoryBlockPtr> buffers, std::span<const Number> numbers,
              std::span<const bool> spare) const override {
    // First, as the plan may write over its parameters.
    const Outputs alone = alone_->run(buffers, numbers, {});
    Outputs outputs = plan_->run(buffers, numbers, spare);
    for (size_t i = 0; i < outputs.size(); ++i) {
      compare(results_[i], outputs[i]->onHost()->data(), alone[i]->onHost()->data());
    }
    return outputs;
  }

  const std::vector<int>& reusable() const override { return plan_->reusable(); }
  const ir::Schedule& schedule() const override { return plan_->schedule(); }
  const std::vector<runtime::DeviceKernelPtr>& kernels() const override { return plan_->kernels(); }

 private:
  // Calls of libraries may add in another order where a plan takes over a transpose or a layout.
  void compare(const ir::Node& node, const void* fused, const void* alone) const {
    constexpr double kNear = 1e-2;
    double most = 0;
    for (Dim i = 0; callsLibraries_ && i < node.type.shape.elements(); ++i) {
      const double x = std::fabs(elementAt(node.type, alone, i).toDouble());
      most = std::isfinite(x) ? std::max(most, x) : most;
    }
    for (Dim i = 0; i < node.type.shape.elements(); ++i) {
      const Number got = elementAt(node.type, fused, i), want = elementAt(node.type, alone, i);
      const double x = got.toDouble(), y = want.toDouble();
      const bool isSame = got.bits() == want.bits() || (std::isnan(x) && std::isnan(y));
      if (!isSame && !(callsLibraries_ && std::fabs(x - y) <= kNear * most)) {
        fail("ref", node,
             absl::StrFormat("element %d is %.17g in the plan and %.17g where operators run one "
                             "by one",
                             i, x, y));
      }
    }
  }

  const std::unique_ptr<runtime::LoadedSchedule> plan_, alone_;
  bool callsLibraries_ = false;
  std::vector<ir::Node> results_;  // the nodes that make the outputs
};

}  // namespace

bool isWanted(const std::string& flag) {
  return flag == "ref" || flag == "nan" || flag == "nan-log";
}

std::unique_ptr<runtime::LoadedSchedule> makeCheckedPlan(
    const ir::Graph& graph, std::unique_ptr<runtime::LoadedSchedule> plan, const std::string& flag,
    runtime::Device& device, runtime::KernelCache* kernels) {
  if (flag != "ref") return makeUnfusedPlan(graph, device, kernels, nanWatch(flag));
  return std::make_unique<CheckedPlan>(graph, std::move(plan), device, kernels);
}

}  // namespace fl::check
