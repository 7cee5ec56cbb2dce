// The training steps that benchmarks time: they run on both backends, and the peers know them.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
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
    const uint64_t before = plans(), launches = runtime::counters().realizes;
    step();
    EXPECT_EQ(plans(), before);
    EXPECT_EQ(runtime::counters().realizes, launches + 1);
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
