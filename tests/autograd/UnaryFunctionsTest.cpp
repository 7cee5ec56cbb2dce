// Elementwise functions of one Variable: values against the C library, gradients against
// differences.
#include <cmath>

#include "fl/autograd/Functions.h"
#include "tests/autograd/GradientCheck.h"

namespace fl::test {
namespace {

struct Row {
  const char* name;
  Variable (*function)(const Variable&);
  double (*reference)(double);
  double low;
  double high;
};

double geluReference(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

const Row kRows[] = {
    {"negate", negate, [](double x) { return -x; }, -2, 2},
    {"reciprocal", reciprocal, [](double x) { return 1 / x; }, 0.5, 2},
    {"reciprocal of negatives", reciprocal, [](double x) { return 1 / x; }, -2, -0.5},
    {"exp", exp, [](double x) { return std::exp(x); }, -2, 2},
    {"log", log, [](double x) { return std::log(x); }, 0.5, 3},
    {"log1p", log1p, [](double x) { return std::log1p(x); }, -0.5, 3},
    {"sin", sin, [](double x) { return std::sin(x); }, -4, 4},
    {"cos", cos, [](double x) { return std::cos(x); }, -4, 4},
    {"sqrt", sqrt, [](double x) { return std::sqrt(x); }, 0.5, 3},
    {"tanh", tanh, [](double x) { return std::tanh(x); }, -2, 2},
    {"sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -3, 3},
    {"erf", erf, [](double x) { return std::erf(x); }, -2, 2},
    {"abs above", abs, [](double x) { return std::abs(x); }, 0.1, 2},
    {"abs below", abs, [](double x) { return std::abs(x); }, -2, -0.1},
    {"relu above", relu, [](double x) { return x; }, 0.1, 2},
    {"relu below", relu, [](double) { return 0.0; }, -2, -0.1},
    {"gelu", gelu, geluReference, -3, 3},
    {"exactGelu", exactGelu, [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2)); }, -3,
     3},
    {"swish", [](const Variable& x) { return swish(x, 1.5); },
     [](double x) { return x / (1 + std::exp(-1.5 * x)); }, -3, 3},
    {"pow 2", [](const Variable& x) { return pow(x, 2); }, [](double x) { return x * x; }, -2, 2},
    {"pow 3", [](const Variable& x) { return pow(x, 3); }, [](double x) { return x * x * x; }, -2,
     2},
    {"pow 0", [](const Variable& x) { return pow(x, 0); }, [](double) { return 1.0; }, -2, 2},
    {"pow 1", [](const Variable& x) { return pow(x, 1); }, [](double x) { return x; }, 0.5, 2},
    {"pow 0.5", [](const Variable& x) { return pow(x, 0.5); },
     [](double x) { return std::sqrt(x); }, 0.5, 2},
    {"pow -1", [](const Variable& x) { return pow(x, -1); }, [](double x) { return 1 / x; }, 0.5,
     2},
    {"pow 1.7", [](const Variable& x) { return pow(x, 1.7); },
     [](double x) { return std::pow(x, 1.7); }, 0.5, 2},
    {"clamp inside", [](const Variable& x) { return clamp(x, -0.1, 0.7); },
     [](double x) { return x; }, 0, 0.6},
    {"clamp above", [](const Variable& x) { return clamp(x, -0.1, 0.7); },
     [](double) { return 0.7; }, 0.8, 2},
    {"clamp below", [](const Variable& x) { return clamp(x, -0.1, 0.7); },
     [](double) { return -0.1; }, -2, -0.2},
    {"+ number", [](const Variable& x) { return x + 0.3; }, [](double x) { return x + 0.3; }, -2,
     2},
    {"number +", [](const Variable& x) { return 0.3 + x; }, [](double x) { return 0.3 + x; }, -2,
     2},
    {"- number", [](const Variable& x) { return x - 0.3; }, [](double x) { return x - 0.3; }, -2,
     2},
    {"number -", [](const Variable& x) { return 0.3 - x; }, [](double x) { return 0.3 - x; }, -2,
     2},
    {"* number", [](const Variable& x) { return x * 0.3; }, [](double x) { return x * 0.3; }, -2,
     2},
    {"number *", [](const Variable& x) { return 0.3 * x; }, [](double x) { return 0.3 * x; }, -2,
     2},
    {"/ number", [](const Variable& x) { return x / 0.3; }, [](double x) { return x / 0.3; }, -2,
     2},
    {"number /", [](const Variable& x) { return 0.3 / x; }, [](double x) { return 0.3 / x; }, 0.5,
     2},
    {"max with smaller number", [](const Variable& x) { return max(x, 0.3); },
     [](double x) { return x; }, 0.4, 2},
    {"max with larger number", [](const Variable& x) { return max(0.3, x); },
     [](double) { return 0.3; }, -2, 0.2},
    {"min with larger number", [](const Variable& x) { return min(x, 0.3); },
     [](double x) { return x; }, -2, 0.2},
    {"min with smaller number", [](const Variable& x) { return min(0.3, x); },
     [](double) { return 0.3; }, 0.4, 2},
};

TEST(UnaryFunctions, ValuesAndGradients) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    const Tensor input = randomTensor({3, 5}, row.low, row.high);
    std::vector<double> expected = valuesOf(input);
    for (double& value : expected) {
      value = row.reference(value);
    }
    const Variable result = row.function(Variable(input, false));
    EXPECT_EQ(result.shape(), Shape({3, 5}));
    EXPECT_EQ(result.type(), dtype::f64);
    expectNear(valuesOf(result.tensor()), expected, 1e-7);
    expectGradients([&](const std::vector<Variable>& v) { return row.function(v[0]); }, {input});
  }
}

