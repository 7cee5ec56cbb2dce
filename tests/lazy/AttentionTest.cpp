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

// Heads as projections make them, (D * heads, time * batch): results and gradients, projected again.
std::vector<Tensor> projectedStep(const Tensor& weight, const Tensor& x, const Tensor& dy) {
  constexpr Dim kHeads = 4, kFeatures = 8, kTime = 160, kBatch = 2;
  const auto heads = [&](const Tensor& projected) {
    const Tensor split = reshape(projected, {kHeads * kFeatures, kTime, kBatch});
    return reshape(transpose(split, {1, 0, 2}), {kTime, kFeatures, kHeads, kBatch});
  };
  const auto merged = [&](const Tensor& heads) {
    const Tensor rows = transpose(reshape(heads, {kTime, kHeads * kFeatures, kBatch}), {1, 0, 2});
    return reshape(rows, {kHeads * kFeatures, kTime * kBatch});
  };
  const Tensor q = heads(matmul(weight, x)) / 3, k = heads(matmul(weight, x));
  const Tensor y = table::attention(q, k, k, Tensor());
  const auto gradients = table::attentionBackward(heads(matmul(weight, dy)), q, k, k, Tensor());
  return {matmul(weight, merged(y)), matmul(weight, merged(gradients[0] / 3)),
          matmul(weight, merged(gradients[1])), matmul(weight, merged(gradients[2]))};
}

// None is copied: a launch scales the gradient of the queries, whose own scale is the epilogue of a
// product. Values are those of eager mode, where all are copied.
TEST(Attention, ReadsHeadsAsProjectionsMakeThem) {
  const Tensor weight = rand({32, 32}) - 0.5, x = rand({32, 320}) - 0.5, dy = rand({32, 320}) - 0.5;
  for (const Tensor& each : {weight, x, dy}) each.toHostVector<float>();
  const auto valuesOf = [](const std::vector<Tensor>& results) {
    std::vector<std::vector<float>> values;
    for (const Tensor& each : results) values.push_back(each.toHostVector<float>());
    return values;
  };
  const Counts counts;
  const auto lazy = valuesOf(projectedStep(weight, x, dy));
  EXPECT_EQ(counts.realizes(), 1u);
  EXPECT_EQ(counts.launches(), 1u);
  const BackendScope scope("eager");
  const auto eager = valuesOf(projectedStep(weight, x, dy));
  for (size_t i = 0; i < eager.size(); ++i) {
    for (size_t k = 0; k < eager[i].size(); ++k)
      ASSERT_NEAR(lazy[i][k], eager[i][k], 2e-5) << i << ", " << k;
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
