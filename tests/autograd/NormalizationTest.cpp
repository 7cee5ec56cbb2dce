// batchnorm's gradients, at training and with fixed statistics.
#include "fl/autograd/Functions.h"
#include "tests/autograd/GradientCheck.h"

namespace fl::test {
namespace {

TEST(Batchnorm, Gradients) {
  const std::pair<Shape, std::vector<int>> cases[] = {
      {{4, 3, 2, 3}, {2}},     // images: one mean a channel
      {{5, 6}, {0}},           // features first
      {{2, 3, 4}, {0, 1}},     // each activation for itself
      {{3, 2, 2, 4}, {2, 1}},  // in any order
  };
  for (const auto& [shape, axes] : cases) {
    SCOPED_TRACE(shape.toString());
    Dim features = 1;
    for (int axis : axes) {
      features *= shape[axis];
    }
    const Tensor mean = randomTensor({features}), variance = randomTensor({features}, 0.5, 2);
    for (bool train : {true, false}) {
      const auto f = [&, axes = axes](const std::vector<Variable>& v) {
        // Each call has statistics of its own.
        Variable runningMean(mean, false), runningVar(variance, false);
        const Variable none(Tensor(dtype::f64), false);
        return batchnorm(v[0], v.size() > 1 ? v[1] : none, v.size() > 2 ? v[2] : none, runningMean,
                         runningVar, axes, train, 0.1, 1e-3);
      };
      const Tensor input = randomTensor(shape);
      const Tensor weight = randomTensor({features}, 0.5, 1.5), bias = randomTensor({1, features});
      expectGradients(f, {input});
      expectGradients(f, {input, weight});
      expectGradients(f, {input, weight, bias});
    }
  }
}

// The mean follows the input, so that equal gradients cancel.
TEST(Batchnorm, TrainingTakesTheMeanOutOfTheGradient) {
  Variable x(randomTensor({4, 2, 5}), true), none(Tensor(dtype::f64), false);
  Variable mean(Tensor(dtype::f64), false), variance(Tensor(dtype::f64), false);
  batchnorm(x, none, none, mean, variance, {1}, true, 0, 1e-5).backward();
  expectNear(valuesOf(x.grad().tensor()), std::vector<double>(40, 0), 1e-12, 1);
  EXPECT_TRUE(mean.isEmpty());
}

TEST(Batchnorm, UpdatesItsStatisticsInPlace) {
  const Variable x(Tensor::fromVector(Shape({2, 2}), std::vector<double>{1, 2, 3, 6}), false);
  const Variable none(Tensor(dtype::f64), false);
  Variable mean(full({2}, 10.0, dtype::f64), false), variance(full({2}, 1.0, dtype::f64), false);
  const Variable sameMean = mean;
  const Variable y = batchnorm(x, none, none, mean, variance, {0}, true, 0.25, 0);
  expectNear(valuesOf(y.tensor()), {-1, -1, 1, 1}, 1e-15);
  // Means 2 and 4; variances 2 and 8 of two samples, divided by one less.
  expectNear(valuesOf(sameMean.tensor()), {8, 8.5}, 1e-15);
  expectNear(valuesOf(variance.tensor()), {0.75 + 0.5, 0.75 + 2}, 1e-15);
  // Later the kept ones count, and stay.
  const Variable z = batchnorm(x, none, none, mean, variance, {0}, false, 0.25, 0);
  expectNear(
      valuesOf(z.tensor()),
      {-7 / std::sqrt(1.25), -6.5 / std::sqrt(2.75), -5 / std::sqrt(1.25), -2.5 / std::sqrt(2.75)},
      1e-15);
  expectNear(valuesOf(mean.tensor()), {8, 8.5}, 1e-15);
}

TEST(Batchnorm, OfNothingTellsNothing) {
  Variable x(full({3, 2, 0}, 0.0), true), weight(full({2}, 2.0), true), bias(full({2}, 1.0), true);
  Variable mean(full({2}, 10.0), false), variance(full({2}, 4.0), false);
  Variable y = batchnorm(x, weight, bias, mean, variance, {1}, true, 0.25, 1e-5);
  y.backward();
  EXPECT_EQ(y.shape(), x.shape());
  EXPECT_EQ(x.grad().shape(), x.shape());
  EXPECT_EQ(valuesOf(weight.grad().tensor()), (std::vector<double>{0, 0}));
  EXPECT_EQ(valuesOf(bias.grad().tensor()), (std::vector<double>{0, 0}));
  EXPECT_EQ(valuesOf(mean.tensor()), (std::vector<double>{10, 10}));
  EXPECT_EQ(valuesOf(variance.tensor()), (std::vector<double>{4, 4}));
}

TEST(Batchnorm, HalfPrecisionHasParametersInF32) {
  for (dtype type : {dtype::f16, dtype::bf16}) {
    const Tensor values = randomTensor({6, 3, 4});
    Variable x(values.astype(type), true), weight(full({3}, 2.0f), true);
    Variable bias(full({3}, 1.0f), true), mean(full({3}, 0.0f), false);
    Variable variance(full({3}, 1.0f), false);
    Variable y = batchnorm(x, weight, bias, mean, variance, {1}, true, 0.5, 1e-5);
    EXPECT_EQ(y.type(), type);
    EXPECT_EQ(mean.type(), dtype::f32);
    y.backward();
    EXPECT_EQ(x.grad().type(), type);
    EXPECT_EQ(weight.grad().type(), dtype::f32);
    EXPECT_EQ(bias.grad().type(), dtype::f32);
    expectNear(valuesOf(bias.grad().tensor()), {24, 24, 24}, 0);

    // The same in f64, from the rounded input: only the result is rounded again.
    const Variable exact(x.tensor().astype(dtype::f64), false), none(Tensor(dtype::f64), false);
    Variable unused(Tensor(dtype::f64), false), unusedToo(Tensor(dtype::f64), false);
    const Variable expected =
        2.0 * batchnorm(exact, none, none, unused, unusedToo, {1}, true, 0, 1e-5) + 1.0;
    expectNear(valuesOf(y.tensor()), valuesOf(expected.tensor()),
               type == dtype::f16 ? 0x1p-11 : 0x1p-8);
  }
}

// The error is the mean's rounding, not the square of it, however many numbers there are.
TEST(Batchnorm, OfAMeanFarFromZero) {
  const Variable none;
  const auto run = [&](const Tensor& x, int feature) {
    Variable mean, variance;
    return valuesOf(
        batchnorm(Variable(x, false), none, none, mean, variance, {feature}, true, 0, 1e-5)
            .tensor());
  };
  for (const auto& [shape, feature] :
       {std::pair{Shape({8, 2, 9}), 1}, std::pair{Shape({28, 28, 2, 300}), 2}}) {
    const Tensor far = (randomTensor(shape) + 1000.0).astype(dtype::f32);
    const std::vector<double> actual = run(far, feature);
    const std::vector<double> expected = run(far.astype(dtype::f64), feature);
    double error = 0;
    for (size_t i = 0; i < actual.size(); ++i) {
      error = std::max(error, std::abs(actual[i] - expected[i]));
    }
    EXPECT_LE(error, 4 * 1000 * 0x1p-23) << shape;
  }
}

// Nothing of the mean is left where the deviation is 0, in the result and in the gradient.
TEST(Batchnorm, OfOneValueAFeatureIsTheBias) {
  Variable x((randomTensor({64, 1}) * 100.0).astype(dtype::f32), true), mean, variance;
  const Variable weight(randomTensor({64}).astype(dtype::f32), false);
  const Variable bias(randomTensor({64}).astype(dtype::f32), false);
  const Variable y = batchnorm(x, weight, bias, mean, variance, {0}, true, 0, 1e-5);
  EXPECT_EQ(valuesOf(y.tensor()), valuesOf(bias.tensor()));
  sum(y * x, {0, 1}).backward();
  EXPECT_EQ(valuesOf(x.grad().tensor()), valuesOf(bias.tensor())) << "of the other factor alone";
}

}  // namespace
}  // namespace fl::test
