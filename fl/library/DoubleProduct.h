// Products of f64 matrices, in blocks. The file is built twice, for AVX2 and for AVX-512; both give
// the same bits: an element's products are added up by fused operations in order of k, for kDepth
// of them at a time, and these sums are added up in order, too. Private to this folder.
#pragma once

#include <cstdint>

namespace fl::library {

// Rows of the lhs or columns of the rhs: `count` of them, `step` elements apart; elements of one
// are `next` apart.
struct Factor {
  const double* data;
  int64_t count, step, next;
};

struct DoubleProduct {
  static constexpr int64_t kDepth = 256;
  // Counts that need no padding.
  static constexpr int64_t kRows = 24, kColumns = 8;
  // Elements to which a block's factors are copied.
  static int64_t copied(int64_t rows, int64_t columns, int64_t k);

  Factor lhs, rhs;
  int64_t k;
  double* out;  // column-major
  int64_t outLeading;
  double* copy;  // 64-byte aligned
};

namespace v3 {
void multiply(const DoubleProduct& product);
}
namespace v4 {
void multiply(const DoubleProduct& product);
}

inline int64_t DoubleProduct::copied(int64_t rows, int64_t columns, int64_t k) {
  const auto padded = [](int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; };
  return (padded(rows, kRows) + padded(columns, kColumns)) * (k < kDepth ? k : kDepth);
}

}  // namespace fl::library
