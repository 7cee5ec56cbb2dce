// Matrix product. Column-major (M,K) x (K,N) is row-major C^T = B^T A^T with the same memory, which
// is how oneDNN, a row-major library, gets it.
//
// 16-bit floats are added up in f32, piece by piece, and rounded once. Products of bf16 are made by
// instructions that take subnormal operands as 0, where that is not slower; others, and f16, are
// widened first.
#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "fl/base/Error.h"
#include "fl/library/MatmulShape.h"
#include "fl/library/OneDnn.h"
#include "fl/library/Widening.h"

// dnnl_sgemm of bf16 operands. libdnnl exports it, for its tests; its header leaves it out.
extern "C" dnnl_status_t dnnl_gemm_bf16bf16f32(char transposeA, char transposeB, dnnl_dim_t m,
                                               dnnl_dim_t n, dnnl_dim_t k, float alpha,
                                               const uint16_t* a, dnnl_dim_t lda, const uint16_t* b,
                                               dnnl_dim_t ldb, float beta, float* c,
                                               dnnl_dim_t ldc);

namespace fl::library {

namespace {

using dnnl::memory;

// Pieces of one product, but for those that are copied, of which there may be more.
constexpr int64_t kMaxPieces = 8;
// Bytes in f32 of a piece that is copied, which should stay in the second-level cache.
constexpr int64_t kStagedBytes = 256 << 10;
// Ranges of the loop: a bound on scratch memory.
constexpr int64_t kMaxRanges = 16;
constexpr int64_t kPieceUnit = 16;  // a vector
// Narrower pieces would pack the other operand too often; of a matrix that is read once, for a
// product with a vector or with a few, narrower pieces would read runs too short. For a vector, two
// pieces may be as narrow as for a few.
constexpr int64_t kMinWidth = 64;
constexpr int64_t kMinRun = 512;
constexpr int64_t kFew = 32;
constexpr int64_t kMinRunOfFew = 256;
// The same for a piece of 16-bit floats, where the other operand is larger than kStagedBytes.
constexpr int64_t kMinStagedWidth = 256;
// Elements from which a matrix that stays the same is kept with gaps between columns that lie pages
// apart.
constexpr int64_t kMinPacked = 1 << 18;
// Fewest rows or columns of the result for which a copy with gaps pays.
constexpr int64_t kMinReuse = 64;
static_assert(kFew < kMinReuse, "what is kept with gaps is not copied to get them");
static_assert(kGap <= kPieceUnit, "the last piece has room for its gaps where the first had none");
// Below this the overhead of a primitive costs more than dnnl_sgemm's slower code.
constexpr double kPrimitiveWork = 2e6;
// Floating-point operations worth a piece, and a range of the loop.
constexpr double kWorkPerPiece = 2.5e6;
constexpr double kWorkPerCopiedPiece = 24e6;  // of a result that oneDNN writes apart
constexpr double kWorkPerRange = 2e6;
// Elements worth a range when an operand is copied.
constexpr int64_t kCopyGrain = 1 << 15;

MatmulShape matmulShape(const LibraryCall& call) {
  const Shape& lhs = call.operands[0].shape;
  const Shape& rhs = call.operands[1].shape;
  const Shape& result = call.result.shape;
  MatmulShape shape{};
  shape.transposeLhs = call.attrs[0] != 0;
  shape.transposeRhs = call.attrs[1] != 0;
  shape.m = result[0];
  shape.n = result[1];
  shape.k = lhs[shape.transposeLhs ? 0 : 1];
  shape.batch = result.elements() / (shape.m * shape.n);
  shape.lhsStep = lhs.elements() == shape.m * shape.k ? 0 : shape.m * shape.k;
  shape.rhsStep = rhs.elements() == shape.k * shape.n ? 0 : shape.k * shape.n;
  if (shape.lhsStep == 0 && !shape.transposeRhs && shape.rhsStep != 0) {
    // One matrix times a batch: the batch is more columns.
    shape.n *= shape.batch;
    shape.batch = 1;
  }
  // A vector is its own transpose.
  shape.transposeLhs = shape.transposeLhs && shape.m > 1;
  shape.transposeRhs = shape.transposeRhs && shape.n > 1;
  return shape;
}

// Columns (or rows) [begin, end) of each product.
struct Piece {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

enum class Arithmetic {
  Single,   // f32
  Brain,    // bf16, added up in f32
  Widened,  // f32 copies of f16 or bf16
};

bool multipliesBrain() {
  static const bool works = [] {
    const uint16_t one = 0x3f80;
    float product = 0;
    return dnnl_gemm_bf16bf16f32('N', 'N', 1, 1, 1, 1.0f, &one, 1, &one, 1, 0.0f, &product, 1) ==
           dnnl_success;
  }();
  return works;
}

// Where bf16 is slow, too, a product with few vectors does better without copies of its matrix.
Arithmetic arithmeticOf(const MatmulShape& shape, dtype type) {
  if (type == dtype::f32) return Arithmetic::Single;
  constexpr int kTiles = dnnl_cpu_isa_avx512_core_amx;
  const bool isFast = !isBrainSlow() || (dnnl_get_effective_cpu_isa() & kTiles) == kTiles ||
                      std::min(shape.m, shape.n) < kMinReuse;
  return type == dtype::bf16 && isFast && multipliesBrain() ? Arithmetic::Brain
                                                            : Arithmetic::Widened;
}

class Matmul final : public PartedFunction {
 public:
  Matmul(const MatmulShape& shape, dtype type)
      : shape_(shape),
        elementBytes_(getTypeSize(type)),
        arithmetic_(arithmeticOf(shape, type)),
        primitives_(arithmetic_ != Arithmetic::Brain && shape.transposeLhs && shape.n > 1 &&
                    shape.work() >= kPrimitiveWork),
        byColumns_(shape.n >= shape.m && !(primitives_ && shape.transposeRhs)) {
    if (type != dtype::f32) widening_.emplace(type);
    copiesShared_ = copies(byColumns_);
    copiesPiece_ = copies(!byColumns_);
    cut();
    // oneDNN's fast implementation writes contiguous results only.
    stagesResult_ = widening_ || (primitives_ && !byColumns_ && pieces_.size() > 1);
    if (primitives_) {
      whole_ = makeProduct(pieces_.front().size());
      const bool isEqual = pieces_.back().size() == pieces_.front().size();
      last_ = isEqual ? whole_ : makeProduct(pieces_.back().size());
    }
    groupItems();
    layOutScratch();
    offerPacking();
  }

