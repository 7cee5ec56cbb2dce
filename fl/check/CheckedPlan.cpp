#include "fl/check/CheckedPlan.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_format.h"
#include "fl/base/Error.h"
#include "fl/check/NanFinder.h"
#include "fl/check/UnfusedPlan.h"
#include "fl/check/Values.h"
#include "fl/ir/Text.h"
#include "fl/runtime/StepLabel.h"

namespace fl::check {
namespace {

using ir::HostOperand;
using ir::ValueType;

// Element `i` of a node is another one here than there.
[[noreturn]] void failAt(const ir::Node& node, Dim i, const void* got, const std::string& here,
                         const void* want, const std::string& there) {
  const dtype type = node.type.type;
  const double x = elementAt(type, got, i).toDouble(), y = elementAt(type, want, i).toDouble();
  std::string what = absl::StrFormat("element %d is %.17g %s and %.17g %s", i, x, here, y, there);
  if (isFloating(type)) {
    what += detail::concat(", ", std::fabs(x - y) / unitAt(type, y), " ulp apart");
  }
  throw WrongPlan(finding("ref", node.op, node.type, node.site, what));
}

constexpr char kOneByOne[] = "where its operators run one by one";

// The first element whose bits differ, but for those of a NaN.
std::optional<Dim> firstDifferent(const ValueType& type, const void* got, const void* want) {
  if (std::memcmp(got, want, bytesOf(type.type, type.shape)) == 0) return std::nullopt;
  for (Dim i = 0; i < type.shape.elements(); ++i) {
    const Number x = elementAt(type.type, got, i), y = elementAt(type.type, want, i);
    const bool isSame =
        x.bits() == y.bits() || (std::isnan(x.toDouble()) && std::isnan(y.toDouble()));
    if (!isSame) return i;
  }
  return std::nullopt;
}

std::vector<MemoryBlockPtr> magnitudesOf(const std::vector<HostOperand>& operands) {
  std::vector<MemoryBlockPtr> all;
  for (const HostOperand& operand : operands) {
    const auto& [type, shape] = *operand.type;
    all.push_back(runtime::makeBlock(operand.data, bytesOf(type, shape)));
    const bool isSigned = isFloating(type);
    if (isSigned) interpret(ir::Op::Absolute, {operand}, {}, *operand.type, all.back()->data());
  }
  return all;
}

bool addsUp(ir::Op op) {
  return op == ir::Op::Sum || op == ir::Op::Cumsum || op == ir::Op::ScatterAdd ||
         op == ir::Op::Fold || op == ir::Op::Contract;
}

void checkReference(const ir::Node& node, const std::vector<HostOperand>& operands,
                    const void* result) {
  if (ir::opKind(node.op) == ir::Kind::Library) return;
  const dtype type = node.type.type;
  const bool sums = isFloating(type) && addsUp(node.op);
  std::vector<char> want(bytesOf(type, node.type.shape)), scale(sums ? want.size() : 0);
  ir::interpret(node.op, operands, node.attrs, node.type, want.data());
  if (sums) {
    const std::vector<MemoryBlockPtr> magnitudes = magnitudesOf(operands);
    std::vector<HostOperand> taken = operands;
    for (size_t i = 0; i < taken.size(); ++i) taken[i].data = magnitudes[i]->data();
    ir::interpret(node.op, taken, node.attrs, node.type, scale.data());
  }
  // The rows' bounds are for few terms; up to 128 are added one after the other, each time with
  // half a unit at most (fl/kernel/Kernel.h).
  const double units = ir::opInfo(node.op).ulp + (sums ? 64 : computeType(type) != type ? 4 : 1);
  for (Dim i = 0; i < node.type.shape.elements(); ++i) {
    const Number got = elementAt(type, result, i), right = elementAt(type, want.data(), i);
    const double x = got.toDouble(), y = right.toDouble();
    if (got.bits() == right.bits() || (std::isnan(x) && std::isnan(y)) || x == y) continue;
    const double of = sums ? elementAt(type, scale.data(), i).toDouble() : y;
    const double unit = isFloating(type) ? unitAt(type, of) : 0;
    if (!(std::fabs(x - y) / unit <= units)) {
      failAt(node, i, result, "alone", want.data(), "by the reference interpreter");
    }
  }
}

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
  explicit ObservedPlan(std::unique_ptr<runtime::LoadedSchedule> plan) : plan_(std::move(plan)) {}

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

