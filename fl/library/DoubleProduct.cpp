#include "fl/library/DoubleProduct.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

namespace fl::library::FL_LOOPS_VARIANT {
namespace {

#ifdef __AVX512F__
using Vector = __m512d;
Vector multiplyAdd(Vector x, Vector y, Vector sum) { return _mm512_fmadd_pd(x, y, sum); }
Vector broadcast(double x) { return _mm512_set1_pd(x); }
constexpr int64_t kColumns = 8;
#else
using Vector = __m256d;
Vector multiplyAdd(Vector x, Vector y, Vector sum) { return _mm256_fmadd_pd(x, y, sum); }
Vector broadcast(double x) { return _mm256_set1_pd(x); }
constexpr int64_t kColumns = 4;
#endif
constexpr int64_t kLanes = sizeof(Vector) / sizeof(double);
Vector load(const double* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof(vector));
  return vector;
}
// Sums of a tile fill most of the registers.
constexpr int64_t kVectors = 3, kRows = kVectors * kLanes;
static_assert(DoubleProduct::kRows % kRows == 0 && DoubleProduct::kColumns % kColumns == 0);

// Elements of a line that are copied before the next line's, so that both sides stay in the cache.
constexpr int64_t kRun = 8;

// Lines of a factor as a tile takes them.
struct Panel {
  const double* data;
  int64_t step, next;
};

Factor part(const Factor& factor, int64_t first, int64_t k) {
  return {factor.data + first * factor.step + k * factor.next, factor.count - first, factor.step,
          factor.next};
}

// The lines of a factor, `width` of them in a panel, of `depth` elements. Whole panels are taken as
// they lie if that is asked for, others from copies, with lines of zeros behind the last.
template <int64_t width>
class Panels {
 public:
  Panels(const Factor& factor, int64_t depth, bool isDirect, double* copy)
      : factor_(factor),
        depth_(depth),
        direct_(isDirect ? factor.count / width * width : 0),
        copy_(copy) {
    for (int64_t first = direct_; first < factor.count; first += width)
      pack(part(factor, first, 0), copy + first * depth);
  }

  Panel at(int64_t first) const {
    if (first < direct_) return {part(factor_, first, 0).data, factor_.step, factor_.next};
    return {copy_ + first * depth_, 1, width};
  }
  // Behind the copies.
  double* end() const { return copy_ + (factor_.count + width - 1) / width * width * depth_; }

 private:
  void pack(const Factor& from, double* to) const {
    if (from.step == 1 && from.count >= width) {
      for (int64_t i = 0; i < depth_; ++i)
        std::copy_n(from.data + i * from.next, width, to + i * width);
      return;
    }
    const int64_t lines = std::min(width, from.count);
    if (lines < width) std::fill_n(to, width * depth_, 0.0);
    for (int64_t run = 0; run < depth_; run += kRun) {
      const int64_t end = std::min(run + kRun, depth_);
      for (int64_t line = 0; line < lines; ++line)
        for (int64_t i = run; i < end; ++i)
          to[i * width + line] = from.data[line * from.step + i * from.next];
    }
  }

  Factor factor_;
  int64_t depth_, direct_;
  double* copy_;
};

// A tile of the result.
struct Tile {
  double* out;
  int64_t leading, rows, columns;
  bool adds;  // to what is there
};

template <int64_t vectors, int64_t columns>
void store(const Tile& tile, const Vector (&sums)[columns][vectors]) {
  if (tile.rows == vectors * kLanes && tile.columns == columns) {
#pragma GCC unroll 8
    for (int64_t column = 0; column < columns; ++column) {
#pragma GCC unroll 3
      for (int64_t i = 0; i < vectors; ++i) {
        double* to = tile.out + column * tile.leading + i * kLanes;
        Vector sum = sums[column][i];
        if (tile.adds) sum += load(to);
        std::memcpy(to, &sum, sizeof(sum));
      }
    }
    return;
  }
  for (int64_t column = 0; column < tile.columns; ++column) {
    double* to = tile.out + column * tile.leading;
    const auto* from = reinterpret_cast<const double*>(sums[column]);
    for (int64_t row = 0; row < tile.rows; ++row)
      to[row] = tile.adds ? to[row] + from[row] : from[row];
  }
}

template <int64_t vectors, int64_t columns>
void multiplyTile(Panel lhs, Panel rhs, int64_t depth, const Tile& tile) {
  Vector sums[columns][vectors] = {};
  for (int64_t k = 0; k < depth; ++k, lhs.data += lhs.next, rhs.data += rhs.next) {
    Vector rows[vectors];
#pragma GCC unroll 3
    for (int64_t i = 0; i < vectors; ++i) rows[i] = load(lhs.data + i * kLanes);
#pragma GCC unroll 8
    for (int64_t column = 0; column < columns; ++column) {
      const Vector factor = broadcast(rhs.data[column * rhs.step]);
#pragma GCC unroll 3
      for (int64_t i = 0; i < vectors; ++i)
        sums[column][i] = multiplyAdd(rows[i], factor, sums[column][i]);
    }
  }
  store<vectors, columns>(tile, sums);
}

template <int64_t columns>
void multiplyPanels(const Panel& lhs, const Panel& rhs, int64_t depth, const Tile& tile) {
  static_assert(kVectors == 3);
  if (tile.rows > 2 * kLanes) return multiplyTile<3, columns>(lhs, rhs, depth, tile);
  if (tile.rows > kLanes) return multiplyTile<2, columns>(lhs, rhs, depth, tile);
  multiplyTile<1, columns>(lhs, rhs, depth, tile);
}

}  // namespace

void multiply(const DoubleProduct& product) {
  const int64_t m = product.lhs.count, n = product.rhs.count;
  for (int64_t k = 0; k < product.k; k += DoubleProduct::kDepth) {
    const int64_t depth = std::min(DoubleProduct::kDepth, product.k - k);
    // What is read once is not worth a copy.
    const Panels<kRows> lhs(part(product.lhs, 0, k), depth, product.lhs.step == 1 && n <= kColumns,
                            product.copy);
    const Panels<kColumns> rhs(part(product.rhs, 0, k), depth, m <= kRows, lhs.end());
    for (int64_t column = 0; column < n; column += kColumns) {
      for (int64_t row = 0; row < m; row += kRows) {
        const Tile tile = {product.out + column * product.outLeading + row, product.outLeading,
                           std::min(kRows, m - row), std::min(kColumns, n - column), k > 0};
        const auto multiplyThem = tile.columns == 1 ? multiplyPanels<1> : multiplyPanels<kColumns>;
        multiplyThem(lhs.at(row), rhs.at(column), depth, tile);
      }
    }
  }
}

}  // namespace fl::library::FL_LOOPS_VARIANT