  size_t scratchBytes() const override { return rangesOffset_ + scratchPerRange_ * ranges_; }

  std::string implementation() const override {
    return primitives_                        ? whole_->primitive.name()
           : arithmetic_ == Arithmetic::Brain ? "dnnl_gemm_bf16bf16f32"
                                              : "dnnl_sgemm";
  }

  const Packing* packing() const override { return packing_ ? &*packing_ : nullptr; }

  void pack(const void* lhs, void* packed, void* /*scratch*/) const override {
    for (int64_t column = 0; column < shape_.k; ++column) {
      std::copy_n(static_cast<const float*>(lhs) + column * shape_.m, shape_.m,
                  static_cast<float*>(packed) + column * (shape_.m + kGap));
    }
  }

  // Columns are runs, and so is a whole product; pieces of its rows are runs of a vector alone.
  int64_t partElements() const override {
    if (byColumns_ || pieces_.size() == 1) return shape_.m;
    return shape_.n == 1 ? std::gcd(shape_.m, kPieceUnit) : 0;
  }

  int64_t parts() const override { return ranges_; }

  void runInParts(void* const* operands, void* result, void* scratch, host::ThreadPool& pool,
                  PartDone done) const override {
    if (copiesSharedOnce()) {
      const Columns columns = shared();
      const int64_t count = columns.count * sharedCount(), length = columns.length;
      pool.parallelFor(count, ceilDiv(kCopyGrain, length), [=, this](int64_t i, int64_t end) {
        copyRuns(static_cast<float*>(scratch) + i * columns.leading(), columns.leading(),
                 element(operands[!byColumns_], i * length), widening_, end - i, length, length);
      });
    }
    const auto items = static_cast<int64_t>(pieces_.size()) * shape_.batch;
    pool.parallelFor(items, grain_, [&](int64_t begin, int64_t end) {
      SingleThread single;
      void* area = at(scratch, rangesOffset_ + scratchPerRange_ * (begin / grain_));
      for (int64_t item = begin; item < end; ++item) {
        runItem(item, operands, result, scratch, area);
        done(firstElement(item), firstElement(item) + elementsOf(item));
      }
    });
  }

 private:
  // An operand, or a piece of one, as f32 columns that are copied from elsewhere.
  struct Columns {
    int64_t count, length, gap;
    int64_t leading() const { return length + gap; }
    int64_t elements() const { return count * leading(); }
  };

