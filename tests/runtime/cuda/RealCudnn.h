// What the real cuDNN makes of graphs for the properties of an A100 and an H100, which needs no
// GPU.
#pragma once

#include <cuda.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "fl/base/CudaLibrary.h"
#include "fl/base/Error.h"
#include "fl/library/cuda/CudnnGraph.h"

namespace fl::testing {

inline const library::cuda::Cudnn& realCudnn() {
  static const library::cuda::Cudnn& table = *[] {
    auto* table = new library::cuda::Cudnn();
    CudaLibrary library("cudnn", CUDNN_MAJOR, CUDA_VERSION);
#define FL_CUDNN(function) \
  table->function = reinterpret_cast<decltype(table->function)>(library.find(#function));
#include "fl/library/cuda/Cudnn.def"
#undef FL_CUDNN
    EXPECT_EQ(library.problem(), "");
    return table;
  }();
  return table;
}

// As cuDNN writes down the properties of a GPU, of which these are the ones that tell one from
// another.
inline std::string propertiesOf(int version, int processors, int sharedBytes) {
  return detail::concat(
      R"({"cudnnVersion":91900,"schemaVersion":1,"deviceName":"GPU","cudaDeviceId":0,"pciDeviceId":0,)",
      R"("deviceVer":)", version, R"(,"ccMajor":)", version / 100, R"(,"ccMinor":)",
      version % 100 / 10, R"(,"driverVer":13000,"multiProcessorCount":)", processors,
      R"(,"warpSize":32,"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],)",
      R"("regsPerBlock":65536,"maxRegistersPerSM":65536,"maxCtasPerSM":24,)",
      R"("maxThreadsPerBlock":1024,"maxThreadsPerSM":1536,"maxSharedMemoryPerBlock":49152,)",
      R"("maxSharedMemoryPerBlockOptin":)", sharedBytes, R"(,"reservedSharedMemoryPerBlock":1024,)",
      R"("isTccDriver":0,"supportCoopLaunch":1,"smClockRateKHz":1500000,)",
      R"("memClockRateKHz":1500000,"l2CacheSize":40000000,"totalGlobalMem":40000000000})");
}

// INSTANTIATE_TEST_SUITE_P(Gpus, SUITE, kGpus, nameOfGpu)
inline const auto kGpus =
    ::testing::Values(propertiesOf(800, 108, 166912), propertiesOf(900, 132, 232448));
inline std::string nameOfGpu(const ::testing::TestParamInfo<std::string>& info) {
  return info.index == 0 ? "A100" : "H100";
}

class RealCudnn : public ::testing::TestWithParam<std::string> {
 protected:
  using Describe = std::function<void(library::cuda::CudnnGraph&)>;

  RealCudnn() : properties_(realCudnn(), CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) {
    const std::string text = GetParam();
    properties_
        .set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, std::ssize(text) + 1,
             text.c_str())
        .finish();
  }

  // There are plans, the same twice, all exact, and on tensor cores only if they may be; one is
  // made: the bytes of its workspace.
  int64_t expectExactPlan(bool onTensorCores, const Describe& describe) const {
    library::cuda::CudnnGraph graph(realCudnn()), again(realCudnn());
    describe(graph);
    describe(again);
    EXPECT_EQ(namesOf(graph, onTensorCores), namesOf(again, onTensorCores));
    for (const auto heuristic : kHeuristics) {
      std::vector<library::cuda::CudnnPlan> plans = plansOf(graph, heuristic, onTensorCores);
      for (auto& plan : plans)
        if (isMade(plan)) return plan.workspaceBytes();
    }
    ADD_FAILURE() << "no plan is made";
    return 0;
  }
  std::vector<std::string> planNames(bool onTensorCores, const Describe& describe) const {
    library::cuda::CudnnGraph graph(realCudnn());
    describe(graph);
    return namesOf(graph, onTensorCores);
  }

 private:
  static constexpr std::array kHeuristics = {CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_A,
                                             CUDNN_HEUR_MODE_FALLBACK};

  library::cuda::CudnnTarget target() const { return {nullptr, &properties_}; }
  std::vector<library::cuda::CudnnPlan> plansOf(library::cuda::CudnnGraph& graph,
                                                cudnnBackendHeurMode_t heuristic,
                                                bool onTensorCores) const {
    auto plans = graph.plans(heuristic, target(), onTensorCores);
    for (const auto& plan : plans) {
      for (const cudnnBackendNumericalNote_t note : plan.notes()) {
        EXPECT_TRUE(note == CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP ||
                    (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && onTensorCores))
            << note;
      }
    }
    return plans;
  }
  // By each heuristic, whose plans have names of their own.
  std::vector<std::string> namesOf(library::cuda::CudnnGraph& graph, bool onTensorCores) const {
    std::vector<std::string> all;
    for (const auto heuristic : kHeuristics) {
      std::set<std::string> names;
      const auto plans = plansOf(graph, heuristic, onTensorCores);
      for (const auto& plan : plans) all.push_back(*names.insert(plan.name()).first);
      EXPECT_EQ(names.size(), plans.size());
    }
    return all;
  }
  bool isMade(library::cuda::CudnnPlan& plan) const try {
    plan.prepare(target());
    return true;
  } catch (const library::cuda::CudnnRefusal&) {
    return false;
  }

  library::cuda::CudnnDescriptor properties_;
};

}  // namespace fl::testing
