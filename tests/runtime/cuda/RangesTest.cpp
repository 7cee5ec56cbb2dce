// What NVIDIA's tools are told of the device `cuda`: this program is one (NVTX's static injection).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fl/fl.h"
#include "fl/runtime/MemoryManager.h"
#define NVTX_NO_IMPL  // the program's own is that of the device
#include "nvtx3/nvToolsExt.h"
#include "tests/runtime/cuda/FakeCublasLt.h"
#include "tests/runtime/cuda/FakeGpu.h"

namespace {

int depth = 0;
std::vector<std::string> names;

int NVTX_API push(const char* name) {
  names.emplace_back(name);
  return depth++;
}
int NVTX_API pop() { return --depth; }

int NVTX_API inject(NvtxGetExportTableFunc_t find) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(find(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size);
  *table[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(push);
  *table[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(pop);
  return 1;
}

}  // namespace

extern "C" {
NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = inject;
}

namespace fl::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;

TEST(CudaRanges, NameLaunchesCallsAndGraphs) {
  FakeGpu& gpu = FakeGpu::install();
  offerProducts(true);
  const BackendScope cuda("lazy", "cuda");
  const Tensor x = full({4, 4}, 0.5f);
  sync();
  const auto run = [&] {
    names.clear();
    sum(matmul(tanh(x), x), {0}).toHostVector<float>();
    EXPECT_EQ(depth, 0);
    return names;
  };
  EXPECT_THAT(run(), ElementsAre(ContainsRegex("^map tanh [0-9a-f]+$"), "matmul",
                                 ContainsRegex("^rows sum [0-9a-f]+$")));
  run();
  EXPECT_THAT(gpu.misuse(), ElementsAre());
  if (runtime::poisons()) GTEST_SKIP() << "poison comes between the steps of a plan";
  EXPECT_THAT(run(), ElementsAre("graph"));
}

}  // namespace
}  // namespace fl::testing