TEST(UnaryFunctions, OddShapes) {
  const Shape shapes[] = {{}, {1}, {7}, {1, 1}, {2, 1, 3}, {2, 3, 2, 2}};
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(shape.toString());
    expectGradients([](const std::vector<Variable>& v) { return tanh(v[0]) * 2.0; },
                    {randomTensor(shape)});
  }
}

TEST(UnaryFunctions, KeepTheDtype) {
  for (dtype type : {dtype::f16, dtype::f32, dtype::f64}) {
    SCOPED_TRACE(dtypeToString(type));
    for (const Row& row : kRows) {
      SCOPED_TRACE(row.name);
      Variable x(full(Shape({2}), 0.5, type), true);
      Variable y = row.function(x);
      EXPECT_EQ(y.type(), type);
      y.backward();
      EXPECT_EQ(x.grad().type(), type);
    }
  }
}

// At a tie nothing flows: relu(0), |0|, a limit of clamp, max(x, x's value).
TEST(UnaryFunctions, GradientsAtTies) {
  const auto gradientAt = [](double value, const std::function<Variable(const Variable&)>& f) {
    Variable x(full(Shape({1}), value, dtype::f64), true);
    f(x).backward();
    return valuesOf(x.grad().tensor())[0];
  };
  EXPECT_EQ(gradientAt(0, relu), 0);
  EXPECT_EQ(gradientAt(0, static_cast<Variable (*)(const Variable&)>(abs)), 0);
  EXPECT_EQ(gradientAt(1, [](const Variable& x) { return clamp(x, -1, 1); }), 0);
  EXPECT_EQ(gradientAt(0.5, [](const Variable& x) { return max(x, 0.5); }), 0);
  EXPECT_EQ(gradientAt(0, [](const Variable& x) { return pow(x, 0); }), 0);
}

