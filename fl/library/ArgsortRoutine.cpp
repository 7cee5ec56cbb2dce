// The indices that sort lines along one axis. An element and its index make one unsigned number, so
// that Highway's vectorised sort, which is not stable, gives the one order that Ops.def states. If
// few of a line are wanted, the least keys of small parts of it tell which parts can hold them, and
// only those are sorted.
#include <hwy/contrib/sort/vqsort.h>
#include <hwy/targets.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "fl/library/Functions.h"
#include "fl/library/Lines.h"

namespace fl::library {
namespace {

template <typename T>
using BitsOf = std::conditional_t<sizeof(T) == 8, uint64_t,
                                  std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
template <typename T>
const auto kInfinity = std::bit_cast<BitsOf<T>>(T(std::numeric_limits<float>::infinity()));

// Unsigned numbers in the order of the elements.
template <typename T>
BitsOf<T> orderedKey(T x) {
  using Key = BitsOf<T>;
  constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<Key>(static_cast<Key>(x) ^ (std::is_signed_v<T> ? kSign : 0));
  } else {
    // Floats: -0 is 0, NaN come last. Signs are in no order: there is no branch on them.
    const Key bits = std::bit_cast<Key>(x);
    const Key magnitude = bits & static_cast<Key>(~kSign);
    const Key flip = static_cast<Key>(-(bits >> (8 * sizeof(Key) - 1)));
    const Key key = static_cast<Key>(kSign + (magnitude ^ flip) - flip);
    return magnitude > kInfinity<T> ? std::numeric_limits<Key>::max() : key;
  }
}

// The key above, the index below.
uint32_t join(uint16_t key, uint64_t index) {
  return uint32_t{key} << 16 | static_cast<uint32_t>(index);
}
uint64_t join(uint32_t key, uint64_t index) { return uint64_t{key} << 32 | index; }
hwy::uint128_t join(uint64_t key, uint64_t index) { return {.lo = index, .hi = key}; }
int64_t indexOf(uint32_t joined) { return joined & std::numeric_limits<uint16_t>::max(); }
int64_t indexOf(uint64_t joined) { return joined & std::numeric_limits<uint32_t>::max(); }
int64_t indexOf(hwy::uint128_t joined) { return static_cast<int64_t>(joined.lo); }

uint32_t keyOf(uint32_t joined) { return joined >> 16; }
uint64_t keyOf(uint64_t joined) { return joined >> 32; }
uint64_t keyOf(hwy::uint128_t joined) { return joined.hi; }

struct Before {
  bool operator()(auto x, auto y) const { return x < y; }
  bool operator()(const hwy::uint128_t& x, const hwy::uint128_t& y) const {
    return x.hi != y.hi ? x.hi < y.hi : x.lo < y.lo;
  }
};

class Sorter {
 public:
  explicit Sorter(int64_t most) {
    if (most > kShort) long_.emplace();
  }
  template <typename Number>
  void operator()(Number* numbers, int64_t count) const {
    if (count > kShort) {
      (*long_)(numbers, count, hwy::SortAscending());
    } else {
      std::sort(numbers, numbers + count, Before());
    }
  }

 private:
  static constexpr int64_t kShort = 24;  // Highway's is slower up to here
  std::optional<hwy::Sorter> long_;
};

// A tile of elements: rows that lie a power of two apart drive one another out of the caches, so
// these are few.
constexpr int64_t kRows = 8, kColumns = 16, kTile = kRows * kColumns;

// The functions with target("avx2") are loops that GCC vectorises; every processor that fl runs on
// has AVX2 (fl/tile/TileOps.h). This one finds the least key of each column of a tile.
template <typename T, typename Key, size_t... row>
__attribute__((target("avx2"))) void leastOf(const T* tile, int64_t stride, Key* __restrict least,
                                             std::index_sequence<0, row...>) {
  for (int64_t i = 0; i < kColumns; ++i) {
    Key key = orderedKey(tile[i]);
    ((key = std::min(key, orderedKey(tile[row * stride + i]))), ...);
    least[i] = key;
  }
}

template <typename Key>
__attribute__((target("avx2"))) void lower(Key* __restrict least, const Key* others) {
  for (int64_t i = 0; i < kColumns; ++i) least[i] = std::min(least[i], others[i]);
}

template <typename Key>
__attribute__((target("avx2"))) bool anyBelow(const Key* keys, const Key* limits) {
  Key any = 0;
  for (int64_t i = 0; i < kColumns; ++i) any |= static_cast<Key>(keys[i] < limits[i]);
  return any != 0;
}

// The work on lines of `length` elements, of which the first `count` are wanted: on one line or on
// kColumns side by side. A tile has kRows elements of each of these, or kTile of the one.
struct LinesShape {
  int64_t lines, length, count;

