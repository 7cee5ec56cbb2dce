// Products of f64 matrices, which oneDNN does not have: blocks of the results, each made by a
// thread from copies of what it takes.
#include <algorithm>

#include "fl/library/DoubleProduct.h"
#include "fl/library/MatmulShape.h"
#include "fl/library/OneDnn.h"
#include "fl/tile/HostTarget.h"

namespace fl::library {

namespace {

// Most rows and columns of a block, whose factors stay in the second-level cache.
constexpr int64_t kMostSize = 264;
// Floating-point operations worth a thread.
constexpr double kWorkPerRange = 1e6;
// Ranges of the loop: a bound on scratch memory.
constexpr int64_t kMaxRanges = 16;

// Equal blocks along a side, of whole tiles but the last.
int64_t blockSize(int64_t extent, int64_t unit, int64_t blocks) {
  return ceilDiv(ceilDiv(extent, blocks), unit) * unit;
}

class DoubleMatmul final : public LibraryFunction {
 public:
  DoubleMatmul(const MatmulShape& shape, bool swaps)
      : shape_(shape),
        swaps_(swaps),
        rows_(blockSize(shape.m, DoubleProduct::kRows, ceilDiv(shape.m, kMostSize))),
        columns_(blockSize(shape.n, DoubleProduct::kColumns, columnBlocks(shape))),
        multiply_(tile::hostTarget().vectorBits >= 512 ? v4::multiply : v3::multiply) {
    rowBlocks_ = ceilDiv(shape.m, rows_);
    columnBlocks_ = ceilDiv(shape.n, columns_);
    items_ = rowBlocks_ * columnBlocks_ * shape.batch;
    const double work = shape.work() * static_cast<double>(shape.batch);
    const double ranges = std::min<double>(work / kWorkPerRange, kMaxRanges);
    grain_ = ceilDiv(items_, std::max<int64_t>(1, static_cast<int64_t>(ranges)));
    ScratchLayout range;
    range.add(
        DoubleProduct::copied(std::min(rows_, shape.m), std::min(columns_, shape.n), shape.k) *
        sizeof(double));
    scratchPerRange_ = range.bytes();
  }

  size_t scratchBytes() const override { return scratchPerRange_ * ceilDiv(items_, grain_); }
  std::string implementation() const override { return "blocks"; }

  void run(void* const* operands, void* result, void* scratch,
           host::ThreadPool& pool) const override {
    pool.parallelFor(items_, grain_, [&](int64_t begin, int64_t end) {
      void* copy = at(scratch, scratchPerRange_ * (begin / grain_));
      for (int64_t item = begin; item < end; ++item)
        runItem(item, static_cast<const double*>(operands[swaps_ ? 1 : 0]),
                static_cast<const double*>(operands[swaps_ ? 0 : 1]), static_cast<double*>(result),
                static_cast<double*>(copy));
    });
  }

 private:
  // Two threads share a single block's columns.
  static int64_t columnBlocks(const MatmulShape& shape) {
    const bool isShared =
        shape.batch == 1 && shape.m <= kMostSize && shape.work() > 2 * kWorkPerRange;
    return std::max<int64_t>(ceilDiv(shape.n, kMostSize), isShared ? 2 : 1);
  }

  void runItem(int64_t item, const double* lhs, const double* rhs, double* out,
               double* copy) const {
    const int64_t row = item % rowBlocks_ * rows_;
    const int64_t column = item / rowBlocks_ % columnBlocks_ * columns_;
    const int64_t batch = item / (rowBlocks_ * columnBlocks_);
    DoubleProduct product{
        .lhs = lines(lhs + batch * shape_.lhsStep, !shape_.transposeLhs, shape_.m),
        .rhs = lines(rhs + batch * shape_.rhsStep, shape_.transposeRhs, shape_.n),
        .k = shape_.k,
        .out = out + (batch * shape_.n + column) * shape_.m + row,
        .outLeading = shape_.m,
        .copy = copy};
    take(&product.lhs, row, rows_);
    take(&product.rhs, column, columns_);
    multiply_(product);
  }

  // Of a matrix in which neighbours of a line lie side by side, or those of the same line do.
  Factor lines(const double* matrix, bool across, int64_t count) const {
    return {matrix, count, across ? 1 : shape_.k, across ? count : 1};
  }

  static void take(Factor* factor, int64_t first, int64_t count) {
    factor->data += first * factor->step;
    factor->count = std::min(count, factor->count - first);
  }

  const MatmulShape shape_;
  const bool swaps_;              // the operands
  const int64_t rows_, columns_;  // of a block
  void (*const multiply_)(const DoubleProduct&);
  int64_t rowBlocks_, columnBlocks_, items_, grain_;
  size_t scratchPerRange_;
};

}  // namespace

std::shared_ptr<LibraryFunction> prepareDoubleMatmul(const MatmulShape& shape) {
  // A matrix times a vector is taken the way round in which the matrix is not copied.
  const bool swaps = (shape.n == 1 && shape.transposeLhs) || (shape.m == 1 && shape.transposeRhs);
  if (!swaps) return std::make_shared<DoubleMatmul>(shape, false);
  return std::make_shared<DoubleMatmul>(MatmulShape{.m = shape.n,
                                                    .n = shape.m,
                                                    .k = shape.k,
                                                    .batch = shape.batch,
                                                    .transposeLhs = false,
                                                    .transposeRhs = false,
                                                    .lhsStep = shape.rhsStep,
                                                    .rhsStep = shape.lhsStep},
                                        true);
}

}  // namespace fl::library
