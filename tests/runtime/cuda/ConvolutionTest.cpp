// Convolutions of the device `cuda` by cuDNN: what the library itself makes of what it is told, for
// the properties of GPUs, which needs none; and their values with one that is none (FakeCudnn.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fl/fl.h"
#include "fl/ir/Inference.h"
#include "fl/runtime/Counters.h"
#include "fl/runtime/cuda/Convolution.h"
#include "tests/ErrorOf.h"
#include "tests/runtime/cuda/FakeCudnn.h"
#include "tests/runtime/cuda/FakeGpu.h"
#include "tests/runtime/cuda/RealCudnn.h"

namespace fl::testing {
namespace {

using ir::Op;
using library::cuda::CudnnGraph;
using library::cuda::CudnnRefusal;
using runtime::cuda::OperatorCall;

OperatorCall callOf(Op op, dtype type, bool channelsLast, int groups, bool bias,
                    bool tf32 = false) {
  const ir::ImageAxes axes = channelsLast ? ir::ImageAxes{1, 2, 0} : ir::ImageAxes{0, 1, 2};
  const ir::ValueType input{type, axes.shape(9, 8, 16, 4)}, filter{type, {3, 3, 16 / groups, 32}};
  const ir::ValueType output{type, axes.shape(5, 4, 32, 4)};
  std::vector<Dim> attrs = {2, 2, 1, 1, 1, 1, groups};
  if (op == Op::Conv2dBackwardData) attrs.insert(attrs.end(), {9, 8});
  if (op == Op::Conv2dBackwardFilter) attrs.insert(attrs.end(), {3, 3});
  attrs.insert(attrs.end(), {tf32, channelsLast});
  const ir::Attrs all(attrs);
  if (op == Op::Conv2dBackwardData) return {op, {output, filter}, all, input};
  if (op == Op::Conv2dBackwardFilter) return {op, {output, input}, all, filter};
  std::vector<ir::ValueType> operands = {input, filter};
  if (bias) operands.push_back({type, {1, 1, 32, 1}});
  return {op, operands, all, output};
}

class CudnnPlans : public RealCudnn {
 protected:
  void expectPlanFor(const OperatorCall& call) const {
    SCOPED_TRACE(detail::concat(ir::opName(call.op), " of ", call.operands[0].toString(), " and ",
                                call.operands[1].toString()));
    EXPECT_EQ(mayUseTensorCores(call), call.result.type != dtype::f32);
    expectExactPlan(mayUseTensorCores(call), [&](CudnnGraph& graph) { describe(graph, call); });
  }
};

TEST_P(CudnnPlans, AreThereForConvolutions) {
  for (const dtype type : {dtype::f16, dtype::bf16, dtype::f32, dtype::f64}) {
    for (const bool channelsLast : {false, true}) {
      for (const int groups : {1, 16}) {
        for (const Op op : {Op::Conv2d, Op::Conv2dBackwardData, Op::Conv2dBackwardFilter}) {
          expectPlanFor(callOf(op, type, channelsLast, groups, false));
        }
        expectPlanFor(callOf(Op::Conv2d, type, channelsLast, groups, true));
      }
    }
  }
}

// More plans; which is the fastest is measured.
TEST_P(CudnnPlans, OfF32AreOnTensorCoresOnRequest) {
  const auto plans = [&](bool tf32) {
    const OperatorCall call = callOf(Op::Conv2d, dtype::f32, /*channelsLast=*/true, 1, false, tf32);
    return planNames(mayUseTensorCores(call), [&](CudnnGraph& graph) { describe(graph, call); });
  };
  EXPECT_GT(plans(true).size(), plans(false).size());
}

INSTANTIATE_TEST_SUITE_P(Gpus, CudnnPlans, kGpus, nameOfGpu);

TEST(CudaConvolution, TheLibraryRefusesShapesThatDisagree) {
  OperatorCall call = callOf(Op::Conv2d, dtype::f32, false, 1, false);
  call.result.shape = {6, 4, 32, 4};
  CudnnGraph graph(realCudnn());
  EXPECT_EQ(test::errorOf<CudnnRefusal>([&] { describe(graph, call); }),
            "cuDNN: a description: CUDNN_STATUS_BAD_PARAM");
}

// ---- on a GPU that is none ----

class CudaConvolutions : public ::testing::Test {
 protected:
  CudaConvolutions() {
    gpu.reset();
    offerConvolutions(true);
  }
  ~CudaConvolutions() override {
    EXPECT_THAT(gpu.misuse(), ::testing::ElementsAre());
    offerConvolutions(false);
  }

