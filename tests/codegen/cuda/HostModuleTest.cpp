// The shim that runs generated CUDA C++ on the CPU: what it finds, and what it shows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fl/base/Error.h"
#include "tests/ErrorOf.h"
#include "tests/codegen/cuda/HostModule.h"

namespace fl::testing {
namespace {

TEST(HostModule, FindsADivergentBarrier) {
  const HostModule module(
      "typedef unsigned long long u64;\nstruct k_arguments { u64 word; };\n"
      "extern \"C\" __global__ void k(const k_arguments a) { if (threadIdx.x != 7) "
      "__syncthreads(); }\n");
  EXPECT_NE(test::errorOf<InternalError>([&] {
              module.launch("k", {1, {256, 1, 1}}, {0}, false);
            }).find("255 of 256 threads wait at __syncthreads(), 0 for their warp, 1 have ended"),
            std::string::npos);
}

TEST(HostModule, ShowsAMissingBarrierInOneOrder) {
  const HostModule module(
      "typedef unsigned long long u64;\nstruct k_arguments { u64* result; };\n"
      "extern \"C\" __global__ void k(const k_arguments a) {\n"
      "  __shared__ u64 given[64];\n"
      "  given[threadIdx.x] = 0;\n  __syncthreads();\n"
      "  given[threadIdx.x] = threadIdx.x;\n"
      "  a.result[threadIdx.x] = given[63 - threadIdx.x];\n}\n");
  std::vector<uint64_t> results[2] = {std::vector<uint64_t>(64), std::vector<uint64_t>(64)};
  for (const bool reversed : {false, true}) {
    module.launch("k", {1, {64, 1, 1}}, {reinterpret_cast<uint64_t>(results[reversed].data())},
                  reversed);
  }
  EXPECT_NE(results[0], results[1]);
}

TEST(HostModule, FetchedElementsAreThereAfterTheWait) {
  const HostModule module(
      codegen::cuda::emitCuda({}) +
      "struct k_arguments { s32* result; s64 waits; };\n"
      "extern \"C\" __global__ void k(const k_arguments a) {\n"
      "  s32* const row = reinterpret_cast<s32*>(sharedBegin());\n"
      "  fetchRow(row, a.result, 5, int(threadIdx.x));\n"
      "  if (a.waits) waitForFetches();\n"
      "  if (threadIdx.x < 5) a.result[5 + threadIdx.x] = row[4 - threadIdx.x];\n}\n");
  alignas(16) int32_t result[10] = {1, 2, 3, 4, 5};
  const auto run = [&](uint64_t waits, int sharedBytes) {
    module.launch("k", {.blocks = 1, .threads = {32, 1, 1}, .sharedBytes = sharedBytes},
                  {reinterpret_cast<uint64_t>(result), waits}, false);
    return std::vector<int32_t>(result + 5, result + 10);
  };
  EXPECT_EQ(run(1, 20), (std::vector<int32_t>{5, 4, 3, 2, 1}));
  EXPECT_EQ(run(0, 20), std::vector<int32_t>(5, static_cast<int32_t>(0xa5a5a5a5)));
  EXPECT_NE(test::errorOf<InternalError>([&] {
              run(1, 16);
            }).find("a write beyond 16 bytes of shared memory"),
            std::string::npos);
}

TEST(HostModule, CarriesTheCompilersWords) {
  EXPECT_NE(test::errorOf<InternalError>([] { HostModule("frobnicate"); }).find("frobnicate"),
            std::string::npos);
}

}  // namespace
}  // namespace fl::testing
