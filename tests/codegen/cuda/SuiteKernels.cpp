#include "tests/codegen/cuda/SuiteKernels.h"

#include <cstdlib>
#include <filesystem>
#include <set>

#include "benchmarks/OpCases.h"
#include "benchmarks/TracedPlan.h"
#include "benchmarks/TrainSteps.h"
#include "fl/base/Flags.h"
#include "fl/codegen/Compilation.h"
#include "fl/fl.h"
#include "fl/kernel/Schedule.h"
#include "tests/DumpedTexts.h"

namespace fl::testing {
namespace {

class Kernels {
 public:
  void add(const ir::Schedule& schedule) {
    for (const ir::Kernel& kernel : schedule.kernels) {
      if (seen_.insert(printKernel(kernel, "k")).second) all_.push_back(kernel);
    }
  }
  std::vector<ir::Kernel> take() { return std::move(all_); }

 private:
  std::vector<ir::Kernel> all_;
  std::set<std::string> seen_;
};

void addOperators(Kernels* kernels) {
  constexpr Dim kElements = 1 << 10;
  for (const bench::OpCase& opCase : bench::opCases()) {
    try {
      bench::Trace trace = bench::trace(opCase, opCase.inputs(kElements));
      kernels->add(codegen::compile(std::move(trace.graph), {}).schedule);
    } catch (const bench::ElementsRead&) {  // what follows is another plan
    }
  }
}

// By the dumps of plans on a device that runs nothing.
void addTrainingSteps(Kernels* kernels) {
  const std::filesystem::path folder = std::filesystem::path(std::getenv("TEST_TMPDIR")) / "plans";
  flags().device = "null";
  flags().dump = folder;
  flags().cache = "off";
  for (const bench::Workload& workload : {bench::perceptronStep(), bench::mnistStep(),
                                          bench::residualStep(), bench::transformerStep()}) {
    const BackendScope scope("lazy");
    workload.make()();
  }
  for (const std::string& text : dumpedTexts(folder, "pack")) kernels->add(ir::parseSchedule(text));
}

}  // namespace

std::vector<ir::Kernel> suiteKernels() {
  init();
  Kernels kernels;
  addOperators(&kernels);
  addTrainingSteps(&kernels);
  return kernels.take();
}

}  // namespace fl::testing
