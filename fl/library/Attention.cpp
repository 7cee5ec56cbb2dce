// Attention in blocks of queries: the scores of a block against all keys are all that is held of
// the (time, keys) scores, so that memory grows with the sequence and not with its square. After
// Rabe and Staats, Self-attention Does Not Need O(n^2) Memory, arXiv 2112.05682, and, for the
// gradient, which computes the scores again, Dao et al., FlashAttention, arXiv 2205.14135.
//
// In memory a head is D rows of `time` elements, or, with its features first, `time` rows of D, and
// scores are a row of queries for every key: maxima and sums over the keys are taken of whole rows,
// and no product needs a copy of its operands but where their rows conflict (gapBehind()). 16-bit
// floats are computed in f32.
#include <algorithm>
#include <array>
#include <cfloat>
#include <optional>

#include "fl/base/Error.h"
#include "fl/ir/Inference.h"
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

struct AttentionShape {
  int64_t time, keys, features, heads, batch;
  dtype type;
  bool featuresFirst;
  // Steps between a mask's elements along the four dimensions of the scores; 0 where it has one.
  bool masked = false;
  std::array<int64_t, 4> mask = {};

  int64_t queryElements() const { return time * features * heads * batch; }
  int64_t keyElements() const { return keys * features * heads * batch; }
};

AttentionShape attentionShape(const LibraryCall& call) {
  const size_t first = call.op == ir::Op::AttentionBackward ? 1 : 0;
  const Shape query = ir::headsOf(call.operands[first].shape, call.attrs);
  const Shape key = ir::headsOf(call.operands[first + 1].shape, call.attrs);
  AttentionShape shape{query[0], key[0],           query[1],          query[2],
                       query[3], call.result.type, call.attrs[0] != 0};
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

  static void apply(ir::Op op, float* out, const float* x, const float* y, int64_t count) {
    static const tile::TileOps& ops = tile::tileOps(tile::bestTileVariant());
    ops.apply[static_cast<int>(op)][static_cast<int>(dtype::f32)](out, x, y, nullptr, count);
  }

 private:
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
    for (int64_t i = row == tile ? width_ : 0; i < kTile; i += width_)
      std::copy_n(row, width_, tile + i);
  }

  int64_t width_;
};

// Rows in f32, of `leading` elements each; what is read is not written.
struct Matrix {
  float* data;
  int64_t leading;
};

// Some positions of a head in an operand: runs of `length` elements, the first at `begin`.
struct Runs {
  int64_t count, length, stride, begin;
  // Of copies.
  int64_t leading() const { return length + gapBehind(length); }
};

// What both directions do for a block of queries of one head.
class Blocks {
 public:
  explicit Blocks(const AttentionShape& shape)
      : shape(shape), most(queriesOfBlock(shape)), count(ceilDiv(shape.time, most)) {
    if (shape.type != dtype::f32) widening_.emplace(shape.type);
  }

  int64_t queriesOf(int64_t block) const { return std::min(most, shape.time - block * most); }
  // Of the rows in which the scores of a block's queries lie.
  int64_t widthOf(int64_t block) const { return ceilDiv(queriesOf(block), kGroup) * kGroup; }
  RowMath math(int64_t block) const { return RowMath(widthOf(block)); }
  // Elements of a copy in f32 of an operand, or for a result; 0 where there is none. A product that
  // sums over an operand's runs crosses them; none crosses a result's.
  int64_t copied(const Runs& runs, bool isCrossed) const {
    const bool isCopied = widening_ || (isCrossed && gapBehind(runs.stride) > 0);
    return isCopied ? runs.count * runs.leading() : 0;
  }

  Runs block(int64_t head, int64_t number) const {
    return runs(head, shape.time, number * most, queriesOf(number));
  }
  Runs allKeys(int64_t head) const { return runs(head, shape.keys, 0, shape.keys); }

  // An operand's where they are, or in `copy`.
  Matrix read(const void* operand, const Runs& runs, float* copy, bool isCrossed = true) const {
    void* const from = at(const_cast<void*>(operand), runs.begin * getTypeSize(shape.type));
    if (copied(runs, isCrossed) == 0) return {static_cast<float*>(from), runs.stride};
    copyRuns(copy, runs.leading(), from, widening_, runs.count, runs.length, runs.stride);
    return {copy, runs.leading()};
  }
  // A result's, to be computed there and then be written.
  Matrix place(void* result, const Runs& runs, float* copy) const {
    return widening_ ? Matrix{copy, runs.length}
                     : Matrix{static_cast<float*>(result) + runs.begin, runs.stride};
  }
  void write(void* result, const Runs& runs, const Matrix& from) const {
    if (!widening_) return;
    void* to = static_cast<uint16_t*>(result) + runs.begin;
    widening_->narrowRuns(to, from.data, runs.count, runs.length, runs.stride);
  }

