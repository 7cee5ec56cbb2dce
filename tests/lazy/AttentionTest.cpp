// Attention, recorded: what short sequences share between forward and backward, and what long ones
// hold in memory.
#include <gtest/gtest.h>

#include "fl/tensor/TableOps.h"
#include "fl/tensor/tensor.h"
#include "tests/lazy/BufferLog.h"
#include "tests/lazy/Counts.h"

namespace fl::testing {
namespace {

// Query, key, value and the result's gradient of one length, in memory.
struct Operands {
  explicit Operands(Dim time) {
    for (Tensor* each : {&q, &k, &v, &dy}) {
      *each = rand({time, 8, 4, 1}) - 0.5;
      each->toHostVector<float>();
    }
  }
  Tensor q, k, v, dy;
};

// Library calls of forward and backward in one plan.
uint64_t callsOfAStep(const Operands& x) {
  const Counts counts;
  const uint64_t calls = runtime::counters().libraryCalls;
  const Tensor y = table::attention(x.q, x.k, x.v, Tensor());
  const auto gradients = table::attentionBackward(x.dy, x.q, x.k, x.v, Tensor());
  y.toHostVector<float>();
  EXPECT_EQ(counts.realizes(), 1u);
  EXPECT_EQ(counts.fallbacks(), 0u);
  return runtime::counters().libraryCalls - calls;
}

// The scores, the result, and four products backward: scores and their exponentials are those of
// the result.
TEST(Attention, ShortSequencesComputeTheirScoresOnce) { EXPECT_EQ(callsOfAStep(Operands(20)), 6u); }

TEST(Attention, LongSequencesAreOneCallEachWay) { EXPECT_EQ(callsOfAStep(Operands(200)), 2u); }

// A mask is one operand more.
TEST(Attention, AMaskOfZerosChangesNothing) {
  for (const Dim time : {20, 200}) {
    const Operands x(time);
    std::vector<std::vector<float>> values;
    for (const Tensor& mask : {Tensor(), full({time, time, 1, 1}, 0.0f)}) {
      const auto gradients = table::attentionBackward(x.dy, x.q, x.k, x.v, mask);
      values.push_back(table::attention(x.q, x.k, x.v, mask).toHostVector<float>());
      for (const Tensor& gradient : gradients) {
        values.push_back(gradient.toHostVector<float>());
      }
    }
    const size_t each = values.size() / 2;
    for (size_t i = 0; i < each; ++i) {
      EXPECT_EQ(values[i], values[each + i]) << time << ", " << i;
    }
  }
}

TEST(Attention, LongSequencesHoldNoScores) {
  constexpr Dim kTime = 2048;
  const Operands x(kTime);
  const size_t scores = kTime * kTime * 4 * sizeof(float);
  EXPECT_LT(peakGrowth([&] { callsOfAStep(x); }), scores / 2);
}

}  // namespace
}  // namespace fl::testing
