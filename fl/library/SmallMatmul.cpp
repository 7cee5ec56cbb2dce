// Products of small matrices, mostly many of a batch, added up in f32 and rounded once.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <type_traits>

#include "fl/library/MatmulShape.h"
#include "fl/library/OneDnn.h"
#include "fl/library/Widening.h"

namespace fl::library {

namespace {

constexpr int64_t kVector = 4;
using Vector = float __attribute__((vector_size(kVector * sizeof(float))));
using Pair = float __attribute__((vector_size(2 * sizeof(float))));

template <class T>
T load(const float* from) {
  if constexpr (std::is_same_v<T, float>) return *from;
  T vector;
  std::memcpy(&vector, from, sizeof(vector));
  return vector;
}

// Of a product, a nanosecond each: up to kVector rows times up to kVector columns. dnnl_sgemm takes
// 0.1 to 0.3 us before it multiplies.
constexpr int64_t kMostSteps = 320;
// Of sums, and of a product, to begin.
constexpr int64_t kStepsOfSums = 4, kStepsOfProduct = 8;
constexpr int64_t kStepsPerRange = 1 << 14;

// A row times columns: lanes of a vector lie along k.
bool hasDots(const MatmulShape& shape) { return shape.m == 1 && !shape.transposeRhs; }

int64_t stepsOf(const MatmulShape& shape) {
  if (hasDots(shape)) return shape.n * (shape.k / kVector + shape.k % kVector + kStepsOfSums);
  // Of the rows that fill no vector, two are one step.
  const int64_t rows = shape.m / kVector + ceilDiv(shape.m % kVector, 2);
  return ceilDiv(shape.n, kVector) * rows * (shape.k + kStepsOfSums) +
         (shape.transposeLhs ? shape.m * shape.k : 0);
}

// The operands or results of a block of products. No operand of one has more elements than its
// steps have lanes, and no result more than 16 for each 5 of them.
using Block = std::array<float, 2048>;
static_assert(kMostSteps * kVector <= Block().size());

class SmallMatmul final : public PartedFunction {
 public:
  SmallMatmul(const MatmulShape& shape, dtype type)
      : shape_(shape), elementBytes_(static_cast<int64_t>(getTypeSize(type))) {
    if (type != dtype::f32) widening_.emplace(type);
    grain_ = std::min(shape.batch, ceilDiv(kStepsPerRange, stepsOf(shape) + kStepsOfProduct));
    const int64_t most = std::max({shape.m * shape.k, shape.k * shape.n, shape.m * shape.n});
    block_ = static_cast<int64_t>(Block().size()) / most;
  }

  size_t scratchBytes() const override { return 0; }
  std::string implementation() const override { return "loops"; }
  int64_t partElements() const override { return shape_.m * shape_.n; }
  int64_t parts() const override { return ceilDiv(shape_.batch, grain_); }

  void runInParts(void* const* operands, void* result, void* /*scratch*/, host::ThreadPool& pool,
                  PartDone done) const override {
    pool.parallelFor(shape_.batch, grain_, [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; item += block_)
        multiplyBlock(operands, result, item, std::min(block_, end - item));
      done(begin * partElements(), end * partElements());
    });
  }

 private:
  void multiplyBlock(void* const* operands, void* result, int64_t first, int64_t count) const {
    Block lhsCopy, rhsCopy, sums;
    const float* lhs =
        inSingle(lhsCopy, operands[0], first, count, shape_.lhsStep, shape_.m * shape_.k);
    const float* rhs =
        inSingle(rhsCopy, operands[1], first, count, shape_.rhsStep, shape_.k * shape_.n);
    void* out = at(result, first * partElements() * elementBytes_);
    auto* products = widening_ ? sums.data() : static_cast<float*>(out);
    for (int64_t i = 0; i < count; ++i)
      multiply(lhs + i * shape_.lhsStep, rhs + i * shape_.rhsStep, products + i * partElements());
    if (widening_) widening_->narrow(out, products, count * partElements());
  }

