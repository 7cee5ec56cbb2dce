// Attention of 16 bits by cuDNN on the device `cuda`: what the library itself makes of what it is
// told, for the properties of GPUs; and values and calls with one that is none (FakeCudnn.h).
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fl/runtime/Counters.h"
#include "fl/runtime/cuda/Attention.h"
#include "fl/tensor/TableOps.h"
#include "tests/runtime/cuda/AttentionValues.h"
#include "tests/runtime/cuda/FakeCudnn.h"
#include "tests/runtime/cuda/FakeGpu.h"
#include "tests/runtime/cuda/RealCudnn.h"

namespace fl::testing {
namespace {

using ir::Op;
using library::cuda::CudnnGraph;
using runtime::cuda::attentionShape;
using runtime::cuda::AttentionShape;
using runtime::cuda::OperatorCall;

int64_t roundUp(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

class CudnnAttentionPlans : public RealCudnn {
 protected:
  // Before cuDNN looks for a driver.
  static void SetUpTestSuite() {
    ASSERT_TRUE(dlopen("tests/runtime/cuda/libcode_loader.so", RTLD_NOW | RTLD_GLOBAL))
        << dlerror();
  }

  void expectPlans(const AttentionShape& shape) const {
    const int64_t heads = shape.heads * shape.batch;
    SCOPED_TRACE(detail::concat(dtypeToString(shape.type), " of ", shape.queries, " queries, ",
                                shape.keys, " keys, ", shape.features, " features, mask ",
                                shape.mask.has_value()));
    EXPECT_LE(expectExactPlan(true, [&](CudnnGraph& graph) { describeForward(graph, shape); }),
              256);
    // Scores of 16 bits are in memory: the gradient of the queries is summed up by no one else.
    const int64_t bytes =
        expectExactPlan(true, [&](CudnnGraph& graph) { describeBackward(graph, shape); });
    EXPECT_GE(bytes, 2 * heads * shape.queries * shape.keys);
    EXPECT_LE(bytes, 2 * heads * roundUp(shape.queries, 128) * roundUp(shape.keys, 128) + 1024);
  }
};

TEST_P(CudnnAttentionPlans, AreThere) {
  for (const AttentionShape& shape : {AttentionShape{dtype::f16, 128, 128, 64, 3, 2, {}},
                                      AttentionShape{dtype::bf16, 100, 77, 40, 3, 2, {}}}) {
    expectPlans(shape);
    for (const AttentionShape::Mask& mask :
         {AttentionShape::Mask{shape.queries, 1, 1}, AttentionShape::Mask{1, 1, shape.batch},
          AttentionShape::Mask{shape.queries, shape.heads, shape.batch}}) {
      AttentionShape masked = shape;
      masked.mask = mask;
      expectPlans(masked);
    }
  }
}

TEST_P(CudnnAttentionPlans, AreNotForHeadsThatAreNoMultipleOfEight) {
  const AttentionShape shape{dtype::bf16, 128, 128, 20, 3, 2, {}};
  EXPECT_TRUE(planNames(true, [&](CudnnGraph& graph) { describeForward(graph, shape); }).empty());
}

INSTANTIATE_TEST_SUITE_P(Gpus, CudnnAttentionPlans, kGpus, nameOfGpu);

// ---- which calls are cuDNN's ----

OperatorCall callOf(Op op, dtype type, const Shape& query, Dim keys, const Shape& mask = {}) {
  const ir::ValueType q{type, query}, k{type, {keys, query[1], query[2], query[3]}};
  OperatorCall call{op, {q, k, k}, {0}, q};
  if (op == Op::AttentionBackward) {
    call.operands.insert(call.operands.begin(), q);
    call.result.shape = Shape({query.elements() + 2 * k.shape.elements()});
  }
  if (mask.ndim() > 0) call.operands.push_back({type, mask});
  return call;
}

bool isForCudnn(const OperatorCall& call) { return attentionShape(call).has_value(); }

TEST(CudaAttention, IsCudnnsInSixteenBitsWhereNothingIsKnownToGoWrong) {
  for (const Op op : {Op::Attention, Op::AttentionBackward}) {
    const Shape query = {64, 8, 2, 3};
    EXPECT_TRUE(isForCudnn(callOf(op, dtype::f16, query, 64)));
    EXPECT_TRUE(isForCudnn(callOf(op, dtype::bf16, query, 64)));
    EXPECT_FALSE(isForCudnn(callOf(op, dtype::f32, query, 64)));
    EXPECT_FALSE(isForCudnn(callOf(op, dtype::f64, query, 64)));
    EXPECT_FALSE(isForCudnn(callOf(op, dtype::f16, query, 63)));
    EXPECT_FALSE(isForCudnn(callOf(op, dtype::f16, {63, 8, 2, 3}, 64)));
    EXPECT_FALSE(isForCudnn(callOf(op, dtype::f16, {64, 12, 2, 3}, 64)));
    EXPECT_FALSE(isForCudnn(callOf(op, dtype::f16, {64, 8, 2, 0}, 64)));
    EXPECT_TRUE(isForCudnn(callOf(op, dtype::f16, query, 80, {64, 80, 1, 1})));
    EXPECT_FALSE(isForCudnn(callOf(op, dtype::f16, query, 80, {64, 1, 1, 1})));
    EXPECT_EQ(isForCudnn(callOf(op, dtype::f16, query, 192, {1, 192, 1, 3})), op == Op::Attention);
    EXPECT_TRUE(isForCudnn(callOf(op, dtype::f16, query, 192)));
  }
  EXPECT_FALSE(isForCudnn({Op::Conv2d, {}, {}, {dtype::f16, {}}}));
}

// ---- on a GPU that is none ----

class CudaAttentions : public ::testing::Test {
 protected:
  CudaAttentions() {
    gpu.reset();
    offerConvolutions(true);
    takePlansRun();
  }
  ~CudaAttentions() override {
    EXPECT_THAT(gpu.misuse(), ::testing::ElementsAre());
    offerConvolutions(false);
  }

  // Kernels and cuDNN's graphs, in order.
  std::vector<std::string> run() const {
    std::vector<std::string> names = gpu.done();
    std::erase_if(names,
                  [](const std::string& name) { return name != "launch" && name != "graph"; });
    return names;
  }

  FakeGpu& gpu = FakeGpu::install();
};

TEST_F(CudaAttentions, AndTheirGradientsHaveTheCpusValues) {
  for (const dtype type : {dtype::f16, dtype::bf16}) {
    for (const AttentionMask mask : kAttentionMasks) {
      const AttentionCase tested{type, mask};
      const auto expected = attentionValues(tested, "cpu");
      const uint64_t calls = runtime::counters().libraryCalls;
      const uint64_t hostCalls = runtime::counters().hostCalls;
      const auto values = attentionValues(tested, "cuda");
      EXPECT_EQ(runtime::counters().libraryCalls, calls + 2);
      EXPECT_EQ(runtime::counters().hostCalls, hostCalls);
      // Going back the forward pass is run again.
      EXPECT_THAT(takePlansRun(), ::testing::ElementsAre(10, 10, 10));
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_THAT(values[i],
                    ::testing::Pointwise(::testing::FloatNear(attentionError(type)), expected[i]))
            << dtypeToString(type) << ", mask " << static_cast<int>(mask) << ", " << i;
      }
    }
  }
}

TEST_F(CudaAttentions, TransposeWhatTheyAreGivenAndGive) {
  const BackendScope scope("lazy", "cuda");
  const Tensor query = full({64, 8, 2, 1}, 1, dtype::f16), key = full({80, 8, 2, 1}, 1, dtype::f16);
  const auto given = [](const Shape& shape) { return full(shape, 0, dtype::f16); };
  const Tensor causal = given({64, 80, 1, 1}), padding = given({1, 80, 1, 1});
  sync();
  const auto stepsWith = [&](const Tensor& mask) {
    gpu.reset();
    const Tensor y = table::attention(query, key, key, mask);
    EXPECT_EQ(y.astype(dtype::f32).toHostVector<float>(), std::vector<float>(64 * 8 * 2, 1));
    return run();
  };
  // The last one is what makes f32 of the result.
  EXPECT_THAT(stepsWith(Tensor()),
              ::testing::ElementsAre("launch", "launch", "launch", "graph", "launch", "launch"));
  EXPECT_THAT(stepsWith(causal), ::testing::ElementsAre("launch", "launch", "launch", "launch",
                                                        "graph", "launch", "launch"));
  EXPECT_THAT(stepsWith(padding),
              ::testing::ElementsAre("launch", "launch", "launch", "graph", "launch", "launch"));
}

TEST_F(CudaAttentions, HaveTheirCopiesInTheArena) {
  runtime::cuda::Context& context = runtime::cuda::Context::of(0);
  constexpr size_t kQuery = 64 * 8 * 4 * 2, kKey = 80 * 8 * 4 * 2, kEach = 64 * 4 * 4;
  constexpr size_t kOfCudnn = 256, kForward = 2 * kQuery + 2 * kKey + kEach;
  const auto bytesOf = [&](Op op, const Shape& mask) {
    return findAttention(context, callOf(op, dtype::f16, {64, 8, 2, 2}, 80, mask))
        ->workspaceBytes();
  };
  EXPECT_EQ(bytesOf(Op::Attention, {}), kForward + kOfCudnn);
  EXPECT_EQ(bytesOf(Op::Attention, {1, 80, 1, 1}), kForward + kOfCudnn);
  EXPECT_EQ(bytesOf(Op::Attention, {64, 80, 1, 1}), kForward + 64 * 80 * 2 + kOfCudnn);
  EXPECT_EQ(bytesOf(Op::AttentionBackward, {}),
            kForward + 2 * kQuery + 2 * kKey + kEach + kOfCudnn);
}

TEST_F(CudaAttentions, AreMadeOfKernelsWithoutAPlan) {
  offerConvolutions(false);
  runtime::cuda::Context& context = runtime::cuda::Context::of(0);
  EXPECT_EQ(findAttention(context, callOf(Op::Attention, dtype::f16, {72, 8, 2, 2}, 80)), nullptr);
  EXPECT_EQ(findAttention(context, callOf(Op::AttentionBackward, dtype::f16, {72, 8, 2, 2}, 80)),
            nullptr);
  const AttentionCase tested{dtype::f16, AttentionMask::Causal, 72, 88};
  const auto expected = attentionValues(tested, "cpu"), values = attentionValues(tested, "cuda");
  EXPECT_THAT(run(), ::testing::Each("launch"));
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_THAT(values[i], ::testing::Pointwise(::testing::FloatNear(5e-3), expected[i]));
  }
}

TEST_F(CudaAttentions, AreMadeOfKernelsWhereTheyAreRefused) {
  runtime::cuda::Context& context = runtime::cuda::Context::of(0);
  const OperatorCall call = callOf(Op::Attention, dtype::f16, {80, 8, 2, 2}, 96);
  refuseGraphs(true);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(findAttention(context, call), nullptr);
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      ::testing::HasSubstr("cuDNN: a description: told to fail; attention is made of kernels\n"));
  refuseGraphs(false);
  // Once.
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(findAttention(context, call), nullptr);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace fl::testing