  // Whether what a row or column of the result is made of lies across the columns of an operand.
  bool isCrossed(bool lhs) const { return lhs ? !shape_.transposeLhs : shape_.transposeRhs; }

  bool copies(bool lhs) const {
    const int64_t length = lhs ? shape_.m : shape_.n, reuse = lhs ? shape_.n : shape_.m;
    return arithmetic_ == Arithmetic::Widened ||
           (arithmetic_ == Arithmetic::Single && isCrossed(lhs) && reuse >= kMinReuse &&
            gapBehind(length) > 0);
  }

  // Copies of what so many rows or columns of the result are made of.
  Columns copyOf(bool lhs, int64_t extent) const {
    return isCrossed(lhs) ? Columns{shape_.k, extent, gapBehind(extent)}
                          : Columns{extent, shape_.k, 0};
  }
  Columns shared() const { return copyOf(byColumns_, byColumns_ ? shape_.m : shape_.n); }
  Columns pieceOfSize(int64_t size) const { return copyOf(!byColumns_, size); }

  // Equal pieces of whole vectors but the last.
  void cut() {
    const int64_t extent = byColumns_ ? shape_.n : shape_.m;
    const bool acrossRuns = isCrossed(!byColumns_);
    const int64_t other = shape_.k * (byColumns_ ? shape_.m : shape_.n);
    const bool few = acrossRuns && std::min(shape_.m, shape_.n) <= kFew;
    const int64_t width = widening_ && 4 * other > kStagedBytes ? kMinStagedWidth
                          : few                                 ? kMinRunOfFew
                                                                : kMinWidth;
    double most = static_cast<double>(extent) / width;
    if (std::min(shape_.m, shape_.n) == 1 && acrossRuns)
      most = std::max(static_cast<double>(extent) / kMinRun, std::min(most, 2.0));
    const double perPiece = primitives_ && !byColumns_ ? kWorkPerCopiedPiece : kWorkPerPiece;
    double wanted = std::min<double>(shape_.work() / perPiece, kMaxPieces);
    if (widening_ || copiesPiece_) {
      const int64_t written = widening_ ? (byColumns_ ? shape_.m : shape_.n) : 0;
      const int64_t across = written + (copiesPiece_ ? shape_.k : 0);
      wanted = std::max(wanted, 4.0 * static_cast<double>(extent) * across / kStagedBytes);
    }
    auto count = std::max<int64_t>(1, static_cast<int64_t>(std::min(wanted, most)));
    if (count <= kMaxPieces) {
      count = std::bit_floor(static_cast<uint64_t>(count));
    } else if (!widening_) {
      count -= count % kMaxPieces;
    }
    const int64_t cut =
        count == 1 ? extent : ceilDiv(ceilDiv(extent, count), kPieceUnit) * kPieceUnit;
    for (int64_t begin = 0; begin < extent; begin += cut)
      pieces_.push_back({begin, std::min(begin + cut, extent)});
  }

  // Small products of a batch share a range of the loop.
  void groupItems() {
    const auto items = static_cast<int64_t>(pieces_.size()) * shape_.batch;
    const double perItem = shape_.work() / static_cast<double>(pieces_.size());
    const double worthwhile = std::min(kWorkPerRange / perItem, static_cast<double>(items));
    grain_ = std::max(ceilDiv(items, kMaxRanges), static_cast<int64_t>(std::ceil(worthwhile)));
    ranges_ = ceilDiv(items, grain_);
  }

  // Of a weight, for a few vectors: there dnnl_sgemm gives the same bits at any column distance.
  void offerPacking() {
    const bool few = shape_.n > 1 && shape_.n <= kFew;
    if (arithmetic_ != Arithmetic::Single || primitives_ || shape_.transposeLhs || !few ||
        shape_.batch > 1 || shape_.lhsGap > 0 || shape_.m % kPageElements != 0 ||
        shape_.m * shape_.k < kMinPacked)
      return;
    MatmulShape packed = shape_;
    packed.lhsGap = kGap;
    packing_ = {0, static_cast<size_t>(4 * packed.lhsLeading() * shape_.k), "columns apart",
                std::make_shared<Matmul>(packed, dtype::f32)};
  }

  // The operand that is not cut into pieces, copied: once before the loop if several items use it,
  // else by its item.
  int64_t sharedStep() const { return byColumns_ ? shape_.lhsStep : shape_.rhsStep; }
  int64_t sharedCount() const { return sharedStep() == 0 ? 1 : shape_.batch; }
  bool copiesSharedOnce() const {
    return copiesShared_ && (pieces_.size() > 1 || sharedStep() == 0);
  }