  // Whether that is faster than to sort whole lines. Tiles have at least `count` columns of a line.
  bool selects() const { return count > 0 && 16 * count < length && length >= kTile + 2 * count; }
  int64_t step() const { return kTile / lines; }
  // Those at the end of a line; in front of them are at least `count` elements.
  int64_t tiles() const { return (length - count) / step(); }
  // As many as some 2 * count columns of a line: what all tiles are merged into for their limits.
  int64_t mergedTiles() const {
    return std::min(tiles(), (2 * count * lines + kColumns - 1) / kColumns);
  }
  int64_t leastKeys() const { return selects() ? (tiles() + 2 * mergedTiles()) * kColumns : 0; }
  // Elements of a line that are kept before those behind the first `count` are dropped.
  int64_t mostKept() const { return 2 * count + 32; }
  int64_t capacity() const { return selects() ? mostKept() + kTile : length; }
};

// Elements of one line, or of kColumns lines side by side, joined with their indices.
template <typename T, typename Key, int64_t lines>
class Joining {
 public:
  using Joined = decltype(join(Key(), 0));
  using LineKey = decltype(orderedKey(T()));

  // Lines of `joined` are `joinedStride` apart; `least` is memory of shape.leastKeys().
  Joining(LinesShape shape, const T* from, int64_t stride, Joined* joined, int64_t joinedStride,
          LineKey* least, const Sorter& sort)
      : shape_(shape),
        from_(from),
        stride_(stride),
        joined_(joined),
        joinedStride_(joinedStride),
        least_(least),
        sort_(sort) {}

  // Writes the indices of the first elements.
  void run(int64_t* to) {
    shape_.selects() ? takeFirst() : takeAll();
    for (int64_t i = 0; i < lines; ++i) sort_(line(i), sizes_[i]);
    for (int64_t j = 0; j < shape_.count; ++j) {
      for (int64_t i = 0; i < lines; ++i) to[j * stride_ + i] = indexOf(line(i)[j]);
    }
  }

 private:
  static constexpr bool kOne = lines == 1;

  Joined* line(int64_t i) { return joined_ + i * joinedStride_; }
  LineKey keyAt(int64_t i, int64_t index) const { return orderedKey(from_[index * stride_ + i]); }

  void takeAll() {
    for (int64_t j = 0; j < shape_.length; j += kRows) {
      const int64_t end = std::min(j + kRows, shape_.length);
      for (int64_t i = 0; i < lines; ++i) {
        for (int64_t k = j; k < end; ++k) line(i)[k] = join(Key{keyAt(i, k)}, k);
      }
    }
    std::fill_n(sizes_, lines, shape_.length);
  }

  // Takes what may be among the first `count`.
  void takeFirst() {
    const int64_t step = shape_.step(), front = shape_.length - shape_.tiles() * step;
    for (int64_t t = 0; t < shape_.tiles(); ++t) {
      findLeast(front + t * step, least_ + t * kColumns);
    }
    findLimits();
    for (int64_t i = 0; i < lines; ++i) {
      // Nothing comes behind the last key: the first of the elements that have it are here.
      const bool all = limits_[i] == std::numeric_limits<LineKey>::max();
      sizes_[i] = 0;
      for (int64_t j = 0; j < front; ++j) take(i, j, all);
    }
    for (int64_t t = 0; t < shape_.tiles(); ++t) {
      const LineKey* const least = least_ + t * kColumns;
      if (anyBelow(least, limits_)) takeTile(front + t * step, least);
    }
  }

