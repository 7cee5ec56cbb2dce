#include "fl/check/CheckedPlan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_format.h"
#include "fl/check/NanFinder.h"
#include "fl/check/UnfusedPlan.h"
#include "fl/check/Values.h"
#include "fl/ir/Rounding.h"
#include "fl/ir/Text.h"
#include "fl/runtime/StepLabel.h"

namespace fl::check {
namespace {

using ir::addsUp;
using ir::HostOperand;
using ir::unitAt;
using ir::ValueType;

// Element `i` of a node is another one here than there.
[[noreturn]] void failAt(const ir::Node& node, Dim i, const void* got, const std::string& here,
                         const void* want, const std::string& there) {
  const dtype type = node.type.type;
  const double x = elementAt(type, got, i).toDouble(), y = elementAt(type, want, i).toDouble();
  std::string what = absl::StrFormat("element %d is %.17g %s and %.17g %s", i, x, here, y, there);
  if (isFloating(type)) {
    what += absl::StrFormat(", %g ulp apart", std::fabs(x - y) / unitAt(type, y));
  }
  throw Finding(finding("ref", node.op, node.type, node.site, what));
}

constexpr char kOneByOne[] = "where its operators run one by one";

// In all bits, but for those of a NaN.
bool isSame(const Number& x, const Number& y) {
  return x.bits() == y.bits() || (std::isnan(x.toDouble()) && std::isnan(y.toDouble()));
}

std::optional<Dim> firstDifferent(const ValueType& type, const void* got, const void* want) {
  if (std::memcmp(got, want, bytesOf(type.type, type.shape)) == 0) return std::nullopt;
  for (Dim i = 0; i < type.shape.elements(); ++i) {
    if (!isSame(elementAt(type.type, got, i), elementAt(type.type, want, i))) return i;
  }
  return std::nullopt;
}

double magnitude(double x) { return std::fabs(x); }

bool isFinite(dtype type, double x) {
  return std::isfinite(Number::fromDouble(x, type).toDouble());
}

// What an operator makes in f64, a call by its definition, of `map` of the floats of its operands.
std::vector<double> inF64(Interpret interpret, const ir::Node& node,
                          const std::vector<HostOperand>& operands,
                          const std::function<double(double)>& map) {
  std::vector<HostOperand> taken = operands;
  std::vector<ValueType> types;
  std::vector<std::vector<double>> wide(operands.size());
  for (const HostOperand& operand : operands) types.push_back(*operand.type);
  for (size_t k = 0; k < taken.size(); ++k) {
    if (!isFloating(types[k].type)) continue;
    types[k].type = dtype::f64;
    wide[k].resize(types[k].shape.elements());
    interpret(ir::Op::Cast, {operands[k]}, {}, types[k], wide[k].data());
    std::ranges::transform(wide[k], wide[k].begin(), map);
    taken[k] = {&types[k], wide[k].data()};
  }
  std::vector<double> made(node.type.shape.elements());
  interpret(node.op, taken, node.attrs, {dtype::f64, node.type.shape}, made.data());
  return made;
}

// Whether a call, or an operator alone, computes what `interpret` does, within boundOf(). A call's
// scale is the largest that it makes; or what that changes by, in roundings of its operands, if
// half of these are a rounding larger and the others smaller: as where scores are large of which it
// makes weights. Of as many terms as are added one after the other, changes of both signs make the
// root of their number.
void checkReference(Interpret interpret, const ir::Node& node,
                    const std::vector<HostOperand>& operands, const void* result) {
  const dtype type = node.type.type;
  const bool calls = ir::opKind(node.op) == ir::Kind::Library && isFloating(type);
  const Dim count = node.type.shape.elements();
  std::vector<char> right(bytesOf(type, node.type.shape));
  std::vector<double> want, magnitudes;
  double largest = 0;
  const auto see = [&](double x) {
    if (std::isfinite(x)) largest = std::max(largest, std::fabs(x));
  };
  if (calls) {
    want = inF64(interpret, node, operands, [](double x) { return x; });
    const ValueType wide{dtype::f64, node.type.shape};
    interpret(ir::Op::Cast, {{&wide, want.data()}}, {}, node.type, right.data());
    std::ranges::for_each(want, see);
  } else {
    interpret(node.op, operands, node.attrs, node.type, right.data());
  }
  const auto isWrong = [&](Dim i) {
    const Number got = elementAt(type, result, i), wanted = elementAt(type, right.data(), i);
    if (isSame(got, wanted) || !isFloating(type)) return !isSame(got, wanted);
    const double y = wanted.toDouble(), distance = std::fabs(got.toDouble() - y);
    const bool isSum = addsUp(node);
    if (isSum && !calls && magnitudes.empty()) {
      magnitudes = inF64(interpret, node, operands, magnitude);
    }
    const double scale = calls ? largest : isSum ? magnitudes[i] : y;
    if (isSum && !isFinite(type, scale)) return false;
    return !std::isfinite(y) || !(distance <= boundOf(node, scale, y));
  };
  Dim wrong = 0;
  while (wrong < count && !isWrong(wrong)) ++wrong;
  if (wrong < count && calls) {
    const double rounding = unitAt(computeType(type), 1);
    const std::vector<double> moved = inF64(interpret, node, operands, [&](double x) {
      return x * (1 + (std::bit_cast<uint64_t>(x) % 3 == 0 ? rounding : -rounding));
    });
    for (Dim i = 0; i < count; ++i) see((moved[i] - want[i]) / rounding * std::sqrt(128));
    while (wrong < count && !isWrong(wrong)) ++wrong;
  }
  if (wrong == count) return;
  failAt(node, wrong, result, "alone", right.data(), "by the reference interpreter");
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
      const MemoryBlockPtr made = memory.read(call->result, call->resultType.type);
      compare(call->node, made->data(), "the call");
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
        const std::vector<char> stored =
            storedIn(to, launch.extents, *memory.read(*to.buffer, to.offset, type.type),
                     getTypeSize(type.type));
        if (stored.size() == bytesOf(type.type, type.shape))
          compare(id, stored.data(), "the kernel \"" + runtime::kernelLabel(kernel) + "\"");
      }
    }
  }

  // What a launch has left in an operand's part of `memory`, in the order of its value's elements,
  // of `size` bytes each.
  static std::vector<char> storedIn(const ir::LaunchOperand& to, const std::vector<Dim>& extents,
                                    const MemoryBlock& memory, size_t size) {
    std::vector<std::pair<Dim, Dim>> axes;  // strides and extents, in the kernel's own order
    Dim count = 1;
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      if (to.strides[axis] == 0) continue;
      axes.emplace_back(to.strides[axis], extents[axis]);
      count *= extents[axis];
    }
    std::ranges::sort(axes);
    std::vector<char> elements(count * size);
    for (Dim i = 0; i < count; ++i) {
      Dim at = 0, rest = i;
      for (const auto& [stride, extent] : axes) {
        at += rest % extent * stride;
        rest /= extent;
      }
      std::memcpy(&elements[i * size], static_cast<const char*>(memory.data()) + at * size, size);
    }
    return elements;
  }

  void compare(ir::ValueId id, const void* stored, const std::string& where) const {
    const void* right = right_[id]->data();
    const auto i = firstDifferent(graph_.type(id), stored, right);
    if (i) failAt(graph_.node(id), *i, stored, "in " + where, right, kOneByOne);
  }

  const ir::Graph& graph_;
  const ir::Schedule& schedule_;
  const Values& right_;
  runtime::StepObserver* const next_;
};

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
std::optional<Dim> firstFar(Interpret interpret, const ir::Node& node,
                            const std::vector<HostOperand>& operands, const MemoryBlock& alone,
                            const MemoryBlock& other) {
  const dtype type = node.type.type;
  if (!firstDifferent(node.type, other.data(), alone.data())) return std::nullopt;
  const std::vector<double> sums = inF64(interpret, node, operands, magnitude);
  for (Dim i = 0; i < node.type.shape.elements(); ++i) {
    const Number x = elementAt(type, other.data(), i), y = elementAt(type, alone.data(), i);
    if (isSame(x, y) || !isFinite(type, sums[i])) continue;
    const double distance = std::fabs(x.toDouble() - y.toDouble());
    if (!(distance <= 2 * boundOf(node, sums[i], sums[i]))) return i;
  }
  return std::nullopt;
}

