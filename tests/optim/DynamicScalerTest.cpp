// The factor of the loss: when it grows and shrinks, and what steps that overflow leave behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fl/autograd/Functions.h"
#include "fl/tensor/tensor.h"
#include "tests/ErrorOf.h"
#include "tests/Values.h"
#include "tests/optim/AllOptimizers.h"

namespace fl::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Variable parameterOf(std::vector<float> values, dtype type = dtype::f32) {
  const Shape shape({static_cast<Dim>(values.size())});
  return Variable(Tensor::fromVector(shape, std::move(values)).astype(type), true);
}

void setGradient(Variable& parameter, const std::vector<float>& values) {
  parameter.zeroGrad();
  parameter.addGrad(Variable(Tensor::fromVector(values).astype(parameter.type()), false));
}

TEST(DynamicScaler, TheFactorFollowsTheGradients) {
  DynamicScaler scaler(4, 16, 2);
  Variable w = parameterOf({1, 2});
  std::vector<double> factors;
  for (const float value : {1.f, 1.f, 1.f, kInfinity, 1.f, 1.f, 1.f, 1.f, 1.f, 1.f, NAN, 1.f}) {
    setGradient(w, {1, value});
    EXPECT_EQ(scaler.unscale({w}), std::isfinite(value));
    scaler.update();
    factors.push_back(scaler.getScaleFactor());
  }
  EXPECT_EQ(factors, (std::vector<double>{4, 8, 8, 4, 4, 8, 8, 16, 16, 16, 8, 8}));
}

TEST(DynamicScaler, TheFactorStaysAboveItsMinimum) {
  for (const double first : {3e-4, 1e-5}) {
    DynamicScaler scaler(first, 1, 1);
    Variable w = parameterOf({1});
    for (int step = 0; step < 4; ++step) {
      setGradient(w, {kInfinity});
      scaler.unscale({w});
      scaler.update();
    }
    EXPECT_FLOAT_EQ(scaler.getScaleFactor(), std::min(first, kAmpMinimumScaleFactorValue));
  }
}

// The gradients of a loss that was scaled are those of the loss, and wider.
TEST(DynamicScaler, GradientsComeBackUnscaled) {
  for (const dtype type : {dtype::f16, dtype::bf16, dtype::f32, dtype::f64}) {
    SCOPED_TRACE(dtypeToString(type));
    const dtype wide = type == dtype::f64 ? type : dtype::f32;
    DynamicScaler scaler(1024);
    Variable w = parameterOf({1, 2}, type), without = parameterOf({1}, type);
    // 2^-20 is subnormal in f16, and 2^-30 would be 0.
    const Variable loss = sum(w.astype(wide) * std::ldexp(1, -20), {});
    Variable scaled = scaler.scale(loss);
    EXPECT_EQ(scaled.type(), wide);
    EXPECT_EQ(valuesOf(scaled.tensor())[0], std::ldexp(3, -10));
    scaled.backward();
    EXPECT_TRUE(scaler.unscale({w, without}));
    EXPECT_EQ(w.grad().type(), wide);
    EXPECT_EQ(valuesOf(w.grad().tensor()), std::vector<float>(2, std::ldexp(1.f, -20)));
    EXPECT_FALSE(without.isGradAvailable());
  }
  EXPECT_EQ(DynamicScaler().scale(Variable(full(Shape(), 1.0, dtype::f16), false)).type(),
            dtype::f32);
}

TEST(DynamicScaler, Misuse) {
  const std::string rule =
      "DynamicScaler: needs 0 < initFactor <= maxFactor and updateInterval > 0, not ";
  EXPECT_EQ(errorOf([] { DynamicScaler(0, 1, 1); }).find(rule + "0, 1 and 1"), 0u);
  EXPECT_EQ(errorOf([] { DynamicScaler(2, 1, 1); }).find(rule + "2, 1 and 1"), 0u);
  EXPECT_EQ(errorOf([] { DynamicScaler(1, 1, 0); }).find(rule + "1, 1 and 0"), 0u);
}

// ---- Steps that do not happen ----

