// Products and reductions are as precise as their dtype says, however long: f32 means f32 at least,
// and 16-bit ones are added up in it and rounded at the end. Held against sums in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "fl/tensor/tensor.h"

namespace fl {
namespace {

constexpr Dim kRows = 16, kColumns = 24;

// The product of (kRows, depth) and (depth, kColumns), column-major.
std::vector<double> productInDouble(const Tensor& x, const Tensor& y, Dim depth) {
  const auto a = x.astype(dtype::f64).toHostVector<double>();
  const auto b = y.astype(dtype::f64).toHostVector<double>();
  std::vector<double> product(kRows * kColumns);
  for (Dim j = 0; j < kColumns; ++j) {
    for (Dim k = 0; k < depth; ++k) {
      for (Dim i = 0; i < kRows; ++i) {
        product[i + kRows * j] += a[i + kRows * k] * b[k + depth * j];
      }
    }
  }
  return product;
}

double norm(const std::vector<double>& values) {
  double squares = 0;
  for (double value : values) {
    squares += value * value;
  }
  return std::sqrt(squares);
}

// The norm of the error of a product over that of the product.
double relativeError(dtype type, Dim depth) {
  const Tensor x = randn({kRows, depth}).astype(type), y = randn({depth, kColumns}).astype(type);
  const std::vector<double> expected = productInDouble(x, y, depth);
  std::vector<double> error = matmul(x, y).astype(dtype::f64).toHostVector<double>();
  for (size_t i = 0; i < error.size(); ++i) {
    error[i] -= expected[i];
  }
  return norm(error) / norm(expected);
}

TEST(Precision, OfProducts) {
  setSeed(1);
  for (Dim depth : {1, 3, 64, 511, 4096}) {
    EXPECT_LE(relativeError(dtype::f32, depth), 1e-6) << depth;
    // Half a unit in the last place each: nothing is rounded on the way.
    EXPECT_LE(relativeError(dtype::f16, depth), std::ldexp(1, -11)) << depth;
    EXPECT_LE(relativeError(dtype::bf16, depth), std::ldexp(1, -8)) << depth;
  }
}

// Whole rows, whole columns, and axes on both sides of a kept one.
const std::vector<std::pair<Shape, std::vector<int>>> kLongReductions = {
    {{1 << 20}, {}},
    {{40000, 3}, {0}},
    {{3, 70000}, {1}},
    {{100, 3, 2000}, {0, 2}},
    {{3, 2, 40000}, {0, 2}},
    {{28, 28, 2, 200}, {0, 1, 3}},
    {{28, 3, 28, 2, 90}, {0, 2, 4}},
    {{5, 13, 2, 9000}, {1, 3}},
};

// The largest relative error of `actual`, if its elements should be `expected`.
double relativeError(const Tensor& actual, double expected) {
  double error = 0;
  for (double value : actual.astype(dtype::f64).toHostVector<double>()) {
    error = std::max(error, std::abs(value / expected - 1));
  }
  return error;
}

// Equal numbers are the worst case: every rounding of a sum errs to the same side.
TEST(Precision, OfLongSumsOfAConstant) {
  for (const auto& [shape, axes] : kLongReductions) {
    for (const float value : {0.1f, 0.7f, 1000.1f}) {
      const Tensor x = full(shape, value, dtype::f32);
      const Tensor total = sum(x, axes);
      const double count = static_cast<double>(x.elements() / total.elements());
      EXPECT_LE(relativeError(total, count * value), 2e-6) << shape << value;
      EXPECT_LE(relativeError(mean(x, axes), value), 2e-6) << shape << value;
    }
  }
}

TEST(Precision, OfLongVariancesFarFromZero) {
  setSeed(2);
  for (const auto& [shape, axes] : kLongReductions) {
    const Tensor x = 1000 + rand(shape), exact = x.astype(dtype::f64);
    const auto error = [](const Tensor& actual, const Tensor& expected) {
      return relativeError(actual.astype(dtype::f64) / expected, 1);
    };
    EXPECT_LE(error(mean(x, axes), mean(exact, axes)), 1e-6) << shape;
    EXPECT_LE(error(var(x, axes), var(exact, axes)), 1e-4) << shape;
    EXPECT_LE(error(std(x, axes), std(exact, axes)), 1e-4) << shape;
  }
}

}  // namespace
}  // namespace fl
