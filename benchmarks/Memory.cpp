// The memory of training steps: the most that a step holds beyond what lives between steps, lazy,
// eager and in PyTorch, beside what its plan says of it; and what less memory costs in time.
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <iterator>
#include <mutex>
#include <random>
#include <regex>
#include <stdexcept>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_format.h"
#include "apps/mnist/Runfile.h"
#include "benchmarks/Floor.h"
#include "benchmarks/Peer.h"
#include "benchmarks/Program.h"
#include "benchmarks/Report.h"
#include "benchmarks/Subject.h"
#include "benchmarks/TrainSteps.h"
#include "fl/base/Flags.h"
#include "fl/codegen/Compilation.h"
#include "fl/fl.h"
#include "fl/lazy/LazyBackend.h"
#include "fl/runtime/Device.h"
#include "tests/ResidentMemory.h"

ABSL_FLAG(std::string, filter, "", "regular expression that a case's name contains");
ABSL_FLAG(bool, growth, true, "also what is resident of tensors that grow");
ABSL_FLAG(bool, alone, true, "also an optimizer's step, and the planning of thousands of buffers");
ABSL_FLAG(bool, budgets, true, "also the time of a step within parts of its memory");
ABSL_FLAG(int, rounds, 9, "blocks of steps within each budget");
ABSL_FLAG(int, threads, 0, "threads to compute with; 0: FL_NUM_THREADS, or one a processor");
ABSL_FLAG(bool, peers, false, "also PyTorch (./setup.sh --peers installs it)");
ABSL_FLAG(std::string, json, "", "file for the results, a JSON object a line");

namespace fl::bench {
namespace {

using testing::residentBytes;

constexpr char kPeerScript[] = "benchmarks/peers/memory.py";
constexpr int kStepsUntilSteady = 3;
constexpr int kLayers = 12;  // of the transformer that has budgets

// Counts bytes as they are asked for.
class CountingManager final : public runtime::MemoryManager {
 public:
  void* allocate(size_t bytes) override {
    void* block = inner_->allocate(bytes);
    const std::lock_guard lock(mutex_);
    alive_ += bytes;
    most_ = std::max(most_, alive_);
    return block;
  }
  void deallocate(void* pointer, size_t bytes) override {
    inner_->deallocate(pointer, bytes);
    const std::lock_guard lock(mutex_);
    alive_ -= bytes;
  }
  void release() override { inner_->release(); }
  MemoryStats stats() const override { return inner_->stats(); }

  size_t alive() const { return alive_; }
  // The most bytes alive in `work` beyond those alive before it.
  size_t growth(const std::function<void()>& work) {
    const size_t before = alive_;
    most_ = before;
    work();
    return most_ - before;
  }

 private:
  const std::unique_ptr<runtime::MemoryManager> inner_ = runtime::makeCachingMemoryManager();
  std::mutex mutex_;
  size_t alive_ = 0, most_ = 0;
};

CountingManager& memory() {
  static const auto& manager = *new std::shared_ptr<CountingManager>([] {
    auto made = std::make_shared<CountingManager>();
    runtime::setHostMemoryManager(made);
    return made;
  }());
  return *manager;
}

// In bytes.
size_t growthOf(const Workload& workload, const char* backend) {
  const BackendScope scope(backend);
  setSeed(0);
  const auto step = workload.make();
  for (int i = 0; i < kStepsUntilSteady; ++i) {
    step();
  }
  return memory().growth(step);
}

// Of all passes behind the one that builds the schedule.
double planningMilliseconds(const ir::Schedule& built, size_t budget = 0) {
  const auto device = runtime::makeDevice("cpu");
  std::vector<double> times;
  for (int i = 0; i < 5; ++i) {
    codegen::Compilation plan;
    plan.schedule = built;
    plan.schedule.budget = budget;
    plan.schedule.device = device->traits();
    const auto start = Clock::now();
    bool isBuilt = false;
    for (const codegen::PassInfo& pass : codegen::passes()) {
      if (isBuilt) codegen::runPassAlone(pass.name, "schedule", plan);
      isBuilt = isBuilt || pass.name == "build";
    }
    times.push_back(millisecondsSince(start));
  }
  return median(times);
}

Json row(const std::string& name, const char* unit, double ours) {
  return {{"bench", "memory"}, {"case", name},     {"unit", unit},     {"threads", getNumThreads()},
          {"ours", ours},      {"eager", nullptr}, {"limit", nullptr}, {"peers", Json::object()}};
}

Json measure(const Workload& workload, const Peers& peers) {
  Json result = row(workload.name, "bytes", static_cast<double>(growthOf(workload, "lazy")));
  result["eager"] = static_cast<double>(growthOf(workload, "eager"));
  for (const auto& peer : peers) {
    if (const auto bytes = peer->block(workload.name, 0)) {
      result["peers"][peer->name()] = *bytes;
    }
  }
  const ir::Schedule plan = steadyPlan(workload);
  result["arena"] = plan.arenaBytes;
  result["bound"] = plan.arenaBound;
  result["recorded"] = plan.recordedBound;
  result["unplanned"] = plan.unplannedBytes;
  result["plan_ms"] = planningMilliseconds(steadyPlan(workload, "build"));
  return result;
}

std::string megabytes(const Json& row, const char* field) {
  return row.contains(field) && !row[field].is_null()
             ? absl::StrFormat("%9.1f", row[field].get<double>() / 1e6)
             : "        -";
}

void print(const Json& row) {
  std::cout << absl::StrFormat("%-44s", row["case"].get<std::string>());
  for (const char* field : {"ours", "eager", "arena", "bound", "recorded", "unplanned"}) {
    std::cout << " " << megabytes(row, field);
  }
  std::cout << absl::StrFormat(" %8.2f ms", row["plan_ms"].get<double>());
  for (const auto& [name, bytes] : row["peers"].items()) {
    std::cout << absl::StrFormat("  %s %.1f", name, bytes.get<double>() / 1e6);
  }
  std::cout << std::endl;
}

// Whose plans compute nothing again.
const BackendRegistration keeping("keeping", makeLazyBackend);

// While there is one, plans are made without these passes.
class SkipScope {
 public:
  explicit SkipScope(const char* passes) { flags().skip = passes; }
  ~SkipScope() { flags().skip = before_; }

