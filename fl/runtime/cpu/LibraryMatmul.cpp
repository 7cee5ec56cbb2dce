// Matrix product. Column-major (M,K) x (K,N) is row-major C^T = B^T A^T with the same memory, which
// is how oneDNN, a row-major library, gets it.
#include <algorithm>
#include <cmath>

#include "fl/base/Error.h"
#include "fl/runtime/cpu/LibraryFunctions.h"
#include "fl/runtime/cpu/OneDnn.h"

namespace fl::runtime::cpu {

namespace {

using dnnl::memory;

// Pieces of one product, and ranges of the loop: a bound on scratch memory.
constexpr int64_t kMaxPieces = 8;
constexpr int64_t kMaxRanges = 16;
// Narrower pieces would pack the other operand too often; of a matrix that is read once, for a
// product with a vector, narrower pieces would read runs too short.
constexpr int64_t kMinWidth = 64;
constexpr int64_t kMinRun = 512;
// Below this the overhead of a primitive costs more than dnnl_sgemm's slower code.
constexpr double kPrimitiveWork = 2e6;
// Floating-point operations worth a piece, and a range of the loop; a byte of operands counts as
// kWorkPerByte of them.
constexpr double kWorkPerPiece = 8e6;
constexpr double kWorkPerRange = 2e6;
constexpr double kWorkPerByte = 8;

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct MatmulShape {
  int64_t m, n, k, batch;
  bool transposeLhs, transposeRhs;
  // Elements from one batch to the next; 0 repeats a matrix.
  int64_t lhsStep, rhsStep;

  // Row lengths of the operands in memory.
  int64_t lhsLeading() const { return transposeLhs ? k : m; }
  int64_t rhsLeading() const { return transposeRhs ? n : k; }
  double work() const {
    return 2.0 * static_cast<double>(m) * n * k +
           kWorkPerByte * 4 *
               (static_cast<double>(m) * k + static_cast<double>(n) * k +
                static_cast<double>(m) * n);
  }
};

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

class Matmul final : public LibraryFunction {
 public:
  explicit Matmul(const MatmulShape& shape)
      : shape_(shape),
        primitives_(shape.transposeLhs && shape.n > 1 && shape.work() >= kPrimitiveWork),
        byColumns_(shape.n >= shape.m && !(primitives_ && shape.transposeRhs)) {
    cut();
    if (primitives_) {
      makePrimitives();
    }
    groupItems();
  }

  size_t scratchBytes() const override { return scratchPerRange_ * ranges_; }

  std::string implementation() const override {
    return primitives_ ? whole_.primitive.name() : "dnnl_sgemm";
  }

  bool reference() const { return isReference(implementation()); }

  void run(void* const* operands, void* result, void* scratch, ThreadPool& pool) const override {
    const auto* lhs = static_cast<const float*>(operands[0]);
    const auto* rhs = static_cast<const float*>(operands[1]);
    auto* out = static_cast<float*>(result);
    const auto pieces = static_cast<int64_t>(pieces_.size());
    pool.parallelFor(pieces * shape_.batch, grain_, [&](int64_t begin, int64_t end) {
      SingleThread single;
      void* area = at(scratch, scratchPerRange_ * (begin / grain_));
      for (int64_t item = begin; item < end; ++item) {
        const int64_t batch = item / pieces;
        runPiece(pieces_[item % pieces], lhs + batch * shape_.lhsStep, rhs + batch * shape_.rhsStep,
                 out + batch * shape_.m * shape_.n, area);
      }
    });
  }

 private:
  // Equal pieces of whole vectors but the last.
  void cut() {
    const int64_t extent = byColumns_ ? shape_.n : shape_.m;
    const bool vector = std::min(shape_.m, shape_.n) == 1;
    const bool acrossRuns = byColumns_ ? shape_.transposeRhs : !shape_.transposeLhs;
    const double wanted =
        std::min(shape_.work() / kWorkPerPiece,
                 static_cast<double>(extent) / (vector && acrossRuns ? kMinRun : kMinWidth));
    const auto count = static_cast<int64_t>(std::clamp<double>(wanted, 1, kMaxPieces));
    const int64_t width = count == 1 ? extent : ceilDiv(ceilDiv(extent, count), 16) * 16;
    for (int64_t begin = 0; begin < extent; begin += width) {
      pieces_.push_back({begin, std::min(begin + width, extent)});
    }
  }

