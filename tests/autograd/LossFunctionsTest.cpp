#include <cmath>
#include <limits>

#include "fl/autograd/Functions.h"
#include "tests/autograd/GradientCheck.h"

namespace fl::test {
namespace {

Variable targetsOf(const Shape& shape, std::vector<int> classes) {
  return Variable(Tensor::fromVector(shape, std::move(classes)), false);
}

TEST(LossFunctions, BinaryCrossEntropy) {
  const Variable x(Tensor::fromVector(std::vector<double>{0.25, 0.9}), false);
  const Variable y(Tensor::fromVector(std::vector<double>{1, 0.5}), false);
  expectNear(valuesOf(binaryCrossEntropy(x, y).tensor()),
             {-std::log(0.25), -0.5 * (std::log(0.9) + std::log(0.1))}, 1e-14);
  expectGradients(
      [](const std::vector<Variable>& v) {
        return binaryCrossEntropy(v[0], Variable(full(v[0].shape(), 0.3, dtype::f32), false));
      },
      {randomTensor({3, 2}, 0.2, 0.8)});
  // Both sides.
  expectGradients([](const std::vector<Variable>& v) { return binaryCrossEntropy(v[0], v[1]); },
                  {randomTensor({3, 2}, 0.2, 0.8), randomTensor({3, 2}, 0.2, 0.8)});
}

TEST(LossFunctions, CategoricalCrossEntropyValues) {
  // Three columns of two classes.
  const Variable x(Tensor::fromVector(Shape({2, 3}), std::vector<double>{-1, -2, -3, -5, -8, -13}),
                   false);
  const Variable y = targetsOf({3}, {0, 1, 0});
  expectNear(valuesOf(categoricalCrossEntropy(x, y, ReduceMode::NONE).tensor()), {1, 5, 8}, 0);
  expectNear(valuesOf(categoricalCrossEntropy(x, y, ReduceMode::SUM).tensor()), {14}, 0);
  expectNear(valuesOf(categoricalCrossEntropy(x, y).tensor()), {14.0 / 3}, 1e-15);
  EXPECT_EQ(categoricalCrossEntropy(x, y).shape(), Shape());
  EXPECT_EQ(categoricalCrossEntropy(x, y, ReduceMode::NONE).shape(), Shape({3}));

  // The middle one ignored, once as a class and once as no class at all.
  for (int ignored : {1, -1, 7}) {
    const Variable z = targetsOf({3}, {0, ignored, 0});
    expectNear(valuesOf(categoricalCrossEntropy(x, z, ReduceMode::NONE, ignored).tensor()),
               {1, 0, 8}, 0);
    expectNear(valuesOf(categoricalCrossEntropy(x, z, ReduceMode::MEAN, ignored).tensor()), {4.5},
               1e-15);
  }
}

TEST(LossFunctions, CategoricalCrossEntropyGradients) {
  for (ReduceMode mode : {ReduceMode::NONE, ReduceMode::SUM, ReduceMode::MEAN}) {
    SCOPED_TRACE(static_cast<int>(mode));
    const auto check = [mode](const Shape& shape, const Variable& targets, int ignored) {
      expectGradients(
          [&](const std::vector<Variable>& v) {
            return categoricalCrossEntropy(logSoftmax(v[0], 0), targets, mode, ignored);
          },
          {randomTensor(shape)});
    };
    check({4, 3}, targetsOf({3}, {3, 0, 2}), -1);
    check({4, 3}, targetsOf({3}, {3, 0, 2}), 0);
    check({3, 2, 2}, targetsOf({2, 2}, {0, 1, 2, 1}), -1);
    check({3}, targetsOf({}, {2}), -1);
  }
}

// log-probabilities of -inf beside the target's must not turn into NaN.
TEST(LossFunctions, CategoricalCrossEntropyOfImpossibleClasses) {
  const double inf = std::numeric_limits<double>::infinity();
  const Variable x(Tensor::fromVector(Shape({2, 2}), std::vector<double>{-inf, 0, -1, -inf}),
                   false);
  expectNear(
      valuesOf(categoricalCrossEntropy(x, targetsOf({2}, {1, 0}), ReduceMode::NONE).tensor()),
      {0, 1}, 0);
}

// A target that is no class, and not the ignored one, is an error of whatever reads the loss.
TEST(LossFunctions, CategoricalCrossEntropyOfBadTargets) {
  for (int bad : {-1, 2, 1000}) {
    SCOPED_TRACE(bad);
    Variable x(Tensor::fromVector(Shape({2, 2}), std::vector<double>{-1, -2, -3, -4}), true);
    const Variable y = targetsOf({2}, {1, bad});
    std::string error, line;
    try {
      line = std::to_string(__LINE__ + 1);
      const Variable loss = categoricalCrossEntropy(x, y, ReduceMode::SUM, /*ignoreIndex=*/-2);
      valuesOf(loss.tensor());
    } catch (const std::invalid_argument& thrown) {
      error = thrown.what();
    }
    EXPECT_EQ(error, "categoricalCrossEntropy: f64[2,2]: " + std::to_string(bad) +
                         " is out of range for dimension 0 of 2 elements, at "
                         "tests/autograd/LossFunctionsTest.cpp:" +
                         line);
    // What was not bad is not lost.
    expectNear(valuesOf((x + 1.0).tensor()), {0, -1, -2, -3}, 0);
  }
}

// A mean of nothing is NaN, and the gradient of what does not count is 0.
TEST(LossFunctions, IgnoredTargetsHaveNoGradient) {
  const Variable targets = targetsOf({2}, {-1, -1}), mixed = targetsOf({2}, {-1, 1});
  const Variable weight(full({3}, 1.0, dtype::f64), false);
  const auto gradient = [](const std::function<Variable(const Variable&)>& loss) {
    Variable x(randomTensor({3, 2}), true);
    Variable value = loss(x);
    value.backward();
    EXPECT_TRUE(std::isnan(valuesOf(value.tensor())[0]));
    return valuesOf(x.grad().tensor());
  };
  const std::vector<double> none(6, 0);
  expectNear(gradient([&](const Variable& x) {
               return categoricalCrossEntropy(x, targets, ReduceMode::MEAN, -1);
             }),
             none, 0, 1);
  expectNear(gradient([&](const Variable& x) {
               return weightedCategoricalCrossEntropy(x, targets, weight, -1);
             }),
             none, 0, 1);
  const Variable counts(Tensor::fromVector(std::vector<double>{0, 1}), false);
  expectNear(gradient([&](const Variable& x) {
               return categoricalCrossEntropy(x, mixed, ReduceMode::NONE, -1) / counts;
             }),
             {0, 0, 0, 0, -1, 0}, 0);
}

TEST(LossFunctions, CategoricalCrossEntropyTakesAnyTargetType) {
  const Variable x(Tensor::fromVector(Shape({2, 2}), std::vector<float>{-1, -2, -3, -4}), false);
  const Tensor y = Tensor::fromVector(std::vector<int>{1, 0});
  for (dtype type : {dtype::u8, dtype::s16, dtype::s32, dtype::s64, dtype::u32, dtype::f32}) {
    SCOPED_TRACE(dtypeToString(type));
    const Variable loss = categoricalCrossEntropy(x, Variable(y.astype(type), false));
    EXPECT_EQ(loss.type(), dtype::f32);
    EXPECT_EQ(loss.scalar<float>(), 2.5f);
  }
}

// More classes than u8 counts.
TEST(LossFunctions, CategoricalCrossEntropyOfManyClasses) {
  const Variable x(full(Shape({300, 1}), -2.0), false);
  const Variable y(Tensor::fromVector(std::vector<unsigned char>{44}), false);
  EXPECT_EQ(categoricalCrossEntropy(x, y).scalar<float>(), 2.0f);
}

TEST(LossFunctions, CategoricalCrossEntropyMisuse) {
  const Variable x(randomTensor({2, 3}), false);
  EXPECT_NE(
      errorOf([&] {
        categoricalCrossEntropy(x, targetsOf({1, 3}, {0, 0, 0}));
      }).find("targets s32[1,3] do not fit input f64[2,3]: they must have one dimension less"),
      std::string::npos);
  EXPECT_NE(errorOf([&] {
              categoricalCrossEntropy(x, targetsOf({2}, {0, 0}));
            }).find("dimension 0 must be the input's dimension 1"),
            std::string::npos);
}

TEST(LossFunctions, CategoricalCrossEntropyOfNoReduceMode) {
  const Variable x(full({2, 3}, 1.0), false);
  const std::string message = errorOf(
      [&] { categoricalCrossEntropy(x, targetsOf({3}, {0, 1, 0}), static_cast<ReduceMode>(3)); });
  EXPECT_EQ(message.rfind("categoricalCrossEntropy: 3 is no ReduceMode, at tests/autograd/", 0), 0u)
      << message;
}

TEST(LossFunctions, WeightedCategoricalCrossEntropy) {
  const Variable x(Tensor::fromVector(Shape({2, 3}), std::vector<double>{-1, -2, -3, -5, -8, -13}),
                   false);
  const Variable weight(Tensor::fromVector(std::vector<double>{0.5, 2}), false);
  const auto loss = [&](std::vector<int> targets, int ignored) {
    const Variable y =
        weightedCategoricalCrossEntropy(x, targetsOf({3}, std::move(targets)), weight, ignored);
    EXPECT_EQ(y.shape(), Shape());
    return valuesOf(y.tensor())[0];
  };
  EXPECT_NEAR(loss({0, 1, 0}, -1), (0.5 * 1 + 2 * 5 + 0.5 * 8) / 3, 1e-15);
  EXPECT_NEAR(loss({0, 1, 0}, 1), (0.5 * 1 + 0.5 * 8) / 1, 1e-15);
  EXPECT_NEAR(loss({1, -1, 0}, -1), (2 * 2 + 0.5 * 8) / 2.5, 1e-15);

  const auto check = [](const Shape& shape, const Variable& targets, int ignored) {
    SCOPED_TRACE(shape.toString());
    expectGradients(
        [&](const std::vector<Variable>& v) {
          return weightedCategoricalCrossEntropy(logSoftmax(v[0], 0), targets, v[1], ignored);
        },
        {randomTensor(shape), randomTensor({shape[0]}, 0.5, 2)});
  };
  check({4, 3}, targetsOf({3}, {3, 0, 2}), -1);
  check({4, 3}, targetsOf({3}, {3, 0, 3}), 0);
  check({3, 2, 2}, targetsOf({2, 2}, {0, 1, 1, 1}), 7);
  check({3}, targetsOf({}, {2}), -1);
}

TEST(LossFunctions, WeightedCategoricalCrossEntropyMisuse) {
  const Variable x(randomTensor({2, 3}), false);
  const Variable weight(full(Shape({2}), 1.0), false);
  const std::string name = "weightedCategoricalCrossEntropy: ";
  EXPECT_NE(errorOf([&] {
              weightedCategoricalCrossEntropy(x, targetsOf({2}, {0, 0}), weight, -1);
            }).find(name + "targets s32[2] do not fit input f64[2,3]: dimension 0 must be"),
            std::string::npos);
  EXPECT_NE(errorOf([&] {
              weightedCategoricalCrossEntropy(x, targetsOf({3}, {0, 0, 0}), x, -1);
            }).find(name + "weight f64[2,3] does not fit input f64[2,3]: it must have shape (2)"),
            std::string::npos);
  const std::string message = errorOf([&] {
    valuesOf(weightedCategoricalCrossEntropy(x, targetsOf({3}, {0, 2, 0}), weight, -1).tensor());
  });
  // Whichever is computed first, the loss or the weight, says so.
  EXPECT_NE(message.find(name + "f"), std::string::npos) << message;
  EXPECT_NE(message.find("2 is out of range for dimension 0 of 2 elements"), std::string::npos)
      << message;
}

}  // namespace
}  // namespace fl::test