  void findLeast(int64_t first, LineKey* least) const {
    using Rows = std::make_index_sequence<kRows>;
    const T* const tile = from_ + first * stride_;
    if (!kOne || stride_ == 1) return leastOf(tile, kOne ? kColumns : stride_, least, Rows());
    Elements<T, kTile> copy;
    for (int64_t i = 0; i < kTile; ++i) copy.data()[i] = tile[i * stride_];
    leastOf(copy.data(), kColumns, least, Rows());
  }

  // `count` columns of merged tiles, of different elements, have a least key below the limit.
  void findLimits() {
    const int64_t tiles = shape_.tiles(), mergedTiles = shape_.mergedTiles();
    LineKey* const merged = least_ + tiles * kColumns;
    std::copy_n(least_, mergedTiles * kColumns, merged);
    for (int64_t t = mergedTiles; t < tiles; ++t) {
      lower(merged + t % mergedTiles * kColumns, least_ + t * kColumns);
    }
    LineKey* const keys = merged + mergedTiles * kColumns;
    const int64_t size = mergedTiles * kColumns / lines;
    for (int64_t i = 0; i < lines; ++i) {
      for (int64_t k = 0; k < size; ++k) keys[k] = merged[k * lines + i];
      sort_(keys, size);
      const LineKey key = keys[shape_.count - 1];
      setLimit(i, key == std::numeric_limits<LineKey>::max() ? key : key + 1);
    }
  }

  void takeTile(int64_t first, const LineKey* least) {
    if (kOne) shrink(0);
    for (int64_t i = 0; i < kColumns; ++i) {
      if (least[i] >= limits_[i]) continue;
      if (!kOne) shrink(i);
      for (int64_t row = 0; row < kRows; ++row) {
        kOne ? take(0, first + row * kColumns + i) : take(i, first + row);
      }
    }
  }

  // Without a branch: whether an element is taken cannot be foreseen.
  void take(int64_t i, int64_t index, bool always = false) {
    const LineKey key = keyAt(i, index);
    line(i)[sizes_[i]] = join(Key{key}, index);
    sizes_[i] += always | (key < limits_[i]);
  }

  // Drops what is not among the first `count`, if it is much. Later elements with the key of the
  // last of these come behind it.
  void shrink(int64_t i) {
    if (sizes_[i] <= shape_.mostKept()) return;
    std::nth_element(line(i), line(i) + shape_.count - 1, line(i) + sizes_[i], Before());
    sizes_[i] = shape_.count;
    setLimit(i, keyOf(line(i)[shape_.count - 1]));
  }

  void setLimit(int64_t i, LineKey key) { std::fill_n(limits_ + i, kColumns / lines, key); }

  const LinesShape shape_;
  const T* const from_;
  const int64_t stride_;
  Joined* const joined_;
  const int64_t joinedStride_;
  LineKey* const least_;  // of the columns of all tiles, then what finds the limits
  const Sorter& sort_;
  int64_t sizes_[lines];
  LineKey limits_[kColumns];  // of the columns of a tile
};

class ArgsortRoutine : public LibraryFunction {
 public:
  explicit ArgsortRoutine(const LibraryCall& call)
      : type_(call.operands[0].type),
        shape_(call.operands[0].shape, call.attrs[0]),
        count_(call.attrs[1]) {
    const bool sortsTogether = shape_.inner * shape_.outer >= kLeastGroups * kColumns &&
                               lineBytes() * kColumns <= kMostGroupBytes;
    groups_ = lines(1).selects() || sortsTogether ? shape_.inner / kColumns : 0;
    parts_ = groups_ + shape_.inner - groups_ * kColumns;
    const int64_t all = parts_ * shape_.outer;
    const int64_t elements = std::max<int64_t>(shape_.length, 1) * mostLines();
    const int64_t ranges = groups_ > 0 ? kMostRanges / 4 : kMostRanges;
    grain_ = std::max({kGrain / elements, (all + ranges - 1) / ranges, int64_t{1}});
    ranges_ = (all + grain_ - 1) / grain_;
  }

  // Lines for each range.
  size_t scratchBytes() const override { return ranges_ * rangeBytes(); }
  std::string implementation() const override { return "routine"; }

