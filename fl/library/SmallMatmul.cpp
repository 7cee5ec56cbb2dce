// Products of small matrices, mostly many of a batch, added up in f32 and rounded once.
#include <algorithm>
#include <array>
#include <optional>

#include "fl/library/MatmulShape.h"
#include "fl/library/OneDnn.h"
#include "fl/library/SmallProduct.h"
#include "fl/library/Widening.h"

namespace fl::library {

namespace {

// Of a product. dnnl_sgemm takes 0.1 to 0.3 us before it multiplies.
constexpr int64_t kMostSteps = 320;
constexpr int64_t kStepsToBegin = 8, kStepsPerRange = 1 << 14;

// The operands or results of a block of products.
using Block = std::array<float, 4096>;
static_assert(kMostSteps * SmallProduct::kElementsOfStep <= Block().size());

SmallProduct productOf(const MatmulShape& shape) {
  return {shape.m,       shape.n,      shape.k, shape.transposeLhs, shape.transposeRhs,
          shape.lhsStep, shape.rhsStep};
}

class SmallMatmul final : public PartedFunction {
 public:
  SmallMatmul(const MatmulShape& shape, dtype type)
      : shape_(shape),
        product_(productOf(shape)),
        elementBytes_(static_cast<int64_t>(getTypeSize(type))) {
    if (type != dtype::f32) widening_.emplace(type);
    grain_ = std::min(shape.batch, ceilDiv(kStepsPerRange, product_.steps() + kStepsToBegin));
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
    Block lhsCopy, rhsCopy, sums, transposed;
    const float* lhs =
        inSingle(lhsCopy, operands[0], first, count, shape_.lhsStep, shape_.m * shape_.k);
    const float* rhs =
        inSingle(rhsCopy, operands[1], first, count, shape_.rhsStep, shape_.k * shape_.n);
    void* out = at(result, first * partElements() * elementBytes_);
    auto* products = widening_ ? sums.data() : static_cast<float*>(out);
    product_.run(lhs, rhs, products, count, transposed.data());
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

  const MatmulShape shape_;
  const SmallProduct product_;
  const int64_t elementBytes_;
  std::optional<Widening> widening_;  // of 16-bit floats
  int64_t grain_, block_;
};

}  // namespace

bool isSmall(const MatmulShape& shape) { return productOf(shape).steps() <= kMostSteps; }

std::shared_ptr<LibraryFunction> prepareSmallMatmul(const MatmulShape& shape, dtype type) {
  return std::make_shared<SmallMatmul>(shape, type);
}

}  // namespace fl::library
