// Attention in blocks of queries: the scores of a block against all keys are all that is held of
// the (time, keys) scores, so that memory grows with the sequence and not with its square. After
// Rabe and Staats, Self-attention Does Not Need O(n^2) Memory, arXiv 2112.05682, and, for the
// gradient, which computes the scores again, Dao et al., FlashAttention, arXiv 2205.14135.
//
// In memory a head is D rows of `time` elements, and scores are a row of queries for every key:
// maxima and sums over the keys are taken of whole rows, and no product needs a copy of its
// operands but for the block of queries. 16-bit floats are computed in f32.
#include <algorithm>
#include <array>
#include <cfloat>
#include <optional>

#include "fl/base/Error.h"
#include "fl/library/Functions.h"
#include "fl/library/OneDnn.h"
#include "fl/library/Widening.h"

namespace fl::library {
namespace {

constexpr int64_t kTile = 512;  // scores

// Bytes of a block's scores, which should stay in the second-level cache, and queries of a block:
// products of more are not faster.
constexpr int64_t kScoreBytes = 2 << 20;
constexpr int64_t kMostQueries = 128;
// A row of scores has room for whole groups.
constexpr int64_t kGroup = tile::kTileGroup;
static_assert(kTile % kMostQueries == 0 && kTile % kGroup == 0, "a tile holds whole rows");
// Ranges of the loop, each with scratch memory of its own.
constexpr int64_t kMaxRanges = 16;
// Rows that are summed before the sum is added to the total.
constexpr int64_t kTilesOfSum = 64;
// Scores of a head from which blocks are as fast, forward and backward, as all scores in memory,
// and queries and keys below which rows of scores would be mostly empty.
constexpr int64_t kFewestScores = 1 << 14;
constexpr int64_t kShortest = 64;

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct AttentionShape {
  int64_t time, keys, features, heads, batch;
  dtype type;
  // Steps between a mask's elements along the four dimensions of the scores; 0 where it has one.
  bool masked = false;
  std::array<int64_t, 4> mask = {};

  int64_t queryElements() const { return time * features * heads * batch; }
  int64_t keyElements() const { return keys * features * heads * batch; }
};

AttentionShape attentionShape(const LibraryCall& call) {
  const size_t first = call.op == ir::Op::AttentionBackward ? 1 : 0;
  const Shape& query = call.operands[first].shape;
  AttentionShape shape{
      query[0], call.operands[first + 1].shape[0], query[1], query[2], query[3], call.result.type};
  if (call.operands.size() > first + 3) {
    const Shape& mask = call.operands[first + 3].shape;
    shape.masked = true;
    int64_t step = 1;
    for (int i = 0; i < 4; ++i) {
      shape.mask[i] = mask[i] == 1 ? 0 : step;
      step *= mask[i];
    }
  }
  return shape;
}

// Queries of every block but the last.
int64_t queriesOfBlock(const AttentionShape& shape) {
  const int64_t fitting = kScoreBytes / (4 * shape.keys) / kGroup * kGroup;
  return std::clamp(fitting, kGroup, kMostQueries);
}

// Elementwise loops over scores: tiles of whole rows of `width` queries each.
class RowMath {
 public:
  explicit RowMath(int64_t width) : width_(width) {}

  // rows[i] = exp(rows[i] - m) for all rows, where m is their maximum; `totals` are the sums. An
  // excluded score is -inf; a query without any other has sums of 0.
  void softmax(float* rows, int64_t count, float* totals) const {
    alignas(64) float most[kTile], sums[kTile];
    std::fill_n(most, kTile, -FLT_MAX);
    overTiles(rows, count,
              [&](float* tile, int64_t size) { apply(ir::Op::Maximum, most, most, tile, size); });
    fold(ir::Op::Maximum, most);
    sum(rows, count, sums, [&](float* tile, int64_t size) {
      apply(ir::Op::Sub, tile, tile, most, size);
      apply(ir::Op::Exp, tile, tile, nullptr, size);
      return tile;
    });
    std::copy_n(sums, width_, totals);
  }

  // Every row by one row.
  void divide(float* rows, int64_t count, const float* by) const {
    alignas(64) float divisors[kTile];
    repeat(by, divisors);
    overTiles(rows, count,
              [&](float* tile, int64_t size) { apply(ir::Op::Div, tile, tile, divisors, size); });
  }