  void layOutScratch() {
    const int64_t size = pieces_.front().size();
    ScratchLayout before, range;
    before.add(copiesSharedOnce() ? 4 * shared().elements() * sharedCount() : 0);
    rangesOffset_ = before.bytes();
    if (primitives_)
      range.add(std::max(whole_->primitive.scratchBytes(), last_->primitive.scratchBytes()));
    outOffset_ = range.add(stagesResult_ ? 4 * rowsOf(size) * columnsOf(size) : 0);
    sharedOffset_ = range.add(copiesShared_ && !copiesSharedOnce() ? 4 * shared().elements() : 0);
    pieceOffset_ = range.add(copiesPiece_ ? 4 * pieceOfSize(size).elements() : 0);
    scratchPerRange_ = range.bytes();
  }

  // The product of one piece, of `size` columns or rows.
  int64_t rowsOf(int64_t size) const { return byColumns_ ? shape_.m : size; }
  int64_t columnsOf(int64_t size) const { return byColumns_ ? size : shape_.n; }
  // Row lengths in memory.
  int64_t leading(bool lhs, int64_t size) const {
    const bool isShared = lhs == byColumns_;
    if (isShared ? copiesShared_ : copiesPiece_)
      return (isShared ? shared() : pieceOfSize(size)).leading();
    return lhs ? shape_.lhsLeading() : shape_.rhsLeading();
  }
  int64_t outLeading(int64_t size) const { return stagesResult_ ? rowsOf(size) : shape_.m; }

  // A primitive for one size of piece.
  struct Product {
    Desc lhs, rhs, out;
    Primitive primitive;
  };

  std::shared_ptr<const Product> makeProduct(int64_t size) const {
    constexpr auto kFloat = memory::data_type::f32;
    const auto strides = [](bool transposed, int64_t leading) {
      return transposed ? memory::dims{1, leading} : memory::dims{leading, 1};
    };
    const int64_t m = rowsOf(size), n = columnsOf(size);
    Product made{{{shape_.k, m}, kFloat, strides(shape_.transposeLhs, leading(true, size))},
                 {{n, shape_.k}, kFloat, strides(shape_.transposeRhs, leading(false, size))},
                 {{n, m}, kFloat, strides(false, m)},
                 {}};
    made.primitive = Primitive(dnnl::matmul::primitive_desc(
        dnnl::matmul::desc(made.rhs, made.lhs, made.out), callerScratchpad(), dnnlEngine()));
    return std::make_shared<const Product>(std::move(made));
  }

  const void* element(const void* base, int64_t i) const {
    return static_cast<const char*>(base) + i * elementBytes_;
  }

  int64_t batchOf(int64_t item) const { return item / static_cast<int64_t>(pieces_.size()); }
  Piece pieceOf(int64_t item) const { return pieces_[item % pieces_.size()]; }
  // Of the result.
  int64_t firstElement(int64_t item) const {
    const int64_t step = byColumns_ ? shape_.m : 1;
    return batchOf(item) * shape_.m * shape_.n + pieceOf(item).begin * step;
  }
  int64_t elementsOf(int64_t item) const {
    return rowsOf(pieceOf(item).size()) * columnsOf(pieceOf(item).size());
  }

  void runItem(int64_t item, void* const* operands, void* result, void* scratch, void* area) const {
    const int64_t batch = batchOf(item);
    const Piece piece = pieceOf(item);
    const int64_t lhsFirst = byColumns_ ? 0 : piece.begin * (shape_.transposeLhs ? shape_.k : 1);
    const int64_t rhsFirst = byColumns_ ? piece.begin * (shape_.transposeRhs ? 1 : shape_.k) : 0;
    const void* lhs = element(operands[0], batch * shape_.lhsStep + lhsFirst);
    const void* rhs = element(operands[1], batch * shape_.rhsStep + rhsFirst);
    const void*& shared = byColumns_ ? lhs : rhs;
    const void*& part = byColumns_ ? rhs : lhs;
    if (copiesShared_) shared = copyShared(batch, shared, scratch, area);
    if (copiesPiece_) part = copyPiece(piece, part, area);
    void* out = at(result, firstElement(item) * elementBytes_);
    auto* computed = static_cast<float*>(stagesResult_ ? at(area, outOffset_) : out);
    multiply(piece, lhs, rhs, computed, area);
    if (stagesResult_) copyResult(piece, computed, out);
  }

