// The training steps that benchmarks time: they run on both backends, and the peers know them.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <string>
#include <variant>

#include "apps/mnist/Runfile.h"
#include "benchmarks/Floor.h"
#include "benchmarks/Folder.h"
#include "benchmarks/Phases.h"
#include "benchmarks/Report.h"
#include "benchmarks/TrainSteps.h"
#include "fl/fl.h"
#include "fl/ir/Text.h"
#include "fl/kernel/Schedule.h"
#include "fl/library/Library.h"
#include "fl/planner/Memory.h"
#include "fl/planner/Order.h"
#include "fl/runtime/Counters.h"
#include "tests/DumpedTexts.h"

namespace fl::bench {
namespace {

const std::vector<Workload>& steps() {
  static const auto& all = *new std::vector{perceptronStep(), digitsStep(), mnistStep(),
                                            residualStep(), transformerStep()};
  return all;
}

// Apart from library calls; with what is computed again rather than kept.
const std::map<std::string, uint64_t> launchesOf = {{perceptronStep().name, 13},
                                                    {digitsStep().name, 19},
                                                    {mnistStep().name, 18},
                                                    {residualStep().name, 131},
                                                    {transformerStep().name, 50}};

uint64_t plans() { return runtime::counters().plansBuilt; }

TEST(TrainStepsTest, EveryStepIsOnePlanWhichIsMadeOnce) {
  init();
  for (const Workload& workload : steps()) {
    SCOPED_TRACE(workload.name);
    EXPECT_TRUE(workload.hasFloor);
    const BackendScope scope("lazy");
    const auto step = workload.make();
    step();
    step();
    const runtime::Counters& counters = runtime::counters();
    const uint64_t before = plans(), realizes = counters.realizes;
    const uint64_t launches = counters.kernelLaunches, made = library::functionsMade();
    step();
    EXPECT_EQ(library::functionsMade(), made) << "primitives";
    EXPECT_EQ(plans(), before);
    EXPECT_EQ(counters.realizes, realizes + 1);
    EXPECT_LE(counters.kernelLaunches - launches, launchesOf.at(workload.name));
  }
}

TEST(TrainStepsTest, BatchesOfAClassShareKernels) {
  init();
  const BackendScope scope("lazy");
  trainBatches(kFirstBatches);
  const uint64_t before = runtime::counters().kernelsCompiled;
  EXPECT_GT(before, 0);
  trainBatches(kOtherBatches);
  EXPECT_EQ(runtime::counters().kernelsCompiled, before);
}

TEST(TrainStepsTest, PhasesAreOfTheCallAlone) {
  init();
  const BackendScope scope("lazy");
  const auto step = perceptronStep(/*batch=*/6).make();
  const Phases first = phasesOf(step);
  EXPECT_GT(first.plan, 0) << "no other step has this batch";
  step();
  const Phases later = phasesOf(step);
  EXPECT_EQ(later.plan, 0);
  EXPECT_EQ(later.compile, 0);
  EXPECT_GT(later.record, 0);
  EXPECT_GT(later.run, 0);
}

// Bytes of the temporaries and scratch memory of the plan of a steady step, packed, as they were
// measured last where library functions take as much scratch memory as here; of the digits, which
// are not, as they are.
std::map<std::string, double> publishedArenas() {
  const bool isUsual = __builtin_cpu_supports("x86-64-v4");
  std::map<std::string, double> arenas = {{digitsStep().name, isUsual ? 1384448 : 5121408}};
  std::ifstream file(app::runfile(isUsual ? "benchmarks/results/memory.json"
                                          : "benchmarks/results/memory_avx2.json"));
  for (std::string line; std::getline(file, line);) {
    const Json row = Json::parse(line);
    if (row["unit"] == "bytes") arenas[row["case"]] = row["arena"];
  }
  return arenas;
}

TEST(TrainStepsTest, PlannedMemoryIsWhatIsPublished) {
  init();
  const std::map<std::string, double> published = publishedArenas();
  std::vector<Workload> all = steps();
  all.push_back(transformerStep(12));
  all.push_back(deepResidualStep());
  for (const Workload& workload : all) {
    const ir::Schedule plan = steadyPlan(workload);
    const double was = published.at(workload.name);
    EXPECT_LE(static_cast<double>(plan.arenaBytes), 1.005 * was) << workload.name;
    EXPECT_GE(static_cast<double>(plan.arenaBytes), 0.95 * was)
        << workload.name << ": measure again";
    EXPECT_LE(static_cast<double>(plan.arenaBytes), 1.05 * static_cast<double>(plan.arenaBound));
    EXPECT_LE(plan.arenaBound, plan.recordedBound) << workload.name;
  }
}

TEST(TrainStepsTest, PublishedMemoryIsWithinItsBounds) {
  std::ifstream file(app::runfile("benchmarks/results/memory.json"));
  int steps = 0, halves = 0;
  for (std::string line; std::getline(file, line);) {
    const Json row = Json::parse(line);
    const std::string name = row["case"];
    if (row["unit"] == "bytes") {
      ++steps;
      const double bytes = row["ours"];
      EXPECT_LE(bytes, 0.75 * row["eager"].get<double>()) << name;
      EXPECT_LE(bytes, 0.9 * row["peers"]["torch"].get<double>()) << name;
      EXPECT_LE(row["arena"].get<double>(), 1.05 * row["bound"].get<double>()) << name;
      EXPECT_LE(row["plan_ms"].get<double>(), 50) << name;
    } else if (name.ends_with("budget 0.50")) {
      ++halves;
      EXPECT_LE(row["ours"].get<double>(), 1.25) << name;  // of the time
      EXPECT_LE(row["arena"].get<double>(), 0.5) << name;
    }
  }
  EXPECT_EQ(steps, 6);
  EXPECT_EQ(halves, 1);
}

// Of the structure of the deepest that are measured, in smaller sizes. All orders are tried, and
// packers look at no more intervals than they may; looks stand for time.
TEST(TrainStepsTest, DeepStepsArePackedByBoundedWork) {
  init();
  for (const Workload& workload :
       {transformerStep(12, /*width=*/64, /*length=*/32), deepResidualStep(/*image=*/64, 16)}) {
    SCOPED_TRACE(workload.name);
    const ir::Schedule plan = steadyPlan(workload);
    EXPECT_GT(plan.temporaries.size(), 250u);
    EXPECT_LE(static_cast<double>(plan.arenaBytes), 1.05 * static_cast<double>(plan.arenaBound));
    EXPECT_LE(plan.arenaBound, plan.recordedBound);
    EXPECT_LE(plan.arenaBytes, plan.unplannedBytes / 3);
    EXPECT_EQ(planner::ordersOf(steadyPlan(workload, "build")).size(), 4u);
    std::vector<planner::Interval> intervals;
    for (const ir::Temporary& each : plan.temporaries) {
      intervals.push_back({each.bytes, each.first, each.last});
    }
    int64_t looks = 0;
    planner::pack(intervals, &looks);
    const auto count = static_cast<int64_t>(intervals.size());
    EXPECT_LE(looks, std::min(planner::kMostLooks, 3 * count * count / 2));
  }
}

TEST(TrainStepsTest, FloorIsOfThePlanOfASteadyStep) {
  init();
  for (const Workload& workload : steps()) {
    SCOPED_TRACE(workload.name);
    const ir::Schedule plan = steadyPlan(workload);
    const BackendScope scope("lazy");
    const auto step = workload.make();
    step();
    step();
    const runtime::Counters& counters = runtime::counters();
    const uint64_t calls = counters.libraryCalls, moved = counters.bytesMoved;
    step();
    size_t callsOfPlan = 0, bytes = 0;
    for (const ir::Step& each : plan.steps) {
      callsOfPlan += std::holds_alternative<ir::LibraryStep>(each);
      bytes += ir::stepBytes(plan, each);
    }
    EXPECT_EQ(counters.libraryCalls - calls, callsOfPlan);
    EXPECT_EQ(counters.bytesMoved - moved, bytes);
    Floor floor(plan);
    floor.block();
    EXPECT_GT(floor.microseconds(), 0);
  }
}

// The final graphs of the plans that a step makes.
std::vector<ir::Graph> graphsOf(const Workload& workload) {
  const Folder folder("fl-train-steps");
  dumpPlans(workload, folder.path());
  std::vector<ir::Graph> graphs;
  for (const std::string& text : fl::testing::dumpedTexts(folder.path(), "dce"))
    graphs.push_back(ir::parseGraph(text));
  return graphs;
}

// Operations that fusion does again rather than write their results, against one for each element.
TEST(TrainStepsTest, FewOperationsAreDoneAgain) {
  init();
  static const std::regex kAgain("recomputed=([0-9]+)");
  for (const Workload& workload : steps()) {
    SCOPED_TRACE(workload.name);
    const Folder folder("fl-train-steps");
    dumpPlans(workload, folder.path());
    int64_t operations = 0, again = 0;
    for (const std::string& text : fl::testing::dumpedTexts(folder.path(), "recompute")) {
      for (std::sregex_iterator each(text.begin(), text.end(), kAgain), end; each != end; ++each)
        again += std::stoll((*each)[1]);
      const ir::Graph graph = ir::parseGraph(text);
      for (const ir::Node& node : graph.nodes()) {
        const bool isReduction = ir::opKind(node.op) == ir::Kind::Reduce;
        if (!isReduction && !ir::isElementwise(node.op)) continue;
        const ir::ValueType& type = isReduction ? graph.type(node.operands[0]) : node.type;
        operations += type.shape.elements();
      }
    }
    EXPECT_GT(operations, 0);
    EXPECT_LE(again, operations / 2) << "of " << operations;
  }
}

// Filters, which a step changes, are packed for the library anew; images are not.
TEST(TrainStepsTest, ImagesAreReorderedAtTheEdgesOnly) {
  init();
  // The pictures of three channels; what the classifier reads, and its gradient.
  const std::map<std::string, int> copiesOf = {{residualStep().name, 1}, {mnistStep().name, 2}};
  for (const Workload& workload : {residualStep(), mnistStep()}) {
    SCOPED_TRACE(workload.name);
    int steps = 0;
    for (const ir::Graph& graph : graphsOf(workload)) {
      int calls = 0, copies = 0, reorders = 0;
      for (const ir::Node& node : graph.nodes()) {
        library::LibraryCall call{node.op, node.attrs, {}, node.type};
        for (const ir::ValueId operand : node.operands) {
          call.operands.push_back(graph.type(operand));
        }
        const bool isCall = ir::opKind(node.op) == ir::Kind::Library;
        calls += isCall;
        reorders += isCall ? library::prepareLibrary(call)->imageReorders() : 0;
        copies += node.op == ir::Op::Transpose;
      }
      if (calls > 0) {
        ++steps;
        EXPECT_EQ(copies, copiesOf.at(workload.name));
        EXPECT_EQ(reorders, 0);
      }
    }
    EXPECT_GE(steps, 1);
  }
}

// Attention reads heads where projections wrote them, and what it makes is read there.
TEST(TrainStepsTest, HeadsAreCopiedNowhere) {
  init();
  const ir::Schedule plan = steadyPlan(transformerStep());
  int launches = 0;
  for (const ir::Step& step : plan.steps) {
    const auto* launch = std::get_if<ir::LaunchStep>(&step);
    if (!launch) continue;
    ++launches;
    const auto& values = plan.kernels[launch->kernel].values;
    EXPECT_FALSE(!values.empty() && std::ranges::all_of(values, [](const ir::KernelValue& value) {
      return value.form == ir::KernelValue::Form::Load;
    })) << launch->site.toString();
  }
  EXPECT_GT(launches, 40);
}

TEST(TrainStepsTest, PeersKnowTheirNames) {
  std::ifstream file(app::runfile("benchmarks/peers/workloads.py"));
  const std::string script(std::istreambuf_iterator<char>(file), {});
  for (const Workload& workload : steps()) {
    EXPECT_NE(script.find('"' + workload.name + '"'), std::string::npos) << workload.name;
  }
}

}  // namespace
}  // namespace fl::bench