  // exp(scores - their maximum) of a block, a row for every key, and the sums over the keys.
  void weights(float* scores, float* totals, const Matrix& keys, const Matrix& query,
               const void* mask, int64_t head, int64_t number) const {
    productOfKeys(scores, keys, query, number);
    if (shape.masked) addMask(scores, mask, head, number);
    math(number).softmax(scores, shape.keys, totals);
  }

  // Of what a block's queries are given, a number each.
  void divide(const Matrix& block, const float* by, int64_t number) const {
    const auto [count, length, stride, begin] = this->block(0, number);
    const int64_t whole = length & -kGroup;
    alignas(64) float divisors[kTile];
    for (int64_t row = 0; row < count; ++row) {
      float* const run = block.data + row * block.leading;
      if (shape.featuresFirst) std::fill_n(divisors, std::min(whole, kTile), by[row]);
      const float* const divisor = shape.featuresFirst ? divisors : by;
      for (int64_t i = 0; i < whole; i += kTile)
        RowMath::apply(ir::Op::Div, run + i, run + i, divisor, std::min(kTile, whole - i));
      for (int64_t i = whole; i < length; ++i) run[i] /= by[shape.featuresFirst ? row : i];
    }
  }

  // A row for every key: sums over the features. What lies behind the queries of a row is 0.
  void productOfKeys(float* out, const Matrix& keys, const Matrix& block, int64_t number) const {
    const int64_t queries = queriesOf(number), width = widthOf(number);
    gemm(shape.featuresFirst ? "NT" : "TN", shape.keys, queries, shape.features, keys, block, 0,
         {out, width});
    for (int64_t key = 0; key < shape.keys; ++key)
      std::fill(out + key * width + queries, out + (key + 1) * width, 0.0f);
  }
  // Of a block: sums over the keys.
  void sumOverKeys(const Matrix& out, const Matrix& keys, float* scores, int64_t number) const {
    const Matrix by{scores, widthOf(number)};
    shape.featuresFirst
        ? gemm("TN", queriesOf(number), shape.features, shape.keys, by, keys, 0, out)
        : gemm("NN", shape.features, queriesOf(number), shape.keys, keys, by, 0, out);
  }
  // Adds to, or begins, what all keys are given: sums over the block's queries.
  void sumOverQueries(const Matrix& out, const Matrix& block, float* scores, int64_t number) const {
    const Matrix by{scores, widthOf(number)};
    const float add = number == 0 ? 0 : 1;
    shape.featuresFirst
        ? gemm("NN", shape.keys, shape.features, queriesOf(number), by, block, add, out)
        : gemm("NT", shape.features, shape.keys, queriesOf(number), block, by, add, out);
  }

  const AttentionShape shape;
  const int64_t most, count;

 private:
  // Positions [first, first + count) of `all`.
  Runs runs(int64_t head, int64_t all, int64_t first, int64_t count) const {
    if (!shape.featuresFirst) {
      return {shape.features, count, all, head * shape.features * all + first};
    }
    const int64_t stride = shape.features * shape.heads;
    const int64_t position = head / shape.heads * all + first;
    return {count, shape.features, stride, position * stride + head % shape.heads * shape.features};
  }

  void addMask(float* scores, const void* mask, int64_t head, int64_t number) const {
    alignas(64) float copy[kMostQueries] = {};
    const int64_t columns = queriesOf(number);
    const auto& steps = shape.mask;
    const int64_t first =
        head % shape.heads * steps[2] + head / shape.heads * steps[3] + number * most * steps[0];
    for (int64_t key = 0; key < shape.keys; ++key, scores += widthOf(number)) {
      const int64_t given = steps[0] == 0 ? 1 : columns;
      const float* const row = read(mask, {1, given, given, first + key * steps[1]}, copy).data;
      if (row != copy) std::copy_n(row, given, copy);
      if (given == 1) std::fill_n(copy + 1, columns - 1, copy[0]);
      RowMath::apply(ir::Op::Add, scores, scores, copy, widthOf(number));
    }
  }

  // Of two operands, each plain, N, or transposed, T; by row.
  static void gemm(const char* how, int64_t m, int64_t n, int64_t k, const Matrix& a,
                   const Matrix& b, float beta, const Matrix& c) {
    const dnnl_status_t status = dnnl_sgemm(how[0], how[1], m, n, k, 1.0f, a.data, a.leading,
                                            b.data, b.leading, beta, c.data, c.leading);
    FL_INTERNAL_CHECK(status == dnnl_success, "dnnl_sgemm status ", static_cast<int>(status));
  }

  std::optional<Widening> widening_;  // of 16-bit floats
};

class BlockedAttention : public LibraryFunction {
 public:
  explicit BlockedAttention(const AttentionShape& shape) : blocks_(shape) {}
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

  size_t addScores() { return area_.add(4 * blocks_.shape.keys * blocks_.widthOf(0)); }
  // Copies in f32, of operands and for results.
  size_t add(const Runs& runs, bool isCrossed = true) {
    return area_.add(4 * blocks_.copied(runs, isCrossed));
  }
  static float* floats(void* area, size_t offset) { return static_cast<float*>(at(area, offset)); }

  const Blocks blocks_;