 private:
  const std::string before_ = flags().skip;
};

// A step within a budget, or on that backend.
class BudgetSubject {
 public:
  BudgetSubject(const Workload& workload, std::optional<size_t> budget) : budget_(budget) {
    within([&] {
      setSeed(0);
      const auto step = workload.make();
      subject_.emplace(step);
      growth_ = memory().growth(step);
    });
  }
  void block() {
    within([&] { subject_->block(); });
  }
  double microseconds() const { return subject_->microseconds(); }
  size_t growth() const { return growth_; }
  size_t budget() const { return budget_.value_or(0); }

 private:
  void within(const std::function<void()>& work) const {
    const BackendScope scope(budget_ ? "lazy" : "keeping");
    const SkipScope skip(budget_ ? "" : "budget");
    setMemoryBudget(budget_.value_or(0));
    const absl::Cleanup restore = [] { setMemoryBudget(0); };
    work();
  }

  std::optional<size_t> budget_;
  std::optional<Subject> subject_;
  size_t growth_ = 0;
};

// The budget that a refusal says is met.
size_t metAsToldBy(const std::string& refusal) {
  const std::string before = "; a budget of ";
  return std::stoul(refusal.substr(refusal.find(before) + before.size()));
}

// By its name, a step that computes nothing again, takes what it takes without a budget, and within
// budgets down to 0.3 of what the first one's plan takes, or to the least that is met.
std::vector<std::pair<std::string, BudgetSubject>> budgetSubjects(const Workload& workload,
                                                                  double whole) {
  std::vector<std::pair<std::string, BudgetSubject>> subjects;
  const auto add = [&](double part) {
    subjects.emplace_back(absl::StrFormat("budget %.2f", part),
                          BudgetSubject(workload, static_cast<size_t>(part * whole)));
  };
  subjects.emplace_back("budget 1.00", BudgetSubject(workload, std::nullopt));
  subjects.emplace_back("no budget", BudgetSubject(workload, 0));
  for (int tenths = 9; tenths >= 3; --tenths) {
    try {
      add(tenths / 10.0);
    } catch (const std::runtime_error& refusal) {
      std::cout << refusal.what() << std::endl;
      add(static_cast<double>(metAsToldBy(refusal.what()) + 1) / whole);
      break;
    }
  }
  std::ranges::sort(subjects, std::greater(),
                    [](const auto& subject) { return subject.second.growth(); });
  return subjects;
}

// Rows in units of the first of them: time, and as "arena" the bytes.
void measureBudgets(const Workload& workload, std::vector<Json>* rows) {
  const ir::Schedule built = steadyPlan(workload, "build");
  const double arena = [&] {
    const SkipScope skip("budget");
    return static_cast<double>(steadyPlan(workload).arenaBytes);
  }();
  auto subjects = budgetSubjects(workload, arena);
  for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
    for (auto& [name, subject] : subjects) {
      subject.block();
    }
  }
  const BudgetSubject& whole = subjects[0].second;
  for (const auto& [name, subject] : subjects) {
    Json result =
        row(workload.name + ", " + name, "x", subject.microseconds() / whole.microseconds());
    result["arena"] = static_cast<double>(subject.growth()) / static_cast<double>(whole.growth());
    result["plan_ms"] = planningMilliseconds(built, subject.budget());
    std::cout << absl::StrFormat("%s: memory %.2f, time %.2f, planning %.1f ms\n", name,
                                 result["arena"].get<double>(), result["ours"].get<double>(),
                                 result["plan_ms"].get<double>());
    rows->push_back(std::move(result));
  }
}

Tensor computedFull(double elements) {
  Tensor result = full({static_cast<Dim>(elements)}, 1.0);
  result.value()->data();
  return result;
}

// With nothing that the cache or the heap keeps, either of which may give it back meanwhile.
size_t residentAtStart() {
  memory().release();
  malloc_trim(0);
  return residentBytes();
}

// Beyond `before`, for each byte of tensors that have so many elements together.
double residentSince(size_t before, double elements) {
  return static_cast<double>(residentBytes() - before) / (elements * sizeof(float));
}

// Of tensors from 1 to 200 MB that grow by a hundredth, of which one is alive at a time: what is
// resident at the end that was not before, for each byte of the last one.
double residentOfGrowing(const char* backend) {
  const BackendScope scope(backend);
  const size_t before = residentAtStart();
  Tensor last;
  for (double elements = 250e3; elements < 50e6; elements *= 1.01) last = computedFull(elements);
  return residentSince(before, static_cast<double>(last.elements()));
}

// Two that grow by turns, to 100 MB each.
double residentOfTurns(const char* backend) {
  const BackendScope scope(backend);
  const size_t before = residentAtStart();
  Tensor first, second;
  for (double elements = 250e3; elements < 25e6; elements *= 1.01) {
    first = computedFull(elements);
    second = computedFull(elements * 1.005);
  }
  return residentSince(before, static_cast<double>(first.elements() + second.elements()));
}

Tensor addedKeys() {
  Tensor keys = full({1024, 1}, 1.0);
  for (int i = 0; i < 3000; ++i) {
    keys = concatenate(1, keys, full({1024, 1}, 1.0));
    keys.value()->data();
  }
  return keys;
}

// Of keys to which one of 4 kB is added 3,000 times, to 12 MB: the second time, as the first leaves
// as many plans.
double residentOfKeys(const char* backend) {
  const BackendScope scope(backend);
  addedKeys();
  const size_t before = residentAtStart();
  const Tensor keys = addedKeys();
  return residentSince(before, static_cast<double>(keys.elements()));
}

// A window of 400 tensors below a megabyte that grow.
double residentOfGrowingSmall(const char* backend) {
  const BackendScope scope(backend);
  const size_t before = residentAtStart();
  std::vector<Tensor> window(400);
  size_t i = 0;
  for (double elements = 500; elements < 250e3; elements *= 1.002) {
    window[i++ % window.size()] = computedFull(elements);
  }
  double live = 0;
  for (const Tensor& each : window) live += static_cast<double>(each.elements());
  return residentSince(before, live);
}

// Each fifth of 60,000 tensors of 8 kB.
double residentOfScattered(const char* backend) {
  const BackendScope scope(backend);
  const size_t before = residentAtStart();
  std::vector<Tensor> all, kept;
  for (int i = 0; i < 60'000; ++i) {
    all.push_back(computedFull(2000));
    if (i % 5 == 0) kept.push_back(all.back());
  }
  all.clear();
  return residentSince(before, 2000.0 * static_cast<double>(kept.size()));
}

// Temporaries of 200 MB, then a tensor of 80 MB that takes a piece of their memory, after which
// nothing as large follows, when that has been so for twice as long as FL_MEMORY_DECAY says.
double residentOfFragment(const char* backend) {
  const BackendScope scope(backend);
  const size_t before = residentAtStart();
  for (int i = 0; i < 4; ++i) computedFull(50e6);
  const Tensor kept = computedFull(20e6);
  for (int i = 0; i < 2000; ++i) computedFull(1000);
  std::this_thread::sleep_for(std::chrono::milliseconds(2 * std::stol(flags().memoryDecay)));
  return residentSince(before, 20e6);
}

void measureGrowth(std::vector<Json>* rows) {
  const std::vector<std::pair<const char*, double (*)(const char*)>> cases = {
      {"tensors that grow", residentOfGrowing},
      {"two tensors that grow by turns", residentOfTurns},
      {"keys that are added to, again", residentOfKeys},
      {"small tensors that grow", residentOfGrowingSmall},
      {"each fifth of many small tensors", residentOfScattered},
      {"a piece of a large block", residentOfFragment}};
  for (const auto& [name, residentOf] : cases) {
    Json result = row(name, "resident / live", residentOf("lazy"));
    result["eager"] = residentOf("eager");
    std::cout << absl::StrFormat("%s: resident / live %.3f, eager %.3f\n", name,
                                 result["ours"].get<double>(), result["eager"].get<double>());
    rows->push_back(std::move(result));
  }
}

// Of a step of Adam on 32 MB of parameters: the most alive, for each byte of parameters, gradients
// and state.
double peakOfOptimizer(const char* backend) {
  const BackendScope scope(backend);
  const size_t before = memory().alive();
  std::vector<Variable> parameters;
  for (int i = 0; i < 8; ++i) {
    parameters.emplace_back(rand({1024, 1024}), /*calcGrad=*/true);
    parameters.back().addGrad(Variable(rand({1024, 1024}), /*calcGrad=*/false));
  }
  AdamOptimizer optimizer(parameters, 1e-3);
  const auto step = [&] {
    optimizer.step();
    for (Variable& parameter : parameters) {
      eval(parameter.tensor());
    }
    sync();
  };
  for (int i = 0; i < kStepsUntilSteady; ++i) {
    step();
  }
  const size_t live = memory().alive() - before;
  return static_cast<double>(live + memory().growth(step)) / static_cast<double>(live);
}

Json measureOptimizer() {
  Json result = row("step of Adam", "peak / live", peakOfOptimizer("lazy"));
  result["eager"] = peakOfOptimizer("eager");
  std::cout << absl::StrFormat("step of Adam: peak / live %.3f, eager %.3f\n",
                               result["ours"].get<double>(), result["eager"].get<double>());
  return result;
}

// A step with more than 5,000 temporaries, of widths that differ, so that values are worth trimming
// and hard to pack.
Workload deepStep() {
  constexpr int kDepth = 1001, kBatch = 128, kWidth = 64;
  return {absl::StrFormat("perceptron of %d layers of mixed widths", kDepth), [] {
            const auto model = std::make_shared<Sequential>();
            std::mt19937 random(1);
            int from = kWidth;
            for (int i = 0; i < kDepth; ++i) {
              const int to = i + 1 == kDepth ? kWidth : 16 * (2 + static_cast<int>(random() % 10));
              model->add(Linear(from, to));
              model->add(Tanh());
              from = to;
            }
            const Variable x = noGrad(rand({kWidth, kBatch}));
            eval(x.tensor());
            return [model, x] {
              Variable loss = sum((*model)(x), {0, 1});
              loss.backward();
              for (Variable& parameter : model->params()) {
                parameter.tensor() -= parameter.grad().tensor() * 1e-3;
                parameter.zeroGrad();
              }
              loss.scalar<float>();
            };
          }};
}

Json measurePlanning(const Workload& workload) {
  const ir::Schedule schedule = steadyPlan(workload, "build");
  Json result = row("planning of a " + workload.name, "ms", planningMilliseconds(schedule));
  result["buffers"] = schedule.temporaries.size();
  std::cout << absl::StrFormat("%s: %d buffers, %.1f ms\n", workload.name,
                               schedule.temporaries.size(), result["ours"].get<double>());
  return result;
}

int runAll() {
  const Peers peers = startPeers(absl::GetFlag(FLAGS_peers), app::runfile(kPeerScript),
                                 getNumThreads(), /*compiled=*/false);
  const std::regex filter(absl::GetFlag(FLAGS_filter));
  std::vector<Json> rows;
  std::cout << absl::StrFormat("%-44s %9s %9s %9s %9s %9s %9s   planning\n", "MB", "lazy", "eager",
                               "arena", "bound", "recorded", "unplanned");
  for (const Workload& workload : {perceptronStep(), mnistStep(), residualStep(), transformerStep(),
                                   transformerStep(kLayers), deepResidualStep()}) {
    if (std::regex_search(workload.name, filter)) {
      rows.push_back(measure(workload, peers));
      print(rows.back());
    }
  }
  if (absl::GetFlag(FLAGS_growth)) {
    measureGrowth(&rows);
  }
  if (absl::GetFlag(FLAGS_alone)) {
    rows.push_back(measureOptimizer());
    rows.push_back(measurePlanning(deepStep()));
    // Of 5,000 temporaries, too.
    rows.push_back(measurePlanning(transformerStep(/*layers=*/84, /*width=*/64, /*length=*/32)));
  }
  if (absl::GetFlag(FLAGS_budgets)) {
    measureBudgets(transformerStep(kLayers), &rows);
  }
  if (const std::string path = absl::GetFlag(FLAGS_json); !path.empty()) {
    writeRows(rows, path);
  }
  return 0;
}

}  // namespace
}  // namespace fl::bench

int main(int argc, char** argv) {
  using namespace fl::bench;
  return runProgram("memory", "Measures the memory of training steps.", __FILE__, argc, argv, [] {
    prepare(absl::GetFlag(FLAGS_threads));
    fl::init();
    memory();
    return runAll();
  });
}
