// Products are as precise as their dtype says: f32 means f32, and 16-bit ones are added up in f32
// and rounded once. Held against sums in double.
#include <gtest/gtest.h>

#include <cmath>
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

}  // namespace
}  // namespace fl