 private:
  ScratchLayout area_;
  int64_t items_ = 0, grain_ = 1, ranges_ = 1;
};

class Attention final : public BlockedAttention {
 public:
  explicit Attention(const AttentionShape& shape)
      : BlockedAttention(shape),
        featuresFirst_(shape.featuresFirst),
        scores_(addScores()),
        query_(add(blocks_.block(0, 0), !featuresFirst_)),
        out_(add(blocks_.block(0, 0), false)),
        keys_(add(blocks_.allKeys(0), !featuresFirst_)),
        values_(add(blocks_.allKeys(0), featuresFirst_)) {
    divide(blocks_.count * shape.heads * shape.batch);
  }

  void run(void* const* operands, void* result, void* scratch,
           host::ThreadPool& pool) const override {
    overItems(scratch, pool, [&](int64_t item, void* area) {
      const int64_t head = item / blocks_.count, number = item % blocks_.count;
      const Runs block = blocks_.block(head, number), keys = blocks_.allKeys(head);
      float* const scores = floats(area, scores_);
      alignas(64) float totals[kMostQueries];
      const Matrix key = blocks_.read(operands[1], keys, floats(area, keys_), !featuresFirst_);
      const Matrix query = blocks_.read(operands[0], block, floats(area, query_), !featuresFirst_);
      const Matrix values = blocks_.read(operands[2], keys, floats(area, values_), featuresFirst_);
      blocks_.weights(scores, totals, key, query, blocks_.shape.masked ? operands[3] : nullptr,
                      head, number);
      const Matrix out = blocks_.place(result, block, floats(area, out_));
      blocks_.sumOverKeys(out, values, scores, number);
      blocks_.divide(out, totals, number);
      blocks_.write(result, block, out);
    });
  }

 private:
  bool featuresFirst_;  // whether it is values that a sum crosses, and not queries and keys
  size_t scores_, query_, out_, keys_, values_;
};

// A head at a time, since all blocks add to the gradients of its keys and values.
class AttentionBackward final : public BlockedAttention {
 public:
  explicit AttentionBackward(const AttentionShape& shape)
      : BlockedAttention(shape),
        weights_(addScores()),
        gradients_(addScores()),
        query_(add(blocks_.block(0, 0))),
        gradOutput_(add(blocks_.block(0, 0))),
        gradQuery_(add(blocks_.block(0, 0), false)),
        keys_(add(blocks_.allKeys(0))),
        values_(add(blocks_.allKeys(0))),
        gradKeys_(add(blocks_.allKeys(0), false)),
        gradValues_(add(blocks_.allKeys(0), false)) {
    divide(shape.heads * shape.batch);
  }

  void run(void* const* operands, void* result, void* scratch,
           host::ThreadPool& pool) const override {
    const size_t bytes = getTypeSize(blocks_.shape.type);
    void* const ofKeys = at(result, bytes * blocks_.shape.queryElements());
    void* const ofValues = at(ofKeys, bytes * blocks_.shape.keyElements());
    overItems(scratch, pool, [&](int64_t head, void* area) {
      const Runs all = blocks_.allKeys(head);
      const OfKeys given{blocks_.read(operands[2], all, floats(area, keys_)),
                         blocks_.read(operands[3], all, floats(area, values_)),
                         blocks_.place(ofKeys, all, floats(area, gradKeys_)),
                         blocks_.place(ofValues, all, floats(area, gradValues_))};
      for (int64_t number = 0; number < blocks_.count; ++number)
        runBlock(operands, given, result, area, head, number);
      blocks_.write(ofKeys, all, given.gradKeys);
      blocks_.write(ofValues, all, given.gradValues);
    });
  }

 private:
  struct OfKeys {
    Matrix keys, values, gradKeys, gradValues;
  };

  void runBlock(void* const* operands, const OfKeys& given, void* gradQueries, void* area,
                int64_t head, int64_t number) const {
    float *const weights = floats(area, weights_), *const gradients = floats(area, gradients_);
    const Runs block = blocks_.block(head, number);
    const Matrix gradOutput = blocks_.read(operands[0], block, floats(area, gradOutput_));
    const Matrix query = blocks_.read(operands[1], block, floats(area, query_));
    const int64_t count = blocks_.shape.keys;
    alignas(64) float totals[kMostQueries];
    blocks_.weights(weights, totals, given.keys, query,
                    blocks_.shape.masked ? operands[4] : nullptr, head, number);
    blocks_.math(number).divide(weights, count, totals);
    blocks_.sumOverQueries(given.gradValues, gradOutput, weights, number);
    blocks_.productOfKeys(gradients, given.values, gradOutput, number);
    blocks_.math(number).softmaxGradient(gradients, weights, count);
    blocks_.sumOverQueries(given.gradKeys, query, gradients, number);
    const Matrix gradQuery = blocks_.place(gradQueries, block, floats(area, gradQuery_));
    blocks_.sumOverKeys(gradQuery, given.keys, gradients, number);
    blocks_.write(gradQueries, block, gradQuery);
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
