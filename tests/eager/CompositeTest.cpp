// Composites in eager mode: one plan each, with the bits of its operators one by one, made again
// for nothing but another function, other types or other structure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "fl/definitions/Trace.h"
#include "fl/fl.h"
#include "fl/ir/Text.h"
#include "fl/runtime/Counters.h"
#include "tests/ErrorOf.h"

namespace fl {
namespace {

using ::testing::HasSubstr;

// What eager mode does for a call.
struct Work {
  uint64_t launches;
  uint64_t bytes;
};
template <typename Function>
Work workOf(Function&& function) {
  const uint64_t launches = runtime::counters().kernelLaunches;
  const uint64_t bytes = runtime::counters().bytesMoved;
  function();
  return {runtime::counters().kernelLaunches - launches, runtime::counters().bytesMoved - bytes};
}

bool sameBits(const Tensor& x, const Tensor& y) {
  return x.shape() == y.shape() && x.type() == y.type() &&
         x.toHostVector<float>() == y.toHostVector<float>();
}

class EagerComposite : public ::testing::Test {
 protected:
  const BackendScope scope_{"eager", "cpu"};
  const Tensor x_ = rand({1000, 64}) * 8 - 4;
  const double bytes_ = static_cast<double>(x_.bytes());
};

TEST_F(EagerComposite, SoftmaxReadsItsInputOnce) {
  const Variable input(x_, false);
  Tensor result;
  const Work work = workOf([&] { result = softmax(input, 0).tensor(); });
  EXPECT_EQ(work.launches, 1u);
  EXPECT_LE(static_cast<double>(work.bytes), 1.05 * 2 * bytes_);

  const Tensor weights = exp(x_ - amax(x_, {0}, true));
  EXPECT_TRUE(sameBits(result, weights * (1.0 / sum(weights, {0}, true))));
}

TEST_F(EagerComposite, GradientOfSoftmaxIsOneLaunch) {
  Variable input(x_, true);
  const Variable grad(rand(x_.shape()), false);
  Variable result = softmax(input, 0);
  const Work work = workOf([&] { result.backward(grad); });
  EXPECT_EQ(work.launches, 1u);
  EXPECT_LE(static_cast<double>(work.bytes), 1.05 * 3 * bytes_);
  const Tensor y = result.tensor(), weighted = grad.tensor() * y;
  EXPECT_TRUE(sameBits(input.grad().tensor(), weighted - y * sum(weighted, {0}, true)));
}

TEST_F(EagerComposite, FunctionsOfTheApi) {
  const auto launches = [&](auto function) { return workOf([&] { function(x_); }).launches; };
  EXPECT_EQ(launches([](const Tensor& x) { return sigmoid(x); }), 1u);
  EXPECT_EQ(launches([](const Tensor& x) { return mean(x, {0}); }), 1u);
  EXPECT_EQ(launches([](const Tensor& x) { return var(x, {0}); }), 1u);
  EXPECT_EQ(launches([](const Tensor& x) { return fl::std(x, {0}); }), 1u);
  EXPECT_EQ(launches([](const Tensor& x) { return norm(x, {0}); }), 1u);
  EXPECT_EQ(launches([](const Tensor& x) { return clip(x, -1.0, 1.0); }), 1u);
  EXPECT_EQ(launches([](const Tensor& x) { return countNonzero(x, {0}); }), 1u);
}

TEST_F(EagerComposite, BatchNormKeepsItsStatistics) {
  const auto run = [&](const char* backend, Variable* mean) {
    const BackendScope scope(backend, "cpu");
    Variable variance(full({64}, 1.0), false);
    const Variable weight(full({64}, 2.0), false), bias(full({64}, 3.0), false);
    *mean = Variable(full({64}, 0.5), false);
    return batchnorm(Variable(x_, false), weight, bias, *mean, variance, {1}, true, 0.1, 1e-5)
        .tensor();
  };
  Variable eagerMean, lazyMean;
  Tensor eager;
  EXPECT_LE(workOf([&] { eager = run("eager", &eagerMean); }).launches, 5u);  // 4 of them `full`
  EXPECT_TRUE(sameBits(eager, run("lazy", &lazyMean)));
  EXPECT_TRUE(sameBits(eagerMean.tensor(), lazyMean.tensor()));
}

TEST_F(EagerComposite, AdamUpdatesAParameterInOneLaunch) {
  std::vector<Variable> parameters = {Variable(rand({100}), true), Variable(rand({7, 3}), true)};
  AdamOptimizer optimizer(parameters, 0.1);
  for (int step = 0; step < 2; ++step) {  // rates are numbers of the same plans
    for (Variable& parameter : parameters) {
      parameter.zeroGrad();
      parameter.addGrad(Variable(rand(parameter.shape()), false));
    }
    EXPECT_EQ(workOf([&] { optimizer.step(); }).launches, 2u);
  }
}

// Another bound, another axis, another type, another function.
TEST_F(EagerComposite, PlansAreOfTheirArguments) {
  for (const double bound : {1.0, 2.0}) {
    EXPECT_EQ(amax(clip(x_, -bound, bound)).scalar<float>(), bound);
  }
  EXPECT_EQ(mean(x_, {0}).shape(), Shape({64}));
  EXPECT_EQ(mean(x_, {1}).shape(), Shape({1000}));
  EXPECT_EQ(mean(x_.astype(dtype::f64), {0}).type(), dtype::f64);
  EXPECT_NE(norm(x_, {}, 1).scalar<float>(), norm(x_, {}, 2).scalar<float>());
  EXPECT_EQ(var(x_, {0}, false).shape(), fl::std(x_, {0}).shape());
  EXPECT_FALSE(sameBits(var(x_, {0}, false), var(x_, {0}, true)));
}

TEST_F(EagerComposite, WhatNoPlanSaysRunsOperatorByOperator) {
  const Tensor outer = full({1000, 64}, 1.0);
  const auto reads = [](const Tensor& x) { return x * amax(x).scalar<float>(); };
  const auto draws = [](const Tensor& x) { return rand(x.shape()) + x; };
  for (int call = 0; call < 2; ++call) {
    EXPECT_TRUE(sameBits(composite("reads", reads, x_), x_ * amax(x_).scalar<float>()));
    EXPECT_FALSE(sameBits(composite("draws", draws, x_), composite("draws", draws, x_)));
    const auto captures = [outer](const Tensor& x) { return x + outer; };
    EXPECT_TRUE(sameBits(composite("captures", captures, x_), x_ + outer));
  }
}

// A number is in no buffer, so a plan has none to give.
TEST_F(EagerComposite, ANumberMayBeTheResult) {
  const uint64_t before = runtime::counters().fallbacks;
  for (const dtype type : {dtype::f32, dtype::f64, dtype::bf16, dtype::s32, dtype::u64}) {
    const Tensor x = fromScalar(3, type);
    Tensor values, indices;
    sort(values, indices, x, 0);
    const auto made = [](const Tensor&) { return fromScalar(3, dtype::s16); };
    for (const Tensor& same : {tile(x, {}), sort(x, 0), flip(x, 0), roll(x, 1, 0), values}) {
      EXPECT_EQ(same.type(), type);
      EXPECT_EQ(same.shape(), Shape());
      EXPECT_EQ(same.asScalar<double>(), 3);
    }
    EXPECT_EQ(indices.scalar<unsigned>(), 0u);
    EXPECT_EQ(composite("made", made, x).asScalar<int>(), 3);
  }
  Variable input(fromScalar(3.0, dtype::f32), true);
  sum(input, {}).backward();
  EXPECT_EQ(input.grad().tensor().scalar<float>(), 1);
  EXPECT_EQ(runtime::counters().fallbacks, before);
}

TEST_F(EagerComposite, ABadIndexIsWordedByTheOperatorThatReadsIt) {
  const Tensor index = Tensor::fromVector(std::vector<int>{0, 64});
  const auto rows = [](const Tensor& x, const Tensor& index) { return x(span, index) * 2; };
  for (int call = 0; call < 2; ++call) {
    EXPECT_THAT(test::errorOf([&] { composite("rows", rows, x_, index); }),
                HasSubstr("64 is out of range for dimension 1 of 64 elements"));
  }
  EXPECT_TRUE(sameBits(composite("rows", rows, x_, index - 1 * index), x_(span, index * 0) * 2));
}

TEST(Trace, IsAGraphOfOperandsAndConstants) {
  const BackendScope scope("eager", "cpu");
  std::optional<Trace> traced;
  const auto run = [](const std::vector<Tensor>& x) {
    return std::vector<Tensor>{sum(x[0] * 3.0 + x[1], {0}), x[1] - 3.0};
  };
  const CompositeCall call{"f", {}, {rand({4, 2}).value(), fromScalar(2, dtype::f32).value()}, run};
  traced = trace(call);
  ASSERT_TRUE(traced);
  EXPECT_EQ(traced->constants.size(), 2u);
  EXPECT_EQ(ir::printGraph(traced->graph, "f"),
            R"(graph @f(%p0: f32[4,2], %p1: number f32, %p2: number f32, %p3: number f32) {
  %0 = mul %p0, %p2 : f32[4,2]
  %1 = add %0, %p1 : f32[4,2]
  %2 = sum %1 {axes=[0]} : f32[2]
  %3 = sub %p1, %p3 : f32[]
  return %2, %3
}
)");
}

}  // namespace
}  // namespace fl
