// Functions of two Variables: values, gradients, broadcasting, dtypes.
#include <cmath>

#include "fl/autograd/Functions.h"
#include "tests/autograd/GradientCheck.h"

namespace fl::test {
namespace {

using Binary = Variable (*)(const Variable&, const Variable&);

struct Row {
  const char* name;
  Binary function;
  double (*reference)(double, double);
};

const Row kRows[] = {
    {"+", [](const Variable& x, const Variable& y) { return x + y; },
     [](double x, double y) { return x + y; }},
    {"-", [](const Variable& x, const Variable& y) { return x - y; },
     [](double x, double y) { return x - y; }},
    {"*", [](const Variable& x, const Variable& y) { return x * y; },
     [](double x, double y) { return x * y; }},
    {"/", [](const Variable& x, const Variable& y) { return x / y; },
     [](double x, double y) { return x / y; }},
    {"max", max, [](double x, double y) { return std::max(x, y); }},
    {"min", min, [](double x, double y) { return std::min(x, y); }},
};

TEST(BinaryFunctions, ValuesAndGradients) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    const Tensor x = randomTensor({4, 3}, 0.5, 2);
    const Tensor y = randomTensor({4, 3}, 0.5, 2);
    const std::vector<double> xs = valuesOf(x);
    const std::vector<double> ys = valuesOf(y);
    std::vector<double> expected(xs.size());
    for (size_t i = 0; i < xs.size(); ++i) {
      expected[i] = row.reference(xs[i], ys[i]);
    }
    const Variable result = row.function(Variable(x, false), Variable(y, false));
    expectNear(valuesOf(result.tensor()), expected, 1e-12);
    expectGradients([&](const std::vector<Variable>& v) { return row.function(v[0], v[1]); },
                    {x, y});
  }
}

TEST(BinaryFunctions, BroadcastFromTheFirstDimension) {
  const std::pair<Shape, Shape> shapes[] = {
      {{4, 3}, {4}},                      // a missing trailing dimension
      {{4, 3}, {1, 3}},                   // a dimension of 1
      {{4, 1}, {1, 3}},                   // both sides expand
      {{2, 1, 3}, {2, 5, 1}}, {{3}, {}},  // a scalar
      {{}, {2, 2}},           {{2, 3, 2, 2}, {1, 1, 2, 1}},
  };
  for (const auto& [left, right] : shapes) {
    for (const Row& row : kRows) {
      SCOPED_TRACE(std::string(row.name) + " of " + left.toString() + " and " + right.toString());
      expectGradients([&](const std::vector<Variable>& v) { return row.function(v[0], v[1]); },
                      {randomTensor(left, 0.5, 2), randomTensor(right, 2.5, 4)});
    }
  }
}

TEST(BinaryFunctions, OneVariableTwice) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    if (row.function == static_cast<Binary>(max) || row.function == static_cast<Binary>(min)) {
      continue;  // not smooth where both are equal
    }
    expectGradients([&](const std::vector<Variable>& v) { return row.function(v[0], v[0] * 2.0); },
                    {randomTensor({5}, 0.5, 2)});
  }
}

// Where both are equal, all of the gradient goes to the second.
TEST(BinaryFunctions, MaxAndMinOfEqualValues) {
  for (Binary function : {static_cast<Binary>(max), static_cast<Binary>(min)}) {
    Variable x(full(Shape({2}), 1.5, dtype::f64), true);
    Variable y(full(Shape({2}), 1.5, dtype::f64), true);
    function(x, y).backward();
    expectNear(valuesOf(x.grad().tensor()), {0, 0}, 0);
    expectNear(valuesOf(y.grad().tensor()), {1, 1}, 0);
  }
}

TEST(BinaryFunctions, OnlyTheWantedGradient) {
  Variable x(randomTensor({3}), true);
  Variable y(randomTensor({3}), false);
  (x * y).backward();
  expectNear(valuesOf(x.grad().tensor()), valuesOf(y.tensor()), 0);
  EXPECT_FALSE(y.isGradAvailable());
}

TEST(BinaryFunctions, Comparisons) {
  Variable x(Tensor::fromVector(std::vector<float>{1, 2, 3}), true);
  Variable y(Tensor::fromVector(std::vector<float>{2, 2, 2}), true);
  const auto check = [](const Variable& result, dtype type, std::vector<double> expected) {
    EXPECT_EQ(result.type(), type);
    EXPECT_FALSE(result.isCalcGrad());
    expectNear(valuesOf(result.tensor()), expected, 0);
  };
  check(x > y, dtype::b8, {0, 0, 1});
  check(x >= y, dtype::b8, {0, 1, 1});
  check(x < y, dtype::b8, {1, 0, 0});
  check(x <= y, dtype::b8, {1, 1, 0});
  check(x > 2.0, dtype::f32, {0, 0, 1});
  check(x >= 2.0, dtype::f32, {0, 1, 1});
  check(x < 2.0, dtype::f32, {1, 0, 0});
  check(2.0 >= x, dtype::f32, {1, 1, 0});
  check(2.0 > x, dtype::f32, {1, 0, 0});
  check((x > y) && (x >= y), dtype::b8, {0, 0, 1});
  check(!(x > y), dtype::b8, {1, 1, 0});
}

TEST(BinaryFunctions, DifferentTypesAreNamed) {
  const Variable x(full(Shape({2}), 1.0, dtype::f32), true);
  const Variable y(full(Shape({2}), 1.0, dtype::f64), true);
  const std::string message = errorOf([&] { x + y; });
  EXPECT_NE(message.find("operator+: Variables of different types, f32[2] and f64[2]"),
            std::string::npos)
      << message;
  EXPECT_NE(errorOf([&] { max(x, y); }).find("max: "), std::string::npos);
  EXPECT_NE(errorOf([&] { (void)(x > y); }).find("operator>: "), std::string::npos);
}

}  // namespace
}  // namespace fl::test