TEST(StepIf, LeavesParametersAndStateAlone) {
  for (const MakeOptimizer& make : allOptimizers()) {
    for (const dtype type : {dtype::f32, dtype::f16}) {
      Variable w = parameterOf({1, -2, 0.5}, type), expected = parameterOf({1, -2, 0.5}, type);
      const auto optimizer = make({w}), other = make({expected});
      SCOPED_TRACE(optimizer->prettyString());
      for (const bool good : {true, false, true}) {
        setGradient(w, good ? std::vector<float>{1, 2, -3} : std::vector<float>{1, NAN, kInfinity});
        const std::vector<float> before = valuesOf(w.tensor());
        optimizer->stepIf(full(Shape(), good, dtype::b8));
        EXPECT_EQ(valuesOf(w.tensor()) == before, !good);
        EXPECT_EQ(w.type(), type);
      }
      for (int step = 0; step < 2; ++step) {
        setGradient(expected, {1, 2, -3});
        other->step();
      }
      for (size_t i = 0; i < 3; ++i) {
        // Adam's numbers of a step are computed by the device then.
        EXPECT_FLOAT_EQ(valuesOf(w.tensor())[i], valuesOf(expected.tensor())[i]);
      }
    }
  }
}

// As at the start of a training whose first factors are too large.
TEST(StepIf, TheFirstStepThatHappensIsTheFirst) {
  for (const MakeOptimizer& make : allOptimizers()) {
    Variable w = parameterOf({1, -2, 0.5}), expected = parameterOf({1, -2, 0.5});
    const auto optimizer = make({w}), other = make({expected});
    SCOPED_TRACE(optimizer->prettyString());
    for (int step = 0; step < 11; ++step) {
      setGradient(w, {1, 2, -3});
      optimizer->stepIf(full(Shape(), step == 10, dtype::b8));
    }
    setGradient(expected, {1, 2, -3});
    other->step();
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_FLOAT_EQ(valuesOf(w.tensor())[i], valuesOf(expected.tensor())[i]);
    }
  }
}

TEST(StepIf, RefusesWhatIsNoConditionAndChangesNothing) {
  for (const MakeOptimizer& make : allOptimizers()) {
    Variable w = parameterOf({1, -2}), expected = parameterOf({1, -2});
    const auto optimizer = make({w}), other = make({expected});
    SCOPED_TRACE(optimizer->prettyString());
    const auto wordsOf = [&](const Tensor& condition) {
      setGradient(w, {1, 2});
      return errorOf([&] { optimizer->stepIf(condition); });
    };
    const std::string rule = " must be one b8 element, at ";
    EXPECT_EQ(wordsOf(full({2}, true, dtype::b8)).find("stepIf: the condition b8[2]" + rule), 0u);
    EXPECT_EQ(wordsOf(full({0}, true, dtype::b8)).find("stepIf: the condition b8[0]" + rule), 0u);
    EXPECT_EQ(wordsOf(full({}, 1.0f)).find("stepIf: the condition f32[]" + rule), 0u);
    optimizer->stepIf(full({1, 1}, true, dtype::b8));
    setGradient(expected, {1, 2});
    other->stepIf(full({}, true, dtype::b8));
    EXPECT_EQ(valuesOf(w.tensor()), valuesOf(expected.tensor()));
  }
}

// A user's own optimizer.
class FixedStep : public FirstOrderOptimizer {
 public:
  using FirstOrderOptimizer::FirstOrderOptimizer;
  void step() override { parameters_[0].tensor() = parameters_[0].tensor() - lr_; }
  std::string prettyString() const override { return "FixedStep"; }
};

TEST(StepIf, ReadsTheConditionForOptimizersOfUsers) {
  Variable w = parameterOf({1});
  FixedStep optimizer({w}, 0.5);
  optimizer.stepIf(full(Shape(), false, dtype::b8));
  EXPECT_EQ(valuesOf(w.tensor())[0], 1);
  optimizer.stepIf(full(Shape(), true, dtype::b8));
  EXPECT_EQ(valuesOf(w.tensor())[0], 0.5);
}

}  // namespace
}  // namespace fl::test