  struct Case {
    dtype type = dtype::f32;
    Dim width = 7, height = 6, channels = 4, filters = 6;
    int groups = 1, stride = 1, pad = 1, dilation = 1;
  };

  // A convolution with a bias, and its gradients.
  static std::vector<std::vector<float>> valuesOf(const Case& tested) {
    const BackendScope cpu("lazy", "cpu");
    setSeed(1);
    const auto random = [&](const Shape& shape) {
      return Variable((rand(shape) - 0.5).astype(tested.type), true);
    };
    std::vector<Variable> all = {random({tested.width, tested.height, tested.channels, 2}),
                                 random({3, 3, tested.channels / tested.groups, tested.filters}),
                                 random({1, 1, tested.filters, 1})};
    sync();
    return results(all, tested);
  }
  static std::vector<std::vector<float>> results(std::vector<Variable>& all, const Case& tested) {
    const BackendScope scope("lazy", onGpu ? "cuda" : "cpu");
    Variable y = conv2d(all[0], all[1], all[2], tested.stride, tested.stride, tested.pad,
                        tested.pad, tested.dilation, tested.dilation, tested.groups);
    y.backward(Variable(y.tensor() * 0.5, false));
    std::vector<std::vector<float>> values = {y.tensor().astype(dtype::f32).toHostVector<float>()};
    for (const Variable& x : all) {
      values.push_back(x.grad().tensor().astype(dtype::f32).toHostVector<float>());
    }
    return values;
  }

  void expectCpus(const Case& tested, float near = 1e-5f) {
    onGpu = false;
    const auto expected = valuesOf(tested);
    onGpu = true;
    const uint64_t calls = runtime::counters().libraryCalls;
    const uint64_t hostCalls = runtime::counters().hostCalls;
    const auto values = valuesOf(tested);
    EXPECT_EQ(runtime::counters().libraryCalls, calls + 3);
    EXPECT_EQ(runtime::counters().hostCalls, hostCalls);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_THAT(values[i], ::testing::Pointwise(::testing::FloatNear(near), expected[i])) << i;
    }
  }

  static inline bool onGpu = false;
  FakeGpu& gpu = FakeGpu::install();
};

TEST_F(CudaConvolutions, AndTheirGradientsAreTheLibrarys) {
  expectCpus({});
  expectCpus({.groups = 2, .stride = 2});
  expectCpus({.pad = 2, .dilation = 2});
  expectCpus({.type = dtype::f64});
  expectCpus({.type = dtype::bf16}, 0.1f);
}

// Between convolutions images have their channels last.
TEST_F(CudaConvolutions, ModelsHaveTheCpusValues) {
  const auto losses = [](const char* device) {
    const BackendScope scope("lazy", device);
    setSeed(3);
    Sequential model;
    model.add(Conv2D(3, 8, 3, 3, 1, 1, PaddingMode::SAME, PaddingMode::SAME));
    model.add(ReLU());
    model.add(Conv2D(8, 8, 3, 3, 2, 2));
    model.add(ReLU());
    model.add(Conv2D(8, 4, 3, 3, 1, 1, PaddingMode::SAME, PaddingMode::SAME));
    SGDOptimizer optimizer(model.params(), 1e-3);
    const Variable x(rand({9, 9, 3, 2}), false);
    std::vector<float> losses;
    for (int i = 0; i < 3; ++i) {
      const Variable y = model(x);
      Variable loss = sum(y * y, {0, 1, 2, 3});
      losses.push_back(loss.tensor().scalar<float>());
      loss.backward();
      optimizer.step();
      optimizer.zeroGrad();
    }
    return losses;
  };
  const std::vector<float> expected = losses("cpu");
  EXPECT_THAT(losses("cuda"), ::testing::Pointwise(::testing::FloatNear(1e-4f), expected));
}

}  // namespace
}  // namespace fl::testing