 private:
  const std::unique_ptr<runtime::LoadedSchedule> plan_;
  const std::vector<int> none_;
};

class NanPlan final : public ObservedPlan {
 public:
  NanPlan(const ir::Graph& recorded, ir::Graph compiled,
          std::unique_ptr<runtime::LoadedSchedule> plan, std::string flag)
      : ObservedPlan(std::move(plan)),
        recorded_(recorded),
        compiled_(std::move(compiled)),
        flag_(std::move(flag)) {}

  Outputs run(std::span<const MemoryBlockPtr> buffers, std::span<const Number> numbers,
              std::span<const bool>) const override {
    NanFinder finder(flag_, recorded_, compiled_, schedule(), runtime::stepObserver());
    return runObserved(buffers, numbers, &finder);
  }

 private:
  const ir::Graph recorded_, compiled_;
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
          if (to.strides[axis] != 0) count *= launch.extents[axis];
        }
        if (count == type.shape.elements()) {
          compare(id, *stored, "the kernel \"" + runtime::kernelLabel(kernel) + "\"");
        }
      }
    }
  }

  void compare(ir::ValueId id, const MemoryBlock& stored, const std::string& where) const {
    const void* right = right_[id]->data();
    const auto i = firstDifferent(graph_.type(id), stored.data(), right);
    if (i) failAt(graph_.node(id), *i, stored.data(), "in " + where, right, kOneByOne);
  }

  const ir::Graph& graph_;
  const ir::Schedule& schedule_;
  const Values& right_;
  runtime::StepObserver* const next_;
};

bool isSum(const ir::Node& node) {
  return isFloating(node.type.type) &&
         (ir::opKind(node.op) == ir::Kind::Library || addsUp(node.op));
}

// A graph on the way from the recorded one to the compiled one, whose operators run one by one.
struct Station : PassedGraph {
  Station(PassedGraph passed, runtime::Device& device, runtime::KernelCache* kernels)
      : PassedGraph(std::move(passed)),
        plan(makeUnfusedPlan(graph, device, kernels)),
        moved(movedValues(graph)) {
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      made[graph.nodes()[i].origin] = graph.idOfNode(i);
    }
    made.erase(-1);
  }

  const std::unique_ptr<UnfusedPlan> plan;
  const std::vector<bool> moved;
  std::map<int, ir::ValueId> made;  // by recorded operator
};

// What a node of a graph is behind the pass that made `to` of it, in the order of its elements;
// null where that is not known.
MemoryBlockPtr behindPass(const Station& from, ir::ValueId id, const Station& to,
                          const Values& values) {
  const ir::Node& node = from.graph.node(id);
  const auto made = to.made.find(node.origin);
  if (made == to.made.end()) return nullptr;
  const ValueType& type = to.graph.type(made->second);
  const MemoryBlockPtr& value = values[made->second];
  const bool isMoved = to.moved[made->second];
  const Dim count = type.shape.elements();
  if (type.type != node.type.type || count != node.type.shape.elements()) return nullptr;
  if (from.moved[id] || !isMoved) return from.moved[id] == isMoved ? value : nullptr;
  const size_t size = getTypeSize(type.type);
  MemoryBlockPtr result = runtime::makeBlock(value->data(), value->bytes());
  for (Dim i = 0; i < count; ++i) {
    std::memcpy(
        static_cast<char*>(result->data()) + recordedElement(i, node.type.shape, type.shape) * size,
        static_cast<const char*>(value->data()) + i * size, size);
  }
  return result;
}

// The first element of two ways to add up that differs by more than their roundings.
std::optional<Dim> firstFar(const Station& of, size_t number,
                            const std::vector<HostOperand>& operands, const MemoryBlock& alone,
                            const MemoryBlock& other) {
  const ir::Node& node = of.graph.nodes()[number];
  const dtype type = node.type.type;
  if (!firstDifferent(node.type, other.data(), alone.data())) return std::nullopt;
  const std::vector<Number> none(operands.size());
  const MemoryBlockPtr scale = of.plan->runAlone(number, magnitudesOf(operands), none)->onHost();
  for (Dim i = 0; i < node.type.shape.elements(); ++i) {
    const double x = elementAt(type, other.data(), i).toDouble(),
                 y = elementAt(type, alone.data(), i).toDouble(),
                 sum = std::fabs(elementAt(type, scale->data(), i).toDouble());
    if (x == y || (std::isnan(x) && std::isnan(y)) || !std::isfinite(sum)) continue;
    if (!(std::fabs(x - y) <= productBound(node, operands, sum))) return i;
  }
  return std::nullopt;
}