  // Small products of a batch share a range of the loop.
  void groupItems() {
    const auto items = static_cast<int64_t>(pieces_.size()) * shape_.batch;
    const double perItem = shape_.work() / static_cast<double>(pieces_.size());
    const double worthwhile = std::min(kWorkPerRange / perItem, static_cast<double>(items));
    grain_ = std::max(ceilDiv(items, kMaxRanges), static_cast<int64_t>(std::ceil(worthwhile)));
    ranges_ = ceilDiv(items, grain_);
  }

  // A primitive for one size of piece.
  struct Product {
    Desc lhs, rhs, out;
    Primitive primitive;
  };

  void makePrimitives() {
    whole_ = makeProduct(pieces_.front().size());
    last_ = makeProduct(pieces_.back().size());
    ScratchLayout range;
    range.add(std::max(whole_.primitive.scratchBytes(), last_.primitive.scratchBytes()));
    outOffset_ = range.add(rowsOfResult() ? whole_.out.get_size() : 0);
    scratchPerRange_ = range.bytes();
  }

  Product makeProduct(int64_t size) const {
    constexpr auto kFloat = memory::data_type::f32;
    const auto strides = [](bool transposed, int64_t leading) {
      return transposed ? memory::dims{1, leading} : memory::dims{leading, 1};
    };
    const int64_t m = byColumns_ ? shape_.m : size;
    const int64_t n = byColumns_ ? size : shape_.n;
    Product made{{{shape_.k, m}, kFloat, strides(shape_.transposeLhs, shape_.lhsLeading())},
                 {{n, shape_.k}, kFloat, strides(shape_.transposeRhs, shape_.rhsLeading())},
                 {{n, m}, kFloat, strides(false, m)},
                 {}};
    made.primitive = Primitive(dnnl::matmul::primitive_desc(
        dnnl::matmul::desc(made.rhs, made.lhs, made.out), callerScratchpad(), dnnlEngine()));
    return made;
  }

  void runPiece(Piece piece, const float* lhs, const float* rhs, float* out, void* area) const {
    if (byColumns_) {
      rhs += shape_.transposeRhs ? piece.begin : piece.begin * shape_.k;
      out += piece.begin * shape_.m;
    } else {
      lhs += shape_.transposeLhs ? piece.begin * shape_.k : piece.begin;
      out += piece.begin;
    }
    if (primitives_) {
      runPrimitive(piece, lhs, rhs, out, area);
    } else {
      runSgemm(piece, lhs, rhs, out);
    }
  }

  // Pieces that are no contiguous part of the result: oneDNN's fast implementation writes
  // contiguous results only.
  bool rowsOfResult() const { return !byColumns_ && pieces_.size() > 1; }

  void runPrimitive(Piece piece, const float* lhs, const float* rhs, float* out, void* area) const {
    const Product& product = piece.end == pieces_.back().end ? last_ : whole_;
    float* computed = rowsOfResult() ? static_cast<float*>(at(area, outOffset_)) : out;
    product.primitive.run({{DNNL_ARG_SRC, product.rhs, const_cast<float*>(rhs)},
                           {DNNL_ARG_WEIGHTS, product.lhs, const_cast<float*>(lhs)},
                           {DNNL_ARG_DST, product.out, computed}},
                          area);
    for (int64_t column = 0; rowsOfResult() && column < shape_.n; ++column) {
      std::copy_n(computed + column * piece.size(), piece.size(), out + column * shape_.m);
    }
  }

  void runSgemm(Piece piece, const float* lhs, const float* rhs, float* out) const {
    const int64_t m = byColumns_ ? shape_.m : piece.size();
    const int64_t n = byColumns_ ? piece.size() : shape_.n;
    const dnnl_status_t status =
        dnnl_sgemm(shape_.transposeRhs ? 'T' : 'N', shape_.transposeLhs ? 'T' : 'N', n, m, shape_.k,
                   1.0f, rhs, shape_.rhsLeading(), lhs, shape_.lhsLeading(), 0.0f, out, shape_.m);
    FL_INTERNAL_CHECK(status == dnnl_success, "dnnl_sgemm status ", static_cast<int>(status));
  }

  MatmulShape shape_;
  // dnnl_sgemm is the faster of the two, but for a transposed lhs (82 against 157 GFLOP/s at
  // M = K = 1024, N = 16), unless the rhs is a vector.
  bool primitives_;
  bool byColumns_;
  std::vector<Piece> pieces_;
  Product whole_, last_;
  size_t scratchPerRange_ = 0, outOffset_ = 0;
  int64_t grain_ = 1, ranges_ = 1;
};

}  // namespace

std::shared_ptr<LibraryFunction> prepareMatmul(const LibraryCall& call) {
  SingleThread single;
  auto made = std::make_shared<Matmul>(matmulShape(call));
  return made->reference() ? nullptr : made;
}

}  // namespace fl::runtime::cpu
