// Products of small matrices, mostly many of a batch, added up in f32 and rounded once.
#include <algorithm>
#include <array>
#include <optional>

#include "fl/library/MatmulShape.h"
#include "fl/library/OneDnn.h"
#include "fl/library/Widening.h"

namespace fl::library {

namespace {

constexpr int64_t kVector = 4;
using Vector =
    float __attribute__((vector_size(kVector * sizeof(float)), aligned(sizeof(float)), may_alias));

// Of a product, about half a nanosecond each. dnnl_sgemm takes 0.1 to 0.3 us before it multiplies.
constexpr int64_t kMostSteps = 320;
// Of a sum, and of a product, to begin.
constexpr int64_t kStepsOfSum = 4, kStepsOfProduct = 16;
constexpr int64_t kStepsPerRange = 1 << 15;

// A row times columns: lanes of a vector lie along k.
bool hasDots(const MatmulShape& shape) { return shape.m == 1 && !shape.transposeRhs; }

int64_t stepsOf(const MatmulShape& shape) {
  const auto vectors = [](int64_t count) { return count / kVector + count % kVector; };
  if (hasDots(shape)) return shape.n * (vectors(shape.k) + kStepsOfSum);
  return shape.n * vectors(shape.m) * (shape.k + kStepsOfSum) +
         (shape.transposeLhs ? shape.m * shape.k : 0);
}

// The operands or results of a block of products, of which each has fewer elements.
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
    switch (shape_.k) {
      case 2:
        multiply<2>(lhs, rhs, products, count);
        break;
      case 3:
        multiply<3>(lhs, rhs, products, count);
        break;
      case 4:
        multiply<4>(lhs, rhs, products, count);
        break;
      default:
        multiply<0>(lhs, rhs, products, count);
    }
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

  // kDepth is k if that is known to the compiler, otherwise 0.
  template <int64_t kDepth>
  void multiply(const float* lhs, const float* rhs, float* out, int64_t count) const {
    Block copy;
    for (; count > 0; --count, lhs += shape_.lhsStep, rhs += shape_.rhsStep) {
      const float* rows = shape_.transposeLhs ? transposed(copy, lhs) : lhs;
      for (int64_t column = 0; column < shape_.n; ++column, out += shape_.m)
        multiplyColumn<kDepth>(rows, rhs + column * (shape_.transposeRhs ? 1 : shape_.k), out);
    }
  }

  template <int64_t kDepth>
  void multiplyColumn(const float* lhs, const float* factors, float* out) const {
    if (hasDots(shape_)) {
      *out = dot(lhs, factors);
      return;
    }
    int64_t row = 0;
    for (; row + kVector <= shape_.m; row += kVector)
      sum<kDepth, Vector>(lhs + row, factors, out + row);
    for (; row < shape_.m; ++row) sum<kDepth, float>(lhs + row, factors, out + row);
  }

  // Of two runs of memory.
  float dot(const float* lhs, const float* rhs) const {
    Vector lanes{};
    int64_t k = 0;
    for (; k + kVector <= shape_.k; k += kVector)
      lanes +=
          *reinterpret_cast<const Vector*>(lhs + k) * *reinterpret_cast<const Vector*>(rhs + k);
    float sum = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
    for (; k < shape_.k; ++k) sum += lhs[k] * rhs[k];
    return sum;
  }

  // Of one row, or of some that lie side by side.
  template <int64_t kDepth, class T>
  void sum(const float* lhs, const float* factors, float* out) const {
    const int64_t step = shape_.transposeRhs ? shape_.n : 1;
    const int64_t depth = kDepth > 0 ? kDepth : shape_.k;
    T sum{};
#pragma GCC unroll 4
    for (int64_t k = 0; k < depth; ++k, lhs += shape_.m, factors += step)
      sum += *reinterpret_cast<const T*>(lhs) * *factors;
    *reinterpret_cast<T*>(out) = sum;
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
