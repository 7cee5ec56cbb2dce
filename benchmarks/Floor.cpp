#include "benchmarks/Floor.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "benchmarks/Folder.h"
#include "fl/base/Flags.h"
#include "fl/fl.h"
#include "fl/lazy/LazyBackend.h"

namespace fl::bench {
namespace {

// What a copy moves whose rate is taken; no cache holds it.
constexpr int64_t kCopyBytes = int64_t{64} << 20;

// Of those with `part` in their names. Plans are numbered, and so are the stages of each.
std::filesystem::path lastIn(const std::filesystem::path& folder, const std::string& part = "") {
  std::set<std::filesystem::path> entries;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().find(part) != std::string::npos) {
      entries.insert(entry.path());
    }
  }
  return *entries.rbegin();
}

MemoryBlockPtr randomElements(const ir::ValueType& type) {
  const BackendScope scope("eager");
  return rand(type.shape).astype(type.type).value()->data();
}

// The call as a plan of its own.
ir::Schedule planOf(const ir::LibraryStep& step) {
  using Space = ir::BufferRef::Space;
  ir::Schedule plan;
  ir::LibraryStep call = step;
  call.operands.clear();
  for (const ir::ValueType& type : step.operandTypes) {
    call.operands.push_back({{Space::Parameter, static_cast<int>(plan.parameters.size())}});
    plan.parameters.push_back({type, false});
  }
  call.result = {{Space::Output, 0}};
  call.scratch = -1;  // loading gives it some
  plan.outputs.push_back({.type = step.resultType});
  plan.steps.push_back(call);
  return plan;
}

}  // namespace

void dumpPlans(const Workload& workload, const std::filesystem::path& folder) {
  constexpr int kCallsUntilSteady = 3;
  // A plan is dumped when it is built: by a backend that has built none.
  static int backends = 0;
  const std::string name = "dumping" + std::to_string(backends++);
  const BackendRegistration registration(name, makeLazyBackend);
  const BackendScope scope(name, "cpu");
  flags().dump = folder;
  const auto call = workload.make();
  for (int i = 0; i < kCallsUntilSteady; ++i) {
    call();
  }
  flags().dump.clear();
}

ir::Schedule steadyPlan(const Workload& workload, const std::string& stage) {
  const Folder folder("fl-floor");
  dumpPlans(workload, folder.path());
  std::ifstream file(lastIn(lastIn(folder.path()), stage + ".flir"));
  return ir::parseSchedule(std::string(std::istreambuf_iterator<char>(file), {}));
}

Floor::Floor(const ir::Schedule& plan)
    : device_(runtime::makeDevice("cpu")), copy_(kCopyBytes, kCopyBytes) {
  for (const ir::Step& step : plan.steps) {
    if (const auto* library = std::get_if<ir::LibraryStep>(&step)) {
      ++callFor(*library).count;
    } else {
      bytes_ += static_cast<double>(ir::stepBytes(plan, step));
    }
  }
}

Floor::Call& Floor::callFor(const ir::LibraryStep& step) {
  std::string text = ir::printSchedule(planOf(step), "call");
  const auto found = std::ranges::find(calls_, text, &Call::text);
  return found != calls_.end() ? *found : calls_.emplace_back(std::move(text), alone(step));
}

Subject Floor::alone(const ir::LibraryStep& step) {
  std::vector<MemoryBlockPtr> operands;
  for (const ir::ValueType& type : step.operandTypes) {
    operands.push_back(randomElements(type));
  }
  const std::shared_ptr<runtime::LoadedSchedule> plan = device_->load(planOf(step), &kernels_);
  const std::vector<Number> numbers(operands.size());
  return Subject([=] { plan->run(operands, numbers); });
}

void Floor::block() {
  for (Call& call : calls_) {
    call.subject.block();
  }
  copy_.block();
}

double Floor::microseconds() const {
  double time = bytes_ * copy_.microseconds() / (2 * kCopyBytes);
  for (const Call& call : calls_) {
    time += call.count * call.subject.microseconds();
  }
  return time;
}

}  // namespace fl::bench