// Where no gradient comes through, what it would be does not matter.
TEST(UnaryFunctions, InfiniteGradientsStop) {
  const auto gradient = [](const std::function<Variable(const Variable&)>& f) {
    Variable x(Tensor::fromVector(std::vector<double>{-1, 0.25, 0.5, 2}), true);
    f(x).backward();
    return valuesOf(x.grad().tensor());
  };
  const double half = std::sqrt(0.5), third = std::sqrt(0.125);
  const std::vector<double> ofRoot = {0, 1, half, third};
  expectNear(gradient([](const Variable& x) { return log(clamp(x, 0, 1)); }), {0, 4, 2, 0}, 0);
  expectNear(gradient([](const Variable& x) { return sqrt(relu(x)); }), ofRoot, 1e-15);
  expectNear(gradient([](const Variable& x) { return sqrt(max(x, 0.0)); }), ofRoot, 1e-15);
  const Variable zeros(full({4}, 0.0, dtype::f64), false);
  expectNear(gradient([&](const Variable& x) { return sqrt(max(x, zeros)); }), ofRoot, 1e-15);
  expectNear(gradient([](const Variable& x) { return sqrt(2.0 - min(x, 2.0)); }),
             {-0.5 / std::sqrt(3), -0.5 / std::sqrt(1.75), -0.5 / std::sqrt(1.5), 0}, 1e-15);
}

TEST(UnaryFunctions, PowersOfIntegers) {
  const Variable x(Tensor::fromVector(std::vector<int>{1, 4, 9}), false);
  expectNear(valuesOf(pow(x, 0.3).tensor()), {1, std::pow(4, 0.3), std::pow(9, 0.3)}, 1e-6);
  expectNear(valuesOf(pow(x, 2).tensor()), {1, 16, 81}, 0);
}

TEST(UnaryFunctions, ClampOfIntegersIsOfFloats) {
  for (const dtype type : {dtype::s32, dtype::u8, dtype::s64, dtype::b8}) {
    const Variable x(Tensor::fromVector(std::vector<int>{0, 1, 2, 3}).astype(type), false);
    const Variable y = clamp(x, 0.5, 2.5);
    EXPECT_EQ(y.type(), dtype::f32);
    const bool isTruth = type == dtype::b8;
    expectNear(valuesOf(y.tensor()), {0.5, 1, isTruth ? 1.0 : 2, isTruth ? 1.0 : 2.5}, 0);
  }
}

// Where a square of the input is no finite number, but the gradient is.
// They are rounded once: small differences of numbers near 1 keep their digits.
TEST(UnaryFunctions, GeluOf16BitFloats) {
  for (const dtype type : {dtype::f16, dtype::bf16}) {
    for (const double x : {-3.0, -2.0, -1.0, 0.5, 3.0}) {
      Variable input(full({1}, x, type), true);
      Variable result = gelu(input);
      result.backward();
      EXPECT_EQ(result.type(), type);
      EXPECT_EQ(input.grad().type(), type);
      const double slope = (geluReference(x + 1e-5) - geluReference(x - 1e-5)) / 2e-5;
      const double unit = type == dtype::f16 ? 0x1p-10 : 0x1p-8;
      EXPECT_NEAR(valuesOf(result.tensor())[0], geluReference(x),
                  unit * std::fabs(geluReference(x)));
      EXPECT_NEAR(valuesOf(input.grad().tensor())[0], slope, unit * std::fabs(slope));
    }
  }
}

TEST(UnaryFunctions, GradientsOfLargeHalves) {
  for (const double sign : {-1.0, 1.0}) {
    Variable x(full(Shape({1}), sign * 300, dtype::f16), true);
    for (const auto function : {gelu, exactGelu}) {
      function(x).backward();
      EXPECT_EQ(x.grad().tensor().astype(dtype::f32).scalar<float>(), sign > 0 ? 1 : 0);
      x.zeroGrad();
    }
    (1.0 / x).backward();
    EXPECT_NEAR(x.grad().tensor().astype(dtype::f32).scalar<float>(), -1.0 / 90000, 6e-8);
  }
}

}  // namespace
}  // namespace fl::test