  const float* copyShared(int64_t batch, const void* matrix, void* scratch, void* area) const {
    const Columns columns = shared();
    const int64_t before = sharedStep() == 0 ? 0 : batch * columns.elements();
    if (copiesSharedOnce()) return static_cast<float*>(scratch) + before;
    auto* copy = static_cast<float*>(at(area, sharedOffset_));
    copyRuns(copy, columns.leading(), matrix, widening_, columns.count, columns.length,
             columns.length);
    return copy;
  }

  const float* copyPiece(Piece piece, const void* first, void* area) const {
    auto* copy = static_cast<float*>(at(area, pieceOffset_));
    const int64_t stride = byColumns_ ? shape_.rhsLeading() : shape_.lhsLeading();
    const Columns columns = pieceOfSize(piece.size());
    copyRuns(copy, columns.leading(), first, widening_, columns.count, columns.length, stride);
    return copy;
  }

  void multiply(Piece piece, const void* lhs, const void* rhs, float* out, void* area) const {
    if (primitives_) {
      const Product& product = piece.end == pieces_.back().end ? *last_ : *whole_;
      product.primitive.run({{DNNL_ARG_SRC, product.rhs, const_cast<void*>(rhs)},
                             {DNNL_ARG_WEIGHTS, product.lhs, const_cast<void*>(lhs)},
                             {DNNL_ARG_DST, product.out, out}},
                            area);
    } else if (arithmetic_ == Arithmetic::Brain) {
      runGemm(dnnl_gemm_bf16bf16f32, piece.size(), static_cast<const uint16_t*>(lhs),
              static_cast<const uint16_t*>(rhs), out);
    } else {
      runGemm(dnnl_sgemm, piece.size(), static_cast<const float*>(lhs),
              static_cast<const float*>(rhs), out);
    }
  }

  template <class Gemm, class T>
  void runGemm(Gemm gemm, int64_t size, const T* lhs, const T* rhs, float* out) const {
    const dnnl_status_t status =
        gemm(shape_.transposeRhs ? 'T' : 'N', shape_.transposeLhs ? 'T' : 'N', columnsOf(size),
             rowsOf(size), shape_.k, 1.0f, rhs, leading(false, size), lhs, leading(true, size),
             0.0f, out, outLeading(size));
    FL_INTERNAL_CHECK(status == dnnl_success, implementation(), " status ",
                      static_cast<int>(status));
  }

  void copyResult(Piece piece, const float* computed, void* out) const {
    const int64_t rows = rowsOf(piece.size()), columns = columnsOf(piece.size());
    if (widening_) return widening_->narrowRuns(out, computed, columns, rows, shape_.m);
    for (int64_t column = 0; column < columns; ++column)
      std::copy_n(computed + column * rows, rows, static_cast<float*>(out) + column * shape_.m);
  }

  MatmulShape shape_;
  int64_t elementBytes_;
  Arithmetic arithmetic_;
  // dnnl_sgemm is the faster of the two, but for a transposed lhs (82 against 157 GFLOP/s at
  // M = K = 1024, N = 16), unless the rhs is a vector.
  bool primitives_;
  bool byColumns_;
  std::optional<Widening> widening_;  // of 16-bit floats
  // Copies in f32, of the shared operand and of pieces of the other.
  bool copiesShared_ = false, copiesPiece_ = false;
  std::vector<Piece> pieces_;
  bool stagesResult_ = false;
  // Some kilobytes, which products that are dnnl_sgemm's do without.
  std::shared_ptr<const Product> whole_, last_;
  // The shared operand, then an area for each range.
  size_t rangesOffset_ = 0, scratchPerRange_ = 0;
  size_t outOffset_ = 0, sharedOffset_ = 0, pieceOffset_ = 0;
  int64_t grain_ = 1, ranges_ = 1;
  std::optional<Packing> packing_;  // of the lhs
};

}  // namespace

std::shared_ptr<LibraryFunction> prepareMatmul(const LibraryCall& call) {
  const MatmulShape shape = matmulShape(call);
  if (call.result.type == dtype::f64) return prepareDoubleMatmul(shape);
  if (isSmall(shape)) return prepareSmallMatmul(shape, call.result.type);
  SingleThread single;
  auto made = std::make_shared<Matmul>(shape, call.result.type);
  return isReference(made->implementation()) ? nullptr : made;
}

}  // namespace fl::library