class CheckedPlan final : public ObservedPlan {
 public:
  CheckedPlan(const ir::Graph& recorded, std::vector<PassedGraph> passed,
              std::unique_ptr<runtime::LoadedSchedule> plan, runtime::Device& device,
              runtime::KernelCache* kernels, Interpret interpret)
      : ObservedPlan(std::move(plan)), interpret_(interpret) {
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
            const ir::Node& node = station.graph.nodes()[number];
            if (checks) checkReference(interpret_, node, operands, result->data());
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
  void checkPass(const Station& from, const Station& to, const Values& values,
                 const Outputs& results, std::span<const MemoryBlockPtr> buffers,
                 std::span<const Number> numbers) const {
    const std::string here = "after the pass " + to.pass, there = "before it";
    std::function<void()> tell;  // of the first difference
    const Outputs before = from.plan->runWatched(
        buffers, numbers,
        [&](size_t number, const auto& operands, const MemoryBlockPtr& result) -> MemoryBlockPtr {
          const ir::Node& node = from.graph.nodes()[number];
          const MemoryBlockPtr other = behindPass(from, from.graph.idOfNode(number), to, values);
          if (!other) return nullptr;
          const auto i = addsUp(node) ? firstFar(interpret_, node, operands, *result, *other)
                                      : firstDifferent(node.type, other->data(), result->data());
          if (i && !tell) {
            tell = [=, &node] { failAt(node, *i, other->data(), here, result->data(), there); };
          }
          if (i && addsUp(node)) tell();
          return addsUp(node) ? other : nullptr;
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

  const Interpret interpret_;
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
    runtime::KernelCache* kernels, Interpret interpret) {
  if (flag == "ref") {
    return std::make_unique<CheckedPlan>(recorded, std::move(passed), std::move(plan), device,
                                         kernels, interpret);
  }
  return std::make_unique<NanPlan>(recorded, std::move(passed.back().graph), std::move(plan), flag);
}

}  // namespace fl::check