  // gradients[i] = weights[i] * (gradients[i] - the sum over all i of weights[i] * gradients[i]):
  // from the gradient of a softmax's results to that of its inputs.
  void softmaxGradient(float* gradients, const float* weights, int64_t count) const {
    alignas(64) float products[kTile], sums[kTile];
    sum(gradients, count, sums, [&](float* tile, int64_t size) {
      apply(ir::Op::Mul, products, tile, weights + (tile - gradients), size);
      return products;
    });
    overTiles(gradients, count, [&](float* tile, int64_t size) {
      apply(ir::Op::Sub, tile, tile, sums, size);
      apply(ir::Op::Mul, tile, tile, weights + (tile - gradients), size);
    });
  }

  void add(float* row, const float* other) const { apply(ir::Op::Add, row, row, other, width_); }

 private:
  static void apply(ir::Op op, float* out, const float* x, const float* y, int64_t count) {
    static const tile::TileOps& ops = tile::tileOps(tile::bestTileVariant());
    ops.apply[static_cast<int>(op)][static_cast<int>(dtype::f32)](out, x, y, nullptr, count);
  }

  template <class Body>
  void overTiles(float* rows, int64_t count, Body&& body) const {
    const int64_t elements = count * width_;
    for (int64_t i = 0; i < elements; i += kTile) body(rows + i, std::min(kTile, elements - i));
  }

  // sums = the sum over all rows of what terms(tile, size) gives of each tile, in every row of a
  // tile.
  template <class Terms>
  void sum(float* rows, int64_t count, float* sums, Terms&& terms) const {
    alignas(64) float part[kTile] = {};
    std::fill_n(sums, kTile, 0.0f);
    int64_t tiles = 0;
    overTiles(rows, count, [&](float* tile, int64_t size) {
      apply(ir::Op::Add, part, part, terms(tile, size), size);
      if (++tiles % kTilesOfSum == 0) {
        apply(ir::Op::Add, sums, sums, part, kTile);
        std::fill_n(part, kTile, 0.0f);
      }
    });
    apply(ir::Op::Add, sums, sums, part, kTile);
    fold(ir::Op::Add, sums);
  }

  // Combines the rows of a tile; each is the result then.
  void fold(ir::Op op, float* tile) const {
    for (int64_t i = width_; i < kTile; i += width_) apply(op, tile, tile, tile + i, width_);
    repeat(tile, tile);
  }

  void repeat(const float* row, float* tile) const {
    for (int64_t i = row == tile ? width_ : 0; i < kTile; i += width_) {
      std::copy_n(row, width_, tile + i);
    }
  }

  int64_t width_;
};

// What both directions do for a block of queries of one head.
class Blocks {
 public:
  explicit Blocks(const AttentionShape& shape)
      : shape(shape), most(queriesOfBlock(shape)), count(ceilDiv(shape.time, most)) {
    if (shape.type != dtype::f32) widening_.emplace(shape.type);
  }

  int64_t queriesOf(int64_t block) const { return std::min(most, shape.time - block * most); }
  // Of the rows in which a block's queries lie.
  int64_t widthOf(int64_t block) const { return ceilDiv(queriesOf(block), kGroup) * kGroup; }
  RowMath math(int64_t block) const { return RowMath(widthOf(block)); }
  bool widens() const { return widening_.has_value(); }

  // The D rows of a head's block as they are multiplied.
  void load(float* block, const void* operand, int64_t head, int64_t number) const {
    for (int64_t row = 0; row < shape.features; ++row, block += widthOf(number)) {
      const int64_t first = (head * shape.features + row) * shape.time + number * most;
      widen(block, operand, first, queriesOf(number));
    }
  }

  void store(void* result, const float* block, int64_t head, int64_t number) const {
    for (int64_t row = 0; row < shape.features; ++row, block += widthOf(number)) {
      const int64_t first = (head * shape.features + row) * shape.time + number * most;
      narrow(result, block, first, queriesOf(number));
    }
  }

  // All keys or values of a head: where they are, or widened in `copy`.
  const float* matrix(const void* operand, int64_t head, float* copy) const {
    const int64_t elements = shape.features * shape.keys;
    if (!widening_) return static_cast<const float*>(operand) + head * elements;
    widen(copy, operand, head * elements, elements);
    return copy;
  }

  void narrow(void* result, const float* from, int64_t first, int64_t elements) const {
    if (widening_) {
      widening_->narrow(static_cast<uint16_t*>(result) + first, from, elements);
    } else {
      std::copy_n(from, elements, static_cast<float*>(result) + first);
    }
  }

  // exp(scores - their maximum) of a block, a row for every key, and the sums over the keys.
  void weights(float* scores, float* totals, const float* keys, const float* query,
               const void* mask, int64_t head, int64_t number) const {
    productOfKeys(scores, keys, query, number);
    if (shape.masked) addMask(scores, mask, head, number);
    math(number).softmax(scores, shape.keys, totals);
  }

