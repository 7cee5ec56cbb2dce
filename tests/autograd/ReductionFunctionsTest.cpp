// Reductions and the functions made of them.
#include <cmath>

#include "fl/autograd/Functions.h"
#include "tests/autograd/GradientCheck.h"

namespace fl::test {
namespace {

const std::vector<std::vector<int>> kAxes = {{}, {0}, {1}, {2}, {0, 1}, {0, 2}, {2, 1}, {0, 1, 2}};

using Reduction = std::function<Variable(const Variable&, const std::vector<int>&, bool)>;

// Over every choice of axes, with and without kept dimensions; the axes need not be sorted nor the
// trailing ones.
void checkAll(const Reduction& f, double low = -1, double high = 1) {
  for (const std::vector<int>& axes : kAxes) {
    for (bool keepDims : {false, true}) {
      std::string name = keepDims ? "keepDims, axes" : "axes";
      for (int axis : axes) {
        name += " " + std::to_string(axis);
      }
      SCOPED_TRACE(name);
      expectGradients([&](const std::vector<Variable>& v) { return f(v[0], axes, keepDims); },
                      {randomTensor({2, 3, 4}, low, high)});
    }
  }
}

Variable small() {
  return Variable(Tensor::fromVector(Shape({2, 3}), std::vector<double>{1, 2, 3, 5, 8, 13}), false);
}

TEST(ReductionFunctions, Sum) {
  expectNear(valuesOf(sum(small(), {0}).tensor()), {3, 8, 21}, 0);
  expectNear(valuesOf(sum(small(), {}).tensor()), {32}, 0);
  EXPECT_EQ(sum(small(), {}).shape(), Shape());
  EXPECT_EQ(sum(small(), {1}, true).shape(), Shape({2, 1}));
  checkAll([](const Variable& x, const std::vector<int>& axes, bool keep) {
    return sum(x, axes, keep);
  });
  checkAll([](const Variable& x, const std::vector<int>& axes, bool keep) {
    return exp(sum(x * x, axes, keep) * 0.1);
  });
}

TEST(ReductionFunctions, Mean) {
  expectNear(valuesOf(mean(small(), {1}).tensor()), {4, 20.0 / 3}, 1e-15);
  checkAll([](const Variable& x, const std::vector<int>& axes, bool keep) {
    return mean(x * x, axes, keep);
  });
}

TEST(ReductionFunctions, Var) {
  // Of 1, 3, 8 and of 2, 5, 13: sums of squared deviations 26 and 194 / 3.
  expectNear(valuesOf(var(small(), {1}, /*isbiased=*/true).tensor()), {26.0 / 3, 194.0 / 9}, 1e-14);
  expectNear(valuesOf(var(small(), {1}).tensor()), {13, 97.0 / 3}, 1e-14);
  for (bool biased : {false, true}) {
    checkAll([biased](const Variable& x, const std::vector<int>& axes, bool keep) {
      return var(x, axes, biased, keep);
    });
  }
  EXPECT_NE(errorOf([] {
              var(sum(small(), {0}, true), {0});
            }).find("var: no unbiased variance of one sample, in f64[1,3]"),
            std::string::npos);
}

TEST(ReductionFunctions, Norm) {
  expectNear(valuesOf(norm(small(), {0}).tensor()),
             {std::sqrt(5.0), std::sqrt(34.0), std::sqrt(233.0)}, 1e-15);
  expectNear(valuesOf(norm(small(), {0}, 1).tensor()), {3, 8, 21}, 1e-15);
  const double inf = std::numeric_limits<double>::infinity();
  for (double p : {0.5, 1.0, 2.0, 3.0, 2.5, inf}) {
    SCOPED_TRACE(p);
    checkAll([p](const Variable& x, const std::vector<int>& axes,
                 bool keep) { return norm(x, axes, p, keep); },
             0.2, 1);
  }
  checkAll([](const Variable& x, const std::vector<int>& axes, bool) { return normalize(x, axes); },
           -1, -0.2);
  // A norm below eps counts as eps.
  for (double eps : {0.1, 100.0}) {
    SCOPED_TRACE(eps);
    expectGradients(
        [eps](const std::vector<Variable>& v) { return normalize(v[0], {2, 0}, 3, eps); },
        {randomTensor({2, 3, 4}, 0.2, 1)});
  }
  // So does that of a line of zeros, whose gradient is finite.
  for (double p : {0.5, 1.0, 2.0, 3.0, inf}) {
    Variable zeros(full({3, 2}, 0.0, dtype::f64), true);
    normalize(zeros, {0}, p, 0.5).backward();
    EXPECT_EQ(valuesOf(zeros.grad().tensor()), std::vector<double>(6, 2)) << p;
    zeros.zeroGrad();
    norm(zeros, {0}, p).backward();
    EXPECT_EQ(valuesOf(zeros.grad().tensor()), std::vector<double>(6, 0)) << p;
  }
  // An element of 0 beside others has none, and equal largest elements share theirs.
  const auto gradientOf = [](const std::vector<double>& elements, double p) {
    Variable x(Tensor::fromVector(elements), true);
    norm(x, {0}, p).backward();
    return valuesOf(x.grad().tensor());
  };
  EXPECT_EQ(gradientOf({0, 4}, 0.5), (std::vector<double>{0, 1}));
  EXPECT_EQ(gradientOf({-3, 2, 3}, inf), (std::vector<double>{-0.5, 0, 0.5}));
  EXPECT_NE(errorOf([] { norm(small(), {0}, 0); }).find("norm: p must be positive, not 0"),
            std::string::npos);
}

TEST(ReductionFunctions, Softmax) {
  const Variable x(Tensor::fromVector(Shape({3, 1}), std::vector<double>{1, 2, 4}), false);
  const double total = std::exp(1) + std::exp(2) + std::exp(4);
  expectNear(valuesOf(softmax(x, 0).tensor()),
             {std::exp(1) / total, std::exp(2) / total, std::exp(4) / total}, 1e-14);
  expectNear(valuesOf(logSoftmax(x, 0).tensor()),
             {1 - std::log(total), 2 - std::log(total), 4 - std::log(total)}, 1e-14);
  for (int dim : {0, 1, 2}) {
    SCOPED_TRACE(dim);
    const Tensor input = randomTensor({3, 4, 2}, -3, 3);
    expectGradients([&](const std::vector<Variable>& v) { return softmax(v[0], dim); }, {input});
    expectGradients([&](const std::vector<Variable>& v) { return logSoftmax(v[0], dim); }, {input});
  }
}

// Whose count's reciprocal is no 16-bit number.
TEST(ReductionFunctions, MeansOfManyHalves) {
  constexpr Dim kCount = 1'300'000;
  Variable x(full({kCount}, 1.0, dtype::f16), true);
  mean(x, {}).backward(Variable(full(Shape(), 32768.0, dtype::f16), false));
  EXPECT_EQ(x.grad().type(), dtype::f16);
  expectNear({x.grad().tensor()(0).asScalar<double>()}, {32768.0 / kCount}, 0x1p-11);
}

// Where the gradient by the norm, or a power of the norm, is no 16-bit number.
TEST(ReductionFunctions, NormsOfSmallHalves) {
  for (const double p : {2.0, 5.0}) {
    Variable x(full({2}, 0.01, dtype::f16), true);
    norm(x, {}, p).backward(Variable(full(Shape(), 1024.0, dtype::f16), false));
    EXPECT_EQ(x.grad().type(), dtype::f16);
    const double expected = 1024 * std::pow(2, (1 - p) / p);
    expectNear(valuesOf(x.grad().tensor()), {expected, expected}, 0x1p-8);
  }
}

TEST(ReductionFunctions, OddShapes) {
  const std::pair<Shape, std::vector<int>> cases[] = {
      {{}, {}}, {{1}, {0}}, {{7}, {0}}, {{1, 3, 1}, {0, 2}}, {{2, 1, 2, 1, 3}, {4, 1}}};
  for (const auto& [shape, axes] : cases) {
    for (bool keepDims : {false, true}) {
      SCOPED_TRACE(shape.toString() + (keepDims ? " kept" : ""));
      expectGradients(
          [&, axes = axes](const std::vector<Variable>& v) {
            return sum(v[0], axes, keepDims) * mean(v[0], axes, keepDims) *
                       norm(v[0], axes, 2, keepDims) +
                   var(v[0], axes, /*isbiased=*/true, keepDims);
          },
          {randomTensor(shape, 0.2, 1)});
    }
  }
  for (const Shape& shape : {Shape({1}), Shape({1, 4}), Shape({17, 1, 3, 1, 2})}) {
    SCOPED_TRACE(shape.toString());
    expectGradients([](const std::vector<Variable>& v) { return softmax(v[0], 0); },
                    {randomTensor(shape)});
    expectGradients([](const std::vector<Variable>& v) { return logSoftmax(v[0], 0); },
                    {randomTensor(shape)});
  }
}

// A scalar is reduced over any axes, as of tensors.
TEST(ReductionFunctions, OfAScalar) {
  const auto gradientOf = [](auto reduce) {
    Variable x(fromScalar(-3.0, dtype::f32), true);
    Variable result = reduce(x);
    EXPECT_EQ(result.shape(), Shape());
    result.backward();
    return std::pair(result.scalar<float>(), x.grad().scalar<float>());
  };
  for (const bool keepDims : {false, true}) {
    EXPECT_EQ(gradientOf([&](auto& x) { return sum(x, {0}, keepDims); }), std::pair(-3.0F, 1.0F));
    EXPECT_EQ(gradientOf([&](auto& x) { return mean(x, {0, 1}, keepDims); }),
              std::pair(-3.0F, 1.0F));
    EXPECT_EQ(gradientOf([&](auto& x) { return var(x, {0}, true, keepDims); }),
              std::pair(0.0F, 0.0F));
    for (const double p : {1.0, 2.0, 3.0, static_cast<double>(INFINITY)}) {
      EXPECT_EQ(gradientOf([&](auto& x) { return norm(x, {0}, p, keepDims); }),
                std::pair(3.0F, -1.0F));
    }
  }
}

TEST(ReductionFunctions, OfIntegersAreFloats) {
  const Variable x(Tensor::fromVector(std::vector<int>{1, 1, 1}), false);
  for (const Variable& result : {softmax(x, 0), logSoftmax(x, 0), norm(x, {0})}) {
    EXPECT_EQ(result.type(), dtype::f32);
  }
  EXPECT_NEAR(norm(x, {0}).scalar<float>(), std::sqrt(3), 1e-6);
  EXPECT_NEAR(softmax(x, 0).tensor()(1).scalar<float>(), 1.0 / 3, 1e-6);
}

TEST(ReductionFunctions, SoftmaxOfLargeValues) {
  const Variable x(Tensor::fromVector(std::vector<float>{1000, 1000, -1000}), false);
  expectNear(valuesOf(softmax(x, 0).tensor()), {0.5, 0.5, 0}, 1e-6);
  expectNear(valuesOf(logSoftmax(x, 0).tensor()), {-std::log(2), -std::log(2), -2000 - std::log(2)},
             1e-6);
}

TEST(ReductionFunctions, SoftmaxOf16BitFloatsIsF32) {
  for (const dtype type : {dtype::f16, dtype::bf16}) {
    Variable x(Tensor::fromVector(std::vector<float>{1, 2, 1}).astype(type), true);
    for (const Variable& result : {softmax(x, 0), logSoftmax(x, 0)}) {
      EXPECT_EQ(result.type(), dtype::f32);
    }
    expectNear(valuesOf(softmax(x, 0).tensor()), {0.2119416, 0.5761169, 0.2119416}, 1e-6);
  }
}

TEST(ReductionFunctions, AxesAreChecked) {
  EXPECT_NE(errorOf([] { sum(small(), {2}); }).find("sum: no dimension 2 in shape (2, 3)"),
            std::string::npos);
  EXPECT_NE(
      errorOf([] { logSoftmax(small(), -1); }).find("logSoftmax: no dimension -1 in f64[2,3]"),
      std::string::npos);
}

}  // namespace
}  // namespace fl::test
