#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <vector>

#include "fl/base/Error.h"
#include "fl/base/Flags.h"
#include "fl/base/Log.h"
#include "fl/host/ThreadPool.h"
#include "fl/plans/PlanStore.h"
#include "fl/plans/Tuner.h"

namespace fl::plans {
namespace {

using runtime::LoadedSchedule;

constexpr int kRounds = 9;
constexpr double kRoundSeconds = 500e-6;
constexpr int kMostRuns = 1000;

// Below which every index is in range.
int64_t indexBound(const ir::Graph& graph) {
  int64_t bound = std::numeric_limits<int64_t>::max();
  for (const ir::Node& node : graph.nodes()) {
    if (ir::opKind(node.op) != ir::Kind::Index) continue;
    bound = std::min<int64_t>(bound, graph.type(node.operands[0]).shape.dim(node.attrs[0]));
  }
  return bound == std::numeric_limits<int64_t>::max() ? 2 : std::max<int64_t>(bound, 1);
}

// Floats of [0.5, 1.5), which few operators make infinite or NaN; integers of [0, bound).
double elementAt(int64_t i, bool isFloat, int64_t bound) {
  const auto scattered = static_cast<uint32_t>(static_cast<uint64_t>(i) * 0x9E3779B1u);
  return isFloat ? 0.5 + scattered * 0x1p-32 : static_cast<double>(scattered % bound);
}

struct Inputs {
  std::vector<MemoryBlockPtr> buffers;
  std::vector<Number> numbers;

  Inputs(const ir::Graph& graph, runtime::DeviceMemory& memory) {
    const int64_t bound = indexBound(graph);
    for (const auto& [type, isNumber] : graph.parameters()) {
      const bool isFloat = isFloating(type.type);
      numbers.push_back(Number::fromDouble(elementAt(1, isFloat, bound), type.type));
      buffers.push_back(isNumber ? nullptr : elements(type, bound, memory));
    }
  }

  double seconds(const LoadedSchedule& plan, int runs, runtime::DeviceMemory& memory) const {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < runs; ++i) plan.run(buffers, numbers);
    memory.finish();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

 private:
  static MemoryBlockPtr elements(const ir::ValueType& type, int64_t bound,
                                 runtime::DeviceMemory& memory) {
    return dispatchType(type.type, [&]<typename T>(TypeTag<T>) {
      std::vector<T> values(type.shape.elements());
      for (size_t i = 0; i < values.size(); ++i) {
        const auto at = static_cast<int64_t>(i);
        values[i] = static_cast<T>(elementAt(at, isFloating(type.type), bound));
      }
      return memory.make(values.data(), values.size() * sizeof(T));
    });
  }
};

double medianRatio(const Inputs& inputs, const LoadedSchedule& kernel, const LoadedSchedule& parts,
                   runtime::DeviceMemory& memory) {
  inputs.seconds(kernel, 1, memory);
  const double once = std::max(inputs.seconds(parts, 1, memory), 1e-9);
  const int runs = std::clamp(static_cast<int>(kRoundSeconds / once), 1, kMostRuns);
  std::vector<double> ratios;
  for (int i = 0; i < kRounds; ++i) {
    const double together = inputs.seconds(kernel, runs, memory);
    ratios.push_back(together / inputs.seconds(parts, runs, memory));
  }
  std::ranges::nth_element(ratios, ratios.begin() + kRounds / 2);
  return ratios[kRounds / 2];
}

}  // namespace

Ratio measureOn(runtime::Device& device, runtime::KernelCache* cache, MakeCode makeCode) {
  return [&device, cache, makeCode = std::move(makeCode)](const ir::Graph& graph) -> double {
    const auto load = [&](const char* skip) {
      const codegen::CompileOptions options{
          .lowering = device.lowering(), .skip = skip, .device = device.traits()};
      return device.load(codegen::compile(graph, options).schedule, cache);
    };
    try {
      const auto kernel = load(""), parts = load("fuse");
      for (const auto* plan : {kernel.get(), parts.get()}) {
        makeCode(plan->kernels());
        const auto lacksCode = [](const auto& each) { return !each->compiled(); };
        if (std::ranges::any_of(plan->kernels(), lacksCode)) return 0;
      }
      return medianRatio(Inputs(graph, device.memory()), *kernel, *parts, device.memory());
    } catch (const std::exception& error) {
      logLine(1, std::string("tune: a kernel was not measured: ") + error.what());
      return 0;
    }
  };
}

std::unique_ptr<Tuner> makeTuner(runtime::Device& device, runtime::KernelCache* cache,
                                 MakeCode makeCode) {
  const bool runsKernels = device.lowering() == ir::Lowering::Kernels && device.name() != "null";
  if (flags().tune != "1" || !runsKernels) return nullptr;
  const ir::Target target = device.target();
  return std::make_unique<Tuner>(
      measureOn(device, cache, std::move(makeCode)), runtime::openStore(runtime::kFusions),
      detail::concat(passesHash(), "\n", device.name(), " ", target.features, " ",
                     target.vectorBits, " bits, ", host::getNumThreads(), " threads\n"));
}

}  // namespace fl::plans