  // An operand of `count` products from `first` on, of so many elements each.
  const float* inSingle(Block& copy, void* operand, int64_t first, int64_t count, int64_t step,
                        int64_t elements) const {
    const void* from = at(operand, first * step * elementBytes_);
    if (!widening_) return static_cast<const float*>(from);
    widening_->widen(copy.data(), from, step == 0 ? elements : count * elements);
    return copy.data();
  }

  const float* transposed(Block& copy, const float* lhs) const {
    for (int64_t row = 0; row < shape_.m; ++row)
      for (int64_t k = 0; k < shape_.k; ++k) copy[k * shape_.m + row] = *lhs++;
    return copy.data();
  }

  void multiply(const float* lhs, const float* rhs, float* out) const {
    Block copy;
    if (shape_.transposeLhs) lhs = transposed(copy, lhs);
    for (int64_t left = shape_.n; left > 0; left -= kVector) {
      if (left >= kVector) multiplyColumns<kVector>(lhs, rhs, out);
      if (left == 3) multiplyColumns<3>(lhs, rhs, out);
      if (left == 2) multiplyColumns<2>(lhs, rhs, out);
      if (left == 1) multiplyColumns<1>(lhs, rhs, out);
      rhs += kVector * (shape_.transposeRhs ? 1 : shape_.k);
      out += kVector * shape_.m;
    }
  }

  template <int64_t columns>
  void multiplyColumns(const float* lhs, const float* rhs, float* out) const {
    if (hasDots(shape_)) {
      for (int64_t i = 0; i < columns; ++i) out[i] = dot(lhs, rhs + i * shape_.k);
      return;
    }
    int64_t row = 0;
    for (; row + kVector <= shape_.m; row += kVector)
      sum<columns, Vector>(lhs + row, rhs, out + row);
    if (row + 2 <= shape_.m) {
      sum<columns, Pair>(lhs + row, rhs, out + row);
      row += 2;
    }
    if (row < shape_.m) sum<columns, float>(lhs + row, rhs, out + row);
  }

  // Of two runs of memory.
  float dot(const float* lhs, const float* rhs) const {
    Vector lanes{};
    int64_t k = 0;
    for (; k + kVector <= shape_.k; k += kVector)
      lanes += load<Vector>(lhs + k) * load<Vector>(rhs + k);
    float sum = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
    for (; k < shape_.k; ++k) sum += lhs[k] * rhs[k];
    return sum;
  }

  // Of one row, or of some that lie side by side, times some columns.
  template <int64_t columns, class T>
  void sum(const float* lhs, const float* rhs, float* out) const {
    const int64_t step = shape_.transposeRhs ? shape_.n : 1;
    const int64_t next = shape_.transposeRhs ? 1 : shape_.k;
    T sums[columns];
#pragma GCC unroll 4
    for (T& sum : sums) sum = T{};
    for (int64_t k = 0; k < shape_.k; ++k, lhs += shape_.m, rhs += step) {
      const T rows = load<T>(lhs);
#pragma GCC unroll 4
      for (int64_t i = 0; i < columns; ++i) sums[i] += rows * rhs[i * next];
    }
#pragma GCC unroll 4
    for (int64_t i = 0; i < columns; ++i) std::memcpy(out + i * shape_.m, &sums[i], sizeof(T));
  }

  const MatmulShape shape_;
  const int64_t elementBytes_;
  std::optional<Widening> widening_;  // of 16-bit floats
  int64_t grain_, block_;
};

}  // namespace

bool isSmall(const MatmulShape& shape) { return stepsOf(shape) <= kMostSteps; }

std::shared_ptr<LibraryFunction> prepareSmallMatmul(const MatmulShape& shape, dtype type) {
  return std::make_shared<SmallMatmul>(shape, type);
}

}  // namespace fl::library