  // A row for every key: sums over the features. What lies behind the queries of a row is 0.
  void productOfKeys(float* out, const float* keys, const float* block, int64_t number) const {
    const int64_t queries = queriesOf(number), width = widthOf(number);
    gemm('T', 'N', shape.keys, queries, shape.features, keys, shape.keys, block, width, 0, out,
         width);
    for (int64_t key = 0; key < shape.keys; ++key) {
      std::fill(out + key * width + queries, out + (key + 1) * width, 0.0f);
    }
  }
  // A row for every feature: sums over the keys.
  void sumOverKeys(float* out, const float* matrix, const float* scores, int64_t number) const {
    gemm('N', 'N', shape.features, queriesOf(number), shape.keys, matrix, shape.keys, scores,
         widthOf(number), 0, out, widthOf(number));
  }
  // Adds to, or begins, [features][keys]: sums over the block's queries.
  void sumOverQueries(float* out, const float* block, const float* scores, int64_t number) const {
    gemm('N', 'T', shape.features, shape.keys, queriesOf(number), block, widthOf(number), scores,
         widthOf(number), number == 0 ? 0 : 1, out, shape.keys);
  }

  const AttentionShape shape;
  const int64_t most, count;

 private:
  void widen(float* to, const void* from, int64_t first, int64_t elements) const {
    if (widening_) {
      widening_->widen(to, static_cast<const uint16_t*>(from) + first, elements);
    } else {
      std::copy_n(static_cast<const float*>(from) + first, elements, to);
    }
  }

  void addMask(float* scores, const void* mask, int64_t head, int64_t number) const {
    alignas(64) float row[kMostQueries] = {};
    const RowMath rows = math(number);
    const int64_t columns = queriesOf(number);
    const auto& steps = shape.mask;
    const int64_t first =
        head % shape.heads * steps[2] + head / shape.heads * steps[3] + number * most * steps[0];
    for (int64_t key = 0; key < shape.keys; ++key) {
      widen(row, mask, first + key * steps[1], steps[0] == 0 ? 1 : columns);
      if (steps[0] == 0) std::fill_n(row + 1, columns - 1, row[0]);
      rows.add(scores + key * widthOf(number), row);
    }
  }

  static void gemm(char transposeA, char transposeB, int64_t m, int64_t n, int64_t k,
                   const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
                   int64_t ldc) {
    const dnnl_status_t status =
        dnnl_sgemm(transposeA, transposeB, m, n, k, 1.0f, a, lda, b, ldb, beta, c, ldc);
    FL_INTERNAL_CHECK(status == dnnl_success, "dnnl_sgemm status ", static_cast<int>(status));
  }

  std::optional<Widening> widening_;  // of 16-bit floats
};

class BlockedAttention : public LibraryFunction {
 public:
  explicit BlockedAttention(const AttentionShape& shape)
      : blocks_(shape), width_(blocks_.widthOf(0)) {}
  size_t scratchBytes() const override { return area_.bytes() * ranges_; }
  std::string implementation() const override { return "blocks of queries"; }

 protected:
  // Ranges of the loop over `items`, each with an area of what was added to area_.
  void divide(int64_t items) {
    items_ = items;
    grain_ = ceilDiv(items, kMaxRanges);
    ranges_ = ceilDiv(items, grain_);
  }

  // body(item, area), items of a range one after the other.
  template <class Body>
  void overItems(void* scratch, host::ThreadPool& pool, Body&& body) const {
    pool.parallelFor(items_, grain_, [&](int64_t begin, int64_t end) {
      SingleThread single;
      void* area = at(scratch, area_.bytes() * (begin / grain_));
      for (int64_t item = begin; item < end; ++item) body(item, area);
    });
  }

  size_t addScores() { return area_.add(4 * blocks_.shape.keys * width_); }
  size_t addBlock() { return area_.add(4 * blocks_.shape.features * width_); }
  size_t addMatrix(bool wanted) {
    return area_.add(wanted ? 4 * blocks_.shape.features * blocks_.shape.keys : 0);
  }
  static float* floats(void* area, size_t offset) { return static_cast<float*>(at(area, offset)); }

  const Blocks blocks_;

 private:
  const int64_t width_;
  ScratchLayout area_;
  int64_t items_ = 0, grain_ = 1, ranges_ = 1;
};

class Attention final : public BlockedAttention {
 public:
  explicit Attention(const AttentionShape& shape)
      : BlockedAttention(shape),
        scores_(addScores()),
        query_(addBlock()),
        out_(addBlock()),
        keys_(addMatrix(blocks_.widens())),
        values_(addMatrix(blocks_.widens())) {
    divide(blocks_.count * shape.heads * shape.batch);
  }

