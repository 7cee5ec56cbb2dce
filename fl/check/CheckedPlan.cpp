#include "fl/check/CheckedPlan.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_format.h"
#include "fl/base/Error.h"
#include "fl/check/NanFinder.h"
#include "fl/check/UnfusedPlan.h"
#include "fl/check/Values.h"

namespace fl::check {
namespace {

using ir::HostOperand;
using ir::Kind;
using ir::ValueType;

[[noreturn]] void fail(const ir::Node& node, const std::string& what) {
  throw std::runtime_error(finding("ref", node.op, node.type, node.site, what));
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
    const Number got = elementAt(node.type.type, result, i),
                 right = elementAt(node.type.type, want.data(), i);
    const double x = got.toDouble(), y = right.toDouble();
    if (got.bits() == right.bits() || (std::isnan(x) && std::isnan(y)) || x == y) {
      continue;
    }
    const double unit =
        isFloating(type)
            ? unitAt(type, sums ? elementAt(node.type.type, scale.data(), i).toDouble() : y)
            : 0;
    const double apart = std::fabs(x - y) / unit;
    if (!(apart <= units)) {
      fail(node,
           absl::StrFormat("element %d is %.17g, not %.17g", i, x, y) +
               (isFloating(type) ? detail::concat(", ", apart, " ulp apart") : std::string()));
    }
  }
}

// A plan whose runs are looked at step by step.
class ObservedPlan final : public runtime::LoadedSchedule {
 public:
  ObservedPlan(const ir::Graph& recorded, ir::Graph compiled, std::string flag,
               std::unique_ptr<runtime::LoadedSchedule> plan)
      : recorded_(recorded),
        compiled_(std::move(compiled)),
        flag_(std::move(flag)),
        plan_(std::move(plan)) {}

  Outputs run(std::span<const MemoryBlockPtr> buffers, std::span<const Number> numbers,
              std::span<const bool>) const override {
    NanFinder finder(flag_, recorded_, compiled_, plan_->schedule(), runtime::stepObserver());
    const absl::Cleanup restore = [before = std::exchange(runtime::stepObserver(), &finder)] {
      runtime::stepObserver() = before;
    };
    return plan_->run(buffers, numbers);
  }

  // What a step reads must be there when it has run.
  const std::vector<int>& reusable() const override { return none_; }
  const ir::Schedule& schedule() const override { return plan_->schedule(); }
  const std::vector<runtime::DeviceKernelPtr>& kernels() const override { return plan_->kernels(); }

 private:
  const ir::Graph recorded_, compiled_;
  const std::string flag_;
  const std::unique_ptr<runtime::LoadedSchedule> plan_;
  const std::vector<int> none_;
};

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
      const double x = std::fabs(elementAt(node.type.type, alone, i).toDouble());
      most = std::isfinite(x) ? std::max(most, x) : most;
    }
    for (Dim i = 0; i < node.type.shape.elements(); ++i) {
      const Number got = elementAt(node.type.type, fused, i),
                   want = elementAt(node.type.type, alone, i);
      const double x = got.toDouble(), y = want.toDouble();
      const bool isSame = got.bits() == want.bits() || (std::isnan(x) && std::isnan(y));
      if (!isSame && !(callsLibraries_ && std::fabs(x - y) <= kNear * most)) {
        fail(node,
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

void prepareOptions(std::string* skip, size_t* budget) {
  *skip += skip->empty() ? "share" : ",share";
  *budget = 0;
}

std::unique_ptr<runtime::LoadedSchedule> makeCheckedPlan(
    const ir::Graph& recorded, ir::Graph compiled, std::unique_ptr<runtime::LoadedSchedule> plan,
    const std::string& flag, runtime::Device& device, runtime::KernelCache* kernels) {
  if (flag == "ref") {
    return std::make_unique<CheckedPlan>(recorded, std::move(plan), device, kernels);
  }
  return std::make_unique<ObservedPlan>(recorded, std::move(compiled), flag, std::move(plan));
}

}  // namespace fl::check
