// A matrix product as library functions see it. Private to this folder.
#pragma once

#include <cstdint>
#include <memory>

#include "fl/library/Functions.h"

namespace fl::library {

struct MatmulShape {
  int64_t m, n, k, batch;
  bool transposeLhs, transposeRhs;
  // Elements from one batch to the next; 0 repeats a matrix.
  int64_t lhsStep, rhsStep;
  int64_t lhsGap = 0;  // elements between its columns

  // Row lengths of the operands in memory.
  int64_t lhsLeading() const { return (transposeLhs ? k : m) + lhsGap; }
  int64_t rhsLeading() const { return transposeRhs ? n : k; }
  // Floating-point operations of a product; a byte of f32 operands counts as 8 of them.
  double work() const {
    return 2.0 * static_cast<double>(m) * n * k +
           8 * 4 *
               (static_cast<double>(m) * k + static_cast<double>(n) * k +
                static_cast<double>(m) * n);
  }
};

// So small that a call of oneDNN takes longer than the product: made by loops of our own.
bool isSmall(const MatmulShape& shape);
std::shared_ptr<LibraryFunction> prepareSmallMatmul(const MatmulShape& shape, dtype type);
// Of f64.
std::shared_ptr<LibraryFunction> prepareDoubleMatmul(const MatmulShape& shape);

}  // namespace fl::library
