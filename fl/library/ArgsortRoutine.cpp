// The indices that sort lines along one axis. An element and its index make one unsigned number, so
// that Highway's vectorised sort, which is not stable, gives the one order that Ops.def states.
#include <hwy/contrib/sort/vqsort.h>
#include <hwy/targets.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <type_traits>

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

struct Before {
  bool operator()(auto x, auto y) const { return x < y; }
  bool operator()(const hwy::uint128_t& x, const hwy::uint128_t& y) const {
    return x.hi != y.hi ? x.hi < y.hi : x.lo < y.lo;
  }
};

class ArgsortRoutine : public LibraryFunction {
 public:
  explicit ArgsortRoutine(const LibraryCall& call)
      : type_(call.operands[0].type),
        shape_(call.operands[0].shape, call.attrs[0]),
        count_(call.attrs[1]) {
    const int64_t lines = shape_.inner * shape_.outer, length = std::max<int64_t>(shape_.length, 1);
    grain_ = std::max({kGrain / length, (lines + kMostRanges - 1) / kMostRanges, int64_t{1}});
    ranges_ = (lines + grain_ - 1) / grain_;
  }

  // A line for each range.
  size_t scratchBytes() const override { return ranges_ * lineBytes(); }
  std::string implementation() const override { return "routine"; }

  void run(void* const* operands, void* result, void* scratch,
           host::ThreadPool& pool) const override {
    dispatchType(type_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      using Key = decltype(orderedKey(T()));
      using WideKey = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
      const auto sort = shape_.length <= int64_t{std::numeric_limits<uint16_t>::max()}
                            ? &ArgsortRoutine::sortLines<T, Key>
                        : shape_.length <= int64_t{std::numeric_limits<uint32_t>::max()}
                            ? &ArgsortRoutine::sortLines<T, WideKey>
                            : &ArgsortRoutine::sortLines<T, uint64_t>;
      pool.parallelFor(shape_.inner * shape_.outer, grain_, [&](int64_t begin, int64_t end) {
        void* const line = static_cast<char*>(scratch) + begin / grain_ * lineBytes();
        (this->*sort)(static_cast<const T*>(operands[0]), static_cast<int64_t*>(result), line,
                      begin, end);
      });
    });
  }

 private:
  static constexpr int64_t kShort = 32;  // Highway's is slower up to here

  // Sorting a whole line takes as long as selecting more than this part of it.
  static constexpr int64_t kFewOf = 16;

  // Ranges of lines, each of which works in one of its own.
  static constexpr int64_t kMostRanges = 64;

  bool selects() const { return count_ > 0 && kFewOf * count_ < shape_.length; }
  // Elements of a line that are kept, with others that came before they were selected.
  int64_t mostSelected() const { return 2 * count_ + kShort; }

  size_t lineBytes() const {
    const size_t index = shape_.length <= std::numeric_limits<uint16_t>::max()   ? 2
                         : shape_.length <= std::numeric_limits<uint32_t>::max() ? 4
                                                                                 : 8;
    const size_t joined = 2 * std::max(getTypeSize(type_), index);
    return (joined * (selects() ? mostSelected() : shape_.length) + 63) / 64 * 64;
  }

  template <typename T, typename Key>
  void sortLines(const T* in, int64_t* out, void* scratch, int64_t begin, int64_t end) const {
    auto* const line = static_cast<decltype(join(Key(), 0))*>(scratch);
    std::optional<hwy::Sorter> sorter;
    if (shape_.length > kShort) sorter.emplace();
    for (int64_t i = begin; i < end; ++i) {
      const int64_t k = i % shape_.inner, o = i / shape_.inner;
      const T* const from = in + k + shape_.inner * shape_.length * o;
      int64_t* const to = out + k + shape_.inner * count_ * o;
      const int64_t size = gather<T, Key>(from, line);
      if (sorter) {
        (*sorter)(line, size, hwy::SortAscending());
      } else {
        std::sort(line, line + size, Before());
      }
      for (int64_t j = 0; j < count_; ++j) to[j * shape_.inner] = indexOf(line[j]);
    }
  }

  // The elements of a line that may be among its first `count_`, in any order; how many those are.
  template <typename T, typename Key, typename Joined>
  int64_t gather(const T* from, Joined* line) const {
    const auto joined = [&](int64_t j) { return join(Key{orderedKey(from[j * shape_.inner])}, j); };
    if (!selects()) {
      for (int64_t j = 0; j < shape_.length; ++j) line[j] = joined(j);
      return shape_.length;
    }
    int64_t size = 0;
    std::optional<Joined> last;  // of the first ones among those seen
    for (int64_t j = 0; j < shape_.length; ++j) {
      const Joined next = joined(j);
      if (last && !Before()(next, *last)) continue;
      line[size++] = next;
      if (size == mostSelected()) {
        std::nth_element(line, line + count_ - 1, line + size, Before());
        size = count_;
        last = line[size - 1];
      }
    }
    return size;
  }

  const dtype type_;
  const AxisShape shape_;
  const int64_t count_;
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
