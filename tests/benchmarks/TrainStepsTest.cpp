// The training steps that benchmarks time: they run on both backends, and the peers know them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "apps/mnist/Runfile.h"
#include "benchmarks/TrainSteps.h"
#include "fl/base/Flags.h"
#include "fl/fl.h"
#include "fl/ir/Text.h"
#include "fl/lazy/LazyBackend.h"
#include "fl/library/Library.h"
#include "fl/runtime/Counters.h"

namespace fl::bench {
namespace {

const std::vector<Workload>& steps() {
  static const auto& all = *new std::vector{perceptronStep(), digitsStep(), mnistStep(),
                                            residualStep(), transformerStep()};
  return all;
}

// Apart from library calls.
const std::map<std::string, uint64_t> launchesOf = {{perceptronStep().name, 14},
                                                    {digitsStep().name, 20},
                                                    {mnistStep().name, 19},
                                                    {residualStep().name, 145},
                                                    {transformerStep().name, 83}};

uint64_t plans() { return runtime::counters().plansBuilt; }

TEST(TrainStepsTest, EveryStepIsOnePlanWhichIsMadeOnce) {
  init();
  for (const Workload& workload : steps()) {
    SCOPED_TRACE(workload.name);
    EXPECT_GT(workload.operations, 0);
    const BackendScope scope("lazy");
    const auto step = workload.make();
    step();
    step();
    const runtime::Counters& counters = runtime::counters();
    const uint64_t before = plans(), realizes = counters.realizes;
    const uint64_t launches = counters.kernelLaunches;
    step();
    EXPECT_EQ(plans(), before);
    EXPECT_EQ(counters.realizes, realizes + 1);
    EXPECT_LE(counters.kernelLaunches - launches, launchesOf.at(workload.name));
  }
}

// A plan is dumped when it is built, here by a backend that has built none.
const BackendRegistration dumped("dumped", makeLazyBackend);

// The final graphs of the plans that a step makes.
std::vector<ir::Graph> graphsOf(const Workload& workload) {
  const std::string folder = ::testing::TempDir() + std::to_string(workload.operations);
  std::filesystem::remove_all(folder);
  flags().dump = folder;
  const BackendScope scope("dumped", "cpu");
  const auto step = workload.make();
  step();
  step();
  flags().dump.clear();
  std::vector<ir::Graph> graphs;
  for (const auto& plan : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(plan.path() / "05_dce.flir");
    graphs.push_back(ir::parseGraph(std::string(std::istreambuf_iterator<char>(file), {})));
  }
  return graphs;
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

TEST(TrainStepsTest, PeersKnowTheirNames) {
  std::ifstream file(app::runfile("benchmarks/peers/workloads.py"));
  const std::string script(std::istreambuf_iterator<char>(file), {});
  for (const Workload& workload : steps()) {
    EXPECT_NE(script.find('"' + workload.name + '"'), std::string::npos) << workload.name;
  }
}

}  // namespace
}  // namespace fl::bench
