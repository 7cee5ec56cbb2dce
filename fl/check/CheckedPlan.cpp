#include "fl/check/CheckedPlan.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_format.h"
#include "fl/base/Error.h"
#include "fl/check/NanFinder.h"
#include "fl/check/UnfusedPlan.h"
#include "fl/check/Values.h"
#include "fl/ir/Inference.h"
#include "fl/runtime/StepLabel.h"

namespace fl::check {
namespace {

using ir::HostOperand;
using ir::Kind;
using ir::ValueType;

[[noreturn]] void fail(const ir::Node& node, const std::string& what) {
  throw WrongPlan(finding("ref", node.op, node.type, node.site, what));
}

// ", 3 ulp apart", for floats.
std::string apart(dtype type, double x, double y) {
  return isFloating(type) ? detail::concat(", ", std::fabs(x - y) / unitAt(type, y), " ulp apart")
                          : "";
}

// What `node` gives by the interpreter, of its operands or of their magnitudes.
std::vector<char> interpreted(const ir::Node& node, const std::vector<HostOperand>& operands,
                              bool magnitudes) {
  std::vector<std::vector<char>> copies;
  std::vector<HostOperand> taken = operands;
  for (size_t i = 0; magnitudes && i < operands.size(); ++i) {
    const ValueType& type = *operands[i].type;
    if (!isFloating(type.type)) continue;
    copies.emplace_back(bytesOf(type.type, type.shape));
    ir::interpret(ir::Op::Absolute, {operands[i]}, {}, type, copies.back().data());
    taken[i].data = copies.back().data();
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
  if (ir::opKind(node.op) == Kind::Library) return;
  const dtype type = node.type.type;
  const bool sums = isFloating(type) && addsUp(node.op);
  const std::vector<char> want = interpreted(node, operands, false);
  const std::vector<char> scale = sums ? interpreted(node, operands, true) : std::vector<char>();
  const bool narrow = isFloating(type) && computeType(type) != type;
  // The rows' bounds are for few terms; up to 128 are added one after the other, each time with
  // half a unit at most (fl/kernel/Kernel.h).
  const double units = ir::opInfo(node.op).ulp + (sums ? 64 : narrow ? 4 : 1);
  for (Dim i = 0; i < node.type.shape.elements(); ++i) {
    const Number got = elementAt(type, result, i), right = elementAt(type, want.data(), i);
    const double x = got.toDouble(), y = right.toDouble();
    if (got.bits() == right.bits() || (std::isnan(x) && std::isnan(y)) || x == y) continue;
    const double of = sums ? elementAt(type, scale.data(), i).toDouble() : y;
    const double unit = isFloating(type) ? unitAt(type, of) : 0;
    if (!(std::fabs(x - y) / unit <= units)) {
      fail(node, absl::StrFormat("element %d is %.17g, not %.17g", i, x, y) + apart(type, x, y));
    }
  }
}

constexpr char kChanged[] = "element %d is %.17g as passes changed it and %.17g as recorded";

// How far two of a product's results may lie apart that add its terms in different orders: for each
// of the terms the rounding of a sum of magnitudes, and that of the result.
double productBound(const ir::Node& node, const std::vector<HostOperand>& operands,
                    double magnitudes) {
  const auto count = [](const ValueType& type) {
    return static_cast<double>(std::max<Dim>(type.shape.elements(), 1));
  };
  const double pairs = count(*operands[0].type) * count(*operands[operands.size() > 1].type);
  const double terms = operands.size() < 2 ? count(*operands[0].type) / count(node.type)
                                           : std::sqrt(pairs / count(node.type));
  const dtype type = node.type.type, sum = computeType(type);
  return 2 * (terms + 1) * unitAt(sum, magnitudes) + (sum == type ? 0 : unitAt(type, magnitudes));
}

// A plan whose steps are looked at.
class ObservedPlan : public runtime::LoadedSchedule {
 public:
  ObservedPlan(const ir::Graph& recorded, ir::Graph compiled,
               std::unique_ptr<runtime::LoadedSchedule> plan)
      : recorded_(recorded), compiled_(std::move(compiled)), plan_(std::move(plan)) {}

  // What a step reads must be there when it has run.
  const std::vector<int>& reusable() const override { return none_; }
  const ir::Schedule& schedule() const override { return plan_->schedule(); }
  const std::vector<runtime::DeviceKernelPtr>& kernels() const override { return plan_->kernels(); }

 protected:
  Outputs runObserved(std::span<const MemoryBlockPtr> buffers, std::span<const Number> numbers,
                      runtime::StepObserver* observer) const {
    const absl::Cleanup restore = [before = std::exchange(runtime::stepObserver(), observer)] {
      runtime::stepObserver() = before;
    };
    return plan_->run(buffers, numbers);
  }

  const ir::Graph recorded_, compiled_;

 private:
  const std::unique_ptr<runtime::LoadedSchedule> plan_;
  const std::vector<int> none_;
};

class NanPlan final : public ObservedPlan {
 public:
  NanPlan(const ir::Graph& recorded, ir::Graph compiled,
          std::unique_ptr<runtime::LoadedSchedule> plan, std::string flag)
      : ObservedPlan(recorded, std::move(compiled), std::move(plan)), flag_(std::move(flag)) {}

  Outputs run(std::span<const MemoryBlockPtr> buffers, std::span<const Number> numbers,
              std::span<const bool>) const override {
    NanFinder finder(flag_, recorded_, compiled_, schedule(), runtime::stepObserver());
    return runObserved(buffers, numbers, &finder);
  }

 private:
  const std::string flag_;
};

// By node, values that operators made one by one.
using Values = std::vector<MemoryBlockPtr>;

// After each step, whether what it stored has the bits of its operators one by one.
class StepComparison final : public runtime::StepObserver {
 public:
  StepComparison(const ir::Graph& graph, const ir::Schedule& schedule, const Values& right)
      : graph_(graph), schedule_(schedule), right_(right), next_(runtime::stepObserver()) {}

  void afterSteps(size_t begin, size_t end, const runtime::StepMemory& memory) override {
    if (next_) next_->afterSteps(begin, end, memory);
    for (size_t i = begin; i < end; ++i) {
      const auto* call = std::get_if<ir::LibraryStep>(&schedule_.steps[i]);
      if (!call) checkLaunch(std::get<ir::LaunchStep>(schedule_.steps[i]), memory);
      if (!call || call->node < 0) continue;
      compare(call->node, *memory.read(call->result, call->resultType.type), "the call");
    }
  }

 private:
  // What is only copied is compared where it was made.
  void checkLaunch(const ir::LaunchStep& launch, const runtime::StepMemory& memory) const {
    const ir::Kernel& kernel = schedule_.kernels[launch.kernel];
    for (const ir::KernelStage& stage : kernel.stages) {
      for (const auto& [operand, value] : stage.stores) {
        const auto form = kernel.values[value].form;
        const ir::ValueId id = launch.nodes.empty() ? -1 : launch.nodes[value];
        const ir::LaunchOperand& to = launch.operands[operand];
        const bool isMade =
            form != ir::KernelValue::Form::Load && form != ir::KernelValue::Form::Scalar;
        // What 16-bit floats are computed in is of the operator that wanted it first.
        const bool isItsOwn = id >= 0 && graph_.type(id).type == kernel.values[value].type;
        if (!isMade || !isItsOwn) continue;
        const ValueType& type = graph_.type(id);
        const MemoryBlockPtr stored = memory.read(*to.buffer, to.offset, type.type);
        Dim count = 1;
        for (int axis = 0; axis < kernel.rank; ++axis) {
          count *= to.strides[axis] == 0 ? 1 : launch.extents[axis];
        }
        if (count == type.shape.elements()) {
          compare(id, *stored, "the kernel \"" + runtime::kernelLabel(kernel) + "\"");
        }
      }
    }
  }

  void compare(ir::ValueId id, const MemoryBlock& stored, const std::string& where) const {
    const ir::Node& node = graph_.node(id);
    const MemoryBlockPtr& right = right_[id];
    const dtype type = node.type.type;
    for (Dim i = 0; right && i < node.type.shape.elements(); ++i) {
      const Number got = elementAt(type, stored.data(), i),
                   want = elementAt(type, right->data(), i);
      const double x = got.toDouble(), y = want.toDouble();
      if (got.bits() == want.bits() || (std::isnan(x) && std::isnan(y))) continue;
      fail(node, absl::StrFormat("element %d is %.17g in %s and %.17g where its operators run one "
                                 "by one",
                                 i, x, where, y) +
                     apart(type, x, y));
    }
  }

  const ir::Graph& graph_;
  const ir::Schedule& schedule_;
  const Values& right_;
  runtime::StepObserver* const next_;
};

class CheckedPlan final : public ObservedPlan {
 public:
  CheckedPlan(const ir::Graph& recorded, ir::Graph compiled,
              std::unique_ptr<runtime::LoadedSchedule> plan, runtime::Device& device,
              runtime::KernelCache* kernels)
      : ObservedPlan(recorded, compiled, std::move(plan)),
        recordedAlone_(makeUnfusedPlan(recorded, device, kernels)),
        compiledAlone_(makeUnfusedPlan(std::move(compiled), device, kernels)) {}

  Outputs run(std::span<const MemoryBlockPtr> buffers, std::span<const Number> numbers,
              std::span<const bool>) const override {
    Values values(compiled_.valueCount());
    compiledAlone_->runWatched(
        buffers, numbers, [&](size_t number, const auto& operands, const MemoryBlockPtr& result) {
          checkReference(compiled_.nodes()[number], operands, result->data());
          values[compiled_.idOfNode(number)] = result;
          return nullptr;
        });
    StepComparison comparison(compiled_, schedule(), values);
    const Outputs outputs = runObserved(buffers, numbers, &comparison);
    checkPasses(buffers, numbers, values, outputs);
    return outputs;
  }

 private:
  // The graph as it was recorded gives what the compiled one does. Where passes have products and
  // sums added in another order, their values, if they are near enough, are what the rest is
  // computed of, whose bits then have to be the same.
  void checkPasses(std::span<const MemoryBlockPtr> buffers, std::span<const Number> numbers,
                   const Values& values, const Outputs& outputs) const {
    std::vector<ir::ValueId> madeOf(recorded_.nodes().size(), -1);
    for (size_t i = 0; i < compiled_.nodes().size(); ++i) {
      const ir::Node& node = compiled_.nodes()[i];
      if (node.origin < 0 || !isSum(node)) continue;
      const ValueType& type = recorded_.nodes()[node.origin].type;
      const bool isSame =
          type.type == node.type.type && type.shape.elements() == node.type.shape.elements();
      if (isSame) madeOf[node.origin] = compiled_.idOfNode(i);
    }
    const auto isCall = [](const ir::Node& node) { return ir::opKind(node.op) == Kind::Library; };
    const bool calls = std::ranges::any_of(recorded_.nodes(), isCall);
    bool isExact = true;
    const auto follow = [&](size_t number, const std::vector<HostOperand>& operands,
                            const MemoryBlockPtr& result) -> MemoryBlockPtr {
      const ir::Node& node = recorded_.nodes()[number];
      if (!isSum(node)) return nullptr;
      if (madeOf[number] >= 0) {
        MemoryBlockPtr other =
            inOrder(node, compiled_.node(madeOf[number]), *values[madeOf[number]]);
        checkSum(number, operands, *result, *other);
        return other;
      }
      MemoryBlockPtr other = findSum(number, operands, *result, values);
      isExact = isExact && (other || !calls);
      return other;
    };
    const Outputs alone = recordedAlone_->runWatched(buffers, numbers, follow);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const ir::ValueId id = recorded_.results()[i];
      if (recorded_.isParameter(id)) continue;
      compare(recorded_.node(id), outputs[i]->onHost()->data(), alone[i]->onHost()->data(),
              isExact);
    }
  }

  static bool isSum(const ir::Node& node) {
    return isFloating(node.type.type) && (ir::opKind(node.op) == Kind::Library || addsUp(node.op));
  }

  static MemoryBlockPtr inOrder(const ir::Node& recorded, const ir::Node& compiled,
                                const MemoryBlock& value) {
    const size_t size = getTypeSize(compiled.type.type);
    const MemoryBlockPtr result = runtime::makeBlock(value.data(), value.bytes());
    const bool isMoved = ir::resultIsImage(recorded.op) && recorded.attrs != compiled.attrs;
    for (Dim i = 0; i < compiled.type.shape.elements(); ++i) {
      const Dim at = recordedElement(i, recorded.type.shape, compiled.type.shape, isMoved);
      std::memcpy(static_cast<char*>(result->data()) + at * size,
                  static_cast<const char*>(value.data()) + i * size, size);
    }
    return result;
  }

  void checkSum(size_t number, const std::vector<HostOperand>& operands, const MemoryBlock& alone,
                const MemoryBlock& other) const {
    const ir::Node& node = recorded_.nodes()[number];
    if (const std::optional<Dim> i = firstFar(number, operands, alone, other)) {
      const double x = elementAt(node.type.type, other.data(), *i).toDouble(),
                   y = elementAt(node.type.type, alone.data(), *i).toDouble();
      fail(node, absl::StrFormat(kChanged, *i, x, y) + apart(node.type.type, x, y));
    }
  }

  // Of a product that passes have merged with another one: what that gives, if it is near enough.
  MemoryBlockPtr findSum(size_t number, const std::vector<HostOperand>& operands,
                         const MemoryBlock& alone, const Values& values) const {
    const ir::Node& node = recorded_.nodes()[number];
    for (size_t i = 0; i < compiled_.nodes().size(); ++i) {
      const ir::Node& candidate = compiled_.nodes()[i];
      const bool isLike = candidate.op == node.op && candidate.type.type == node.type.type &&
                          candidate.type.shape.elements() == node.type.shape.elements();
      if (!isLike) continue;
      MemoryBlockPtr other = inOrder(node, candidate, *values[compiled_.idOfNode(i)]);
      if (!firstFar(number, operands, alone, *other)) return other;
    }
    return nullptr;
  }

  // The first element of two ways to add up that differs by more than their roundings.
  std::optional<Dim> firstFar(size_t number, const std::vector<HostOperand>& operands,
                              const MemoryBlock& alone, const MemoryBlock& other) const {
    const ir::Node& node = recorded_.nodes()[number];
    const dtype type = node.type.type;
    if (std::memcmp(alone.data(), other.data(), bytesOf(type, node.type.shape)) == 0) return {};
    std::vector<MemoryBlockPtr> magnitudes;
    std::vector<Number> none(operands.size());
    for (const HostOperand& operand : operands) {
      const auto& [of, shape] = *operand.type;
      magnitudes.push_back(runtime::makeBlock(operand.data, bytesOf(of, shape)));
      if (!isFloating(of)) continue;
      ir::interpret(ir::Op::Absolute, {operand}, {}, *operand.type, magnitudes.back()->data());
    }
    const MemoryBlockPtr scale = recordedAlone_->runAlone(number, magnitudes, none)->onHost();
    for (Dim i = 0; i < node.type.shape.elements(); ++i) {
      const double x = elementAt(type, other.data(), i).toDouble(),
                   y = elementAt(type, alone.data(), i).toDouble(),
                   sum = std::fabs(elementAt(type, scale->data(), i).toDouble());
      if (x == y || (std::isnan(x) && std::isnan(y)) || !std::isfinite(sum)) continue;
      if (!(std::fabs(x - y) <= productBound(node, operands, sum))) return i;
    }
    return {};
  }

  static void compare(const ir::Node& node, const void* compiled, const void* recorded,
                      bool isExact) {
    constexpr double kNear = 1e-2;
    const dtype type = node.type.type;
    double most = 0;
    for (Dim i = 0; !isExact && i < node.type.shape.elements(); ++i) {
      const double x = std::fabs(elementAt(type, recorded, i).toDouble());
      most = std::isfinite(x) ? std::max(most, x) : most;
    }
    for (Dim i = 0; i < node.type.shape.elements(); ++i) {
      const Number got = elementAt(type, compiled, i), want = elementAt(type, recorded, i);
      const double x = got.toDouble(), y = want.toDouble();
      const bool isSame = got.bits() == want.bits() || (std::isnan(x) && std::isnan(y));
      if (isSame || (!isExact && std::fabs(x - y) <= kNear * most)) continue;
      fail(node, absl::StrFormat(kChanged, i, x, y) + apart(type, x, y));
    }
  }

  const std::unique_ptr<UnfusedPlan> recordedAlone_, compiledAlone_;
};

}  // namespace

bool isWanted(const std::string& flag) {
  return flag == "ref" || flag == "nan" || flag == "nan-log";
}

void prepareOptions(std::string* skip, size_t* budget) {
  *skip += skip->empty() ? "share,budget" : ",share,budget";
  *budget = 0;
}

std::unique_ptr<runtime::LoadedSchedule> makeCheckedPlan(
    const ir::Graph& recorded, ir::Graph compiled, std::unique_ptr<runtime::LoadedSchedule> plan,
    const std::string& flag, runtime::Device& device, runtime::KernelCache* kernels) {
  if (flag == "ref") {
    return std::make_unique<CheckedPlan>(recorded, std::move(compiled), std::move(plan), device,
                                         kernels);
  }
  return std::make_unique<NanPlan>(recorded, std::move(compiled), std::move(plan), flag);
}

}  // namespace fl::check
