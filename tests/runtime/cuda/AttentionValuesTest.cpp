// Attention on the device `cuda` (Gpu.h), with and without cuDNN: the values of the CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/cuda/AttentionValues.h"
#include "tests/runtime/cuda/Gpu.h"

namespace fl::testing {
namespace {

class CudaAttentionValues : public ::testing::TestWithParam<AttentionMask> {};

TEST_P(CudaAttentionValues, AreTheCpus) {
  if (!gpuProblem().empty()) GTEST_SKIP() << gpuProblem();
  for (const dtype type : {dtype::f16, dtype::bf16}) {
    const AttentionCase tested{type, GetParam(), 96, 160, 64};
    const auto expected = attentionValues(tested, "cpu"), values = attentionValues(tested, "cuda");
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_THAT(values[i],
                  ::testing::Pointwise(::testing::FloatNear(attentionError(type)), expected[i]))
          << dtypeToString(type) << " " << i;
    }
    EXPECT_EQ(attentionValues(tested, "cuda"), values);
  }
  EXPECT_THAT(takeMisuse(), ::testing::ElementsAre());
}

INSTANTIATE_TEST_SUITE_P(Masks, CudaAttentionValues, ::testing::ValuesIn(kAttentionMasks));

}  // namespace
}  // namespace fl::testing