  void run(void* const* operands, void* result, void* scratch,
           host::ThreadPool& pool) const override {
    overItems(scratch, pool, [&](int64_t item, void* area) {
      const int64_t head = item / blocks_.count, number = item % blocks_.count;
      float *const scores = floats(area, scores_), *const query = floats(area, query_),
                   *const out = floats(area, out_);
      alignas(64) float totals[kMostQueries];
      blocks_.load(query, operands[0], head, number);
      blocks_.weights(scores, totals, blocks_.matrix(operands[1], head, floats(area, keys_)), query,
                      blocks_.shape.masked ? operands[3] : nullptr, head, number);
      blocks_.sumOverKeys(out, blocks_.matrix(operands[2], head, floats(area, values_)), scores,
                          number);
      blocks_.math(number).divide(out, blocks_.shape.features, totals);
      blocks_.store(result, out, head, number);
    });
  }

 private:
  size_t scores_, query_, out_, keys_, values_;
};

// A head at a time, since all blocks add to the gradients of its keys and values.
class AttentionBackward final : public BlockedAttention {
 public:
  explicit AttentionBackward(const AttentionShape& shape)
      : BlockedAttention(shape),
        weights_(addScores()),
        gradients_(addScores()),
        query_(addBlock()),
        gradOutput_(addBlock()),
        gradQuery_(addBlock()),
        keys_(addMatrix(blocks_.widens())),
        values_(addMatrix(blocks_.widens())),
        gradKeys_(addMatrix(true)),
        gradValues_(addMatrix(true)) {
    divide(shape.heads * shape.batch);
  }

  void run(void* const* operands, void* result, void* scratch,
           host::ThreadPool& pool) const override {
    overItems(scratch, pool, [&](int64_t head, void* area) {
      const float* keys = blocks_.matrix(operands[2], head, floats(area, keys_));
      const float* values = blocks_.matrix(operands[3], head, floats(area, values_));
      for (int64_t number = 0; number < blocks_.count; ++number) {
        runBlock(operands, keys, values, result, area, head, number);
      }
      const int64_t elements = blocks_.shape.features * blocks_.shape.keys;
      const int64_t first = blocks_.shape.queryElements() + head * elements;
      blocks_.narrow(result, floats(area, gradKeys_), first, elements);
      blocks_.narrow(result, floats(area, gradValues_), first + blocks_.shape.keyElements(),
                     elements);
    });
  }

 private:
  void runBlock(void* const* operands, const float* keys, const float* values, void* result,
                void* area, int64_t head, int64_t number) const {
    float *const weights = floats(area, weights_), *const gradients = floats(area, gradients_);
    float *const query = floats(area, query_), *const gradOutput = floats(area, gradOutput_),
                 *const gradQuery = floats(area, gradQuery_);
    const int64_t count = blocks_.shape.keys;
    alignas(64) float totals[kMostQueries];
    blocks_.load(gradOutput, operands[0], head, number);
    blocks_.load(query, operands[1], head, number);
    blocks_.weights(weights, totals, keys, query, blocks_.shape.masked ? operands[4] : nullptr,
                    head, number);
    blocks_.math(number).divide(weights, count, totals);
    blocks_.sumOverQueries(floats(area, gradValues_), gradOutput, weights, number);
    blocks_.productOfKeys(gradients, values, gradOutput, number);
    blocks_.math(number).softmaxGradient(gradients, weights, count);
    blocks_.sumOverQueries(floats(area, gradKeys_), query, gradients, number);
    blocks_.sumOverKeys(gradQuery, keys, gradients, number);
    blocks_.store(result, gradQuery, head, number);
  }

  size_t weights_, gradients_, query_, gradOutput_, gradQuery_;
  size_t keys_, values_, gradKeys_, gradValues_;
};

}  // namespace

bool isFasterInBlocks(const LibraryCall& call) {
  const AttentionShape shape = attentionShape(call);
  return std::min(shape.time, shape.keys) >= kShortest && shape.time * shape.keys >= kFewestScores;
}

std::shared_ptr<LibraryFunction> prepareAttention(const LibraryCall& call) {
  const AttentionShape shape = attentionShape(call);
  if (call.op == ir::Op::Attention) return std::make_shared<Attention>(shape);
  return std::make_shared<AttentionBackward>(shape);
}

}  // namespace fl::library
