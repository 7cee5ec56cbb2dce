// The chains that benchmarks time: how many launches each is, and what these move.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "benchmarks/KernelCases.h"
#include "fl/fl.h"
#include "fl/runtime/Counters.h"

namespace fl::bench {
namespace {

constexpr uint64_t kLargest = uint64_t{1} << 26;  // bytes; other sizes are the same kernels

struct Counts {
  uint64_t launches, bytes, plans;
};

Counts countsOf(const std::function<void()>& call) {
  const runtime::Counters& counters = runtime::counters();
  const Counts before{counters.kernelLaunches, counters.bytesMoved, counters.plansBuilt};
  call();
  return {counters.kernelLaunches - before.launches, counters.bytesMoved - before.bytes,
          counters.plansBuilt - before.plans};
}

// Numbers that a compiled function keeps are a launch of their own.
bool isCompiled(const std::string& name) { return name.starts_with("compiled"); }

// Sums over columns of what a map gives: the gradients of biases and weights.
bool sumsColumns(const std::string& name) { return name.find("gradients") != std::string::npos; }

TEST(KernelCases, AreOneLaunchThatMovesWhatItMust) {
  init();
  const BackendScope scope("lazy");
  for (const Workload& workload : kernelCases()) {
    SCOPED_TRACE(workload.name);
    const auto most = static_cast<uint64_t>(workload.bytesRead + workload.bytesWritten);
    if (most > kLargest) continue;
    const auto call = workload.make();
    // What is compiled is recorded until two calls agree.
    for (int i = 0; i < (isCompiled(workload.name) ? 4 : 1); ++i) {
      call();
    }
    const Counts counts = countsOf(call);
    EXPECT_EQ(counts.plans, 0);
    EXPECT_EQ(counts.launches, sumsColumns(workload.name) || isCompiled(workload.name) ? 2 : 1);
    if (!sumsColumns(workload.name)) {
      EXPECT_LE(counts.bytes, most * 1.05);
    }
  }
}

TEST(KernelCases, NamesDiffer) {
  std::set<std::string> names;
  for (const Workload& workload : kernelCases()) {
    EXPECT_TRUE(names.insert(workload.name).second) << workload.name;
  }
}

}  // namespace
}  // namespace fl::bench
