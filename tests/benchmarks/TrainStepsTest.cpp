// The training steps that benchmarks time: they run on both backends, and the peers know them.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "apps/mnist/Runfile.h"
#include "benchmarks/TrainSteps.h"
#include "fl/fl.h"
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
                                                    {digitsStep().name, 16},
                                                    {mnistStep().name, 15},
                                                    {residualStep().name, 89},
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

TEST(TrainStepsTest, PeersKnowTheirNames) {
  std::ifstream file(app::runfile("benchmarks/peers/workloads.py"));
  const std::string script(std::istreambuf_iterator<char>(file), {});
  for (const Workload& workload : steps()) {
    EXPECT_NE(script.find('"' + workload.name + '"'), std::string::npos) << workload.name;
  }
}

}  // namespace
}  // namespace fl::bench