  void run(void* const* operands, void* result, void* scratch,
           host::ThreadPool& pool) const override {
    dispatchType(type_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      using Key = decltype(orderedKey(T()));
      using WideKey = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
      const auto sort = shape_.length <= int64_t{std::numeric_limits<uint16_t>::max()}
                            ? &ArgsortRoutine::sortParts<T, Key>
                        : shape_.length <= int64_t{std::numeric_limits<uint32_t>::max()}
                            ? &ArgsortRoutine::sortParts<T, WideKey>
                            : &ArgsortRoutine::sortParts<T, uint64_t>;
      pool.parallelFor(parts_ * shape_.outer, grain_, [&](int64_t begin, int64_t end) {
        char* const own = static_cast<char*>(scratch) + begin / grain_ * rangeBytes();
        (this->*sort)(static_cast<const T*>(operands[0]), static_cast<int64_t*>(result), own, begin,
                      end);
      });
    });
  }

 private:
  // Ranges of parts, each of which works in memory of its own.
  static constexpr int64_t kMostRanges = 64;
  // Groups of lines that are worth fewer ranges, if they are sorted.
  static constexpr int64_t kLeastGroups = 16;
  // Of a sorted group, which stays in the second cache.
  static constexpr size_t kMostGroupBytes = 1 << 20;

  LinesShape lines(int64_t count) const { return {count, shape_.length, count_}; }
  int64_t mostLines() const { return groups_ > 0 ? kColumns : 1; }

  // In groups one cache line more than is needed: lines that lie a power of two apart drive one
  // another out of the caches.
  size_t lineBytes() const {
    const size_t index = shape_.length <= std::numeric_limits<uint16_t>::max()   ? 2
                         : shape_.length <= std::numeric_limits<uint32_t>::max() ? 4
                                                                                 : 8;
    const size_t joined = 2 * std::max(getTypeSize(type_), index);
    return (joined * lines(1).capacity() + 63) / 64 * 64 + (groups_ > 0 ? 64 : 0);
  }
  size_t rangeBytes() const {
    const size_t key = std::max<size_t>(getTypeSize(type_), 2);
    const size_t least = key * lines(mostLines()).leastKeys();
    return lineBytes() * mostLines() + (least + 63) / 64 * 64;
  }

  template <typename T, typename Key>
  void sortParts(const T* in, int64_t* out, char* scratch, int64_t begin, int64_t end) const {
    const Sorter sort(shape_.length);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t o = i / parts_, part = i % parts_;
      const int64_t group = std::min(part, groups_), k = group * (kColumns - 1) + part;
      const T* const from = in + k + shape_.inner * shape_.length * o;
      int64_t* const to = out + k + shape_.inner * count_ * o;
      const auto sortLines = part < groups_ ? &ArgsortRoutine::sortLines<T, Key, kColumns>
                                            : &ArgsortRoutine::sortLines<T, Key, 1>;
      (this->*sortLines)(from, to, scratch, sort);
    }
  }

  template <typename T, typename Key, int64_t count>
  void sortLines(const T* from, int64_t* to, char* scratch, const Sorter& sort) const {
    using Lines = Joining<T, Key, count>;
    using Joined = typename Lines::Joined;
    using LineKey = typename Lines::LineKey;
    auto* const least = reinterpret_cast<LineKey*>(scratch + lineBytes() * mostLines());
    Lines(lines(count), from, shape_.inner, reinterpret_cast<Joined*>(scratch),
          lineBytes() / sizeof(Joined), least, sort)
        .run(to);
  }

  const dtype type_;
  const AxisShape shape_;
  const int64_t count_;
  int64_t groups_ = 0;  // of kColumns lines side by side, among inner lines; the others are single
  int64_t parts_;       // groups and single lines, among inner lines
  int64_t grain_, ranges_;
};

}  // namespace

std::shared_ptr<LibraryFunction> prepareArgsort(const LibraryCall& call) {
  // FL_CPU holds for Highway as well.
  static const bool limited = [] {
    const bool isV3 = tile::bestTileVariant() == tile::TileVariant::V3;
    if (isV3) hwy::DisableTargets(HWY_AVX3 | HWY_AVX3_DL);
    return isV3;
  }();
  (void)limited;
  return std::make_shared<ArgsortRoutine>(call);
}

}  // namespace fl::library
