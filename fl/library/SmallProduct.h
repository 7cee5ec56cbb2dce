// Loops for small products of f32 matrices, for AVX2, which all that runs here has. Private to this
// folder; SmallMatmul.cpp is the user.
#pragma once

#include <cstdint>

namespace fl::library {

// (m, k) x (k, n), column-major; a transposed operand lies as its transpose.
struct SmallProduct {
  int64_t m, n, k;
  bool transposeLhs, transposeRhs;
  // Elements from one product's operands to the next one's.
  int64_t lhsStep, rhsStep;

  // What it takes, about a nanosecond each.
  int64_t steps() const;
  // An operand has at most so many elements for each step, and the result fewer.
  static constexpr int64_t kElementsOfStep = 8;

  // So many products. `copy` has room for the lhs of one.
  void run(const float* lhs, const float* rhs, float* out, int64_t count, float* copy) const;

 private:
  void multiply(const float* lhs, const float* rhs, float* out) const;
  bool hasDots() const;
  float dot(const float* lhs, const float* rhs) const;
  template <int64_t columns>
  void multiplyColumns(const float* lhs, const float* rhs, float* out) const;
  template <int64_t columns, class T>
  void sum(const float* lhs, const float* rhs, float* out) const;
};

}  // namespace fl::library