class CheckedPlan final : public ObservedPlan {
 public:
  CheckedPlan(const ir::Graph& recorded, std::vector<PassedGraph> passed,
              std::unique_ptr<runtime::LoadedSchedule> plan, runtime::Device& device,
              runtime::KernelCache* kernels)
      : ObservedPlan(std::move(plan)) {
    stations_.push_back(std::make_unique<Station>(PassedGraph{"", recorded}, device, kernels));
    for (PassedGraph& each : passed) {
      if (printGraph(each.graph, "g") == printGraph(stations_.back()->graph, "g")) continue;
      stations_.push_back(std::make_unique<Station>(std::move(each), device, kernels));
    }
  }

  Outputs run(std::span<const MemoryBlockPtr> buffers, std::span<const Number> numbers,
              std::span<const bool>) const override {
    Values values;
    const auto runStation = [&](const Station& station, bool checks) {
      values.assign(station.graph.valueCount(), nullptr);
      return station.plan->runWatched(
          buffers, numbers, [&](size_t number, const auto& operands, const MemoryBlockPtr& result) {
            if (checks) checkReference(station.graph.nodes()[number], operands, result->data());
            values[station.graph.idOfNode(number)] = result;
            return nullptr;
          });
    };
    const ir::Graph& compiled = stations_.back()->graph;
    Outputs alone = runStation(*stations_.back(), true);
    StepComparison comparison(compiled, schedule(), values);
    const Outputs outputs = runObserved(buffers, numbers, &comparison);
    checkResults(compiled, outputs, "in the plan", alone, kOneByOne);
    for (size_t i = stations_.size() - 1; i > 0; --i) {
      const auto& [from, to] = std::tie(*stations_[i - 1], *stations_[i]);
      checkPass(from, to, values, alone, buffers, numbers);
      if (i > 1) alone = runStation(from, false);
    }
    return outputs;
  }

 private:
  // A graph gives what it does once a pass has changed it. Where products and sums are added up in
  // another order then, their values, if they are near enough, are what the rest is computed of,
  // whose bits have to be the same. The error is of the first operator that is another one.
  static void checkPass(const Station& from, const Station& to, const Values& values,
                        const Outputs& results, std::span<const MemoryBlockPtr> buffers,
                        std::span<const Number> numbers) {
    const std::string here = "after the pass " + to.pass, there = "before it";
    std::function<void()> tell;  // of the first difference
    const Outputs before = from.plan->runWatched(
        buffers, numbers,
        [&](size_t number, const auto& operands, const MemoryBlockPtr& result) -> MemoryBlockPtr {
          const ir::Node& node = from.graph.nodes()[number];
          const MemoryBlockPtr other = behindPass(from, from.graph.idOfNode(number), to, values);
          if (!other) return nullptr;
          const auto i = isSum(node) ? firstFar(from, number, operands, *result, *other)
                                     : firstDifferent(node.type, other->data(), result->data());
          if (i && !tell) {
            tell = [=, &node] { failAt(node, *i, other->data(), here, result->data(), there); };
          }
          if (i && isSum(node)) tell();
          return isSum(node) ? other : nullptr;
        });
    checkResults(from.graph, results, here, before, there, tell);
  }

  static void checkResults(const ir::Graph& graph, const Outputs& got, const std::string& here,
                           const Outputs& want, const std::string& there,
                           const std::function<void()>& tell = nullptr) {
    for (size_t i = 0; i < got.size(); ++i) {
      const ir::ValueId id = graph.results()[i];
      if (graph.isParameter(id)) continue;
      const MemoryBlockPtr x = got[i]->onHost(), y = want[i]->onHost();
      const auto at = firstDifferent(graph.type(id), x->data(), y->data());
      if (at && tell) tell();
      if (at) failAt(graph.node(id), *at, x->data(), here, y->data(), there);
    }
  }

  std::vector<std::unique_ptr<Station>> stations_;
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
    const ir::Graph& recorded, std::vector<PassedGraph> passed,
    std::unique_ptr<runtime::LoadedSchedule> plan, const std::string& flag, runtime::Device& device,
    runtime::KernelCache* kernels) {
  if (flag == "ref") {
    return std::make_unique<CheckedPlan>(recorded, std::move(passed), std::move(plan), device,
                                         kernels);
  }
  return std::make_unique<NanPlan>(recorded, std::move(passed.back().graph), std::move(plan), flag);
}

}  // namespace fl::check
