// Scatter: result = x, then result[index] = y or += y in the order of y along the axis. Nothing is
// written before all indices are known to be right: the result may be x itself, of which the lines
// that no index names are then left alone.
//
// Where an index stands for a whole line, each line of the result is written once: a list of the
// lines of y that go to it is made first, and lines are independent then.
#include <algorithm>
#include <cstring>
#include <limits>

#include "fl/kernel/Kernel.h"
#include "fl/library/Functions.h"
#include "fl/library/Lines.h"
#include "fl/tile/StreamingCopy.h"

namespace fl::library {
namespace {

// Lines between one that is asked for and the one at work.
constexpr int64_t kLinesAhead = 16;

class ScatterRoutine : public LibraryFunction {
 public:
  explicit ScatterRoutine(const LibraryCall& call)
      : type_(call.result.type),
        adds_(call.op == ir::Op::ScatterAdd),
        to_(call.result.shape, call.attrs[0]),
        from_(call.operands[2].shape, call.attrs[0]),
        index_(call.operands[1].shape, call.attrs[0]),
        math_(type_) {}

  // The index is whole or one line on each side of the axis.
  bool fits() const {
    return (index_.inner == 1 || index_.inner == from_.inner) &&
           (index_.outer == 1 || index_.outer == from_.outer);
  }
  size_t scratchBytes() const override {
    return hasLines() ? index_.outer * (to_.length + from_.length) * sizeof(int32_t) : 0;
  }
  std::string implementation() const override { return "routine"; }

  void run(void* const* operands, void* result, void* scratch,
           host::ThreadPool& pool) const override {
    const auto* index = static_cast<const int64_t*>(operands[1]);
    if (from_.elements() > 0) ir::checkIndices(index, index_.elements(), to_.length);
    const bool isShort = operands[0] == result && from_.elements() <= kGrain;
    dispatchType(type_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T *const x = static_cast<const T*>(operands[0]), *const y =
                                                                 static_cast<const T*>(operands[2]);
      if (hasLines() && !isShort) {
        writeLines(x, y, static_cast<T*>(result), index, static_cast<int32_t*>(scratch), pool);
      } else {
        if (x != result) std::memcpy(result, x, to_.elements() * sizeof(T));
        writeElements(y, static_cast<T*>(result), index, pool);
      }
    });
  }

 private:
  // Shorter lines are not worth a list, whose numbers are small.
  bool hasLines() const {
    constexpr int64_t kShort = 8, kMany = std::numeric_limits<int32_t>::max();
    return index_.inner == 1 && from_.inner >= kShort && from_.elements() > 0 &&
           std::max(to_.length, from_.length) < kMany;
  }

  // Calls f(o, begin, end) for parts [begin, end) of the places of each index of the outer axes.
  // Each part reads the whole index.
  template <typename F>
  void forEachPart(int64_t outer, host::ThreadPool& pool, const F& f) const {
    constexpr int64_t kMostParts = 8, kLeastPlaces = 1 << 10;
    const bool isShared = outer < pool.threads() && from_.length > kGrain;
    const int64_t parts = std::clamp<int64_t>(
        to_.length / kLeastPlaces, 1, isShared ? std::min<int64_t>(kMostParts, pool.threads()) : 1);
    pool.parallelFor(outer * parts, parts > 1 ? 1 : std::max<int64_t>(1, kGrain / from_.length),
                     [&](int64_t first, int64_t last) {
                       for (int64_t i = first; i < last; ++i) {
                         const int64_t part = i % parts;
                         f(i / parts, to_.length * part / parts, to_.length * (part + 1) / parts);
                       }
                     });
  }

  // ---- lines ----

  // What goes where, for one index of the outer axes: by place, a line of y that goes there, or -1.
  // Of lines that replace one another it is the last; of those that are added, the first, and
  // next[i] is the one that follows line i.
  struct Lists {
    int32_t* heads;
    int32_t* next;
  };
  Lists listsOf(int32_t* scratch, int64_t o) const {
    int32_t* const heads = scratch + (index_.outer == 1 ? 0 : o) * (to_.length + from_.length);
    return {heads, heads + to_.length};
  }

  // The lists of places [begin, end). What goes elsewhere is put into a list of its own: a branch
  // on places would be foreseen half of the time.
  void makeLists(const int64_t* index, const Lists& lists, int64_t begin, int64_t end) const {
    int32_t elsewhere = -1, unlisted;
    std::fill_n(lists.heads + begin, end - begin, -1);
    const auto isHere = [&](int64_t place) {
      return static_cast<uint64_t>(place - begin) < static_cast<uint64_t>(end - begin);
    };
    const auto headOf = [&](int64_t place) {
      return isHere(place) ? lists.heads + place : &elsewhere;
    };
    for (int64_t i = 0; i < from_.length && !adds_; ++i)
      *headOf(index[i]) = static_cast<int32_t>(i);
    for (int64_t i = from_.length; adds_ && i-- > 0;) {
      int32_t* const head = headOf(index[i]);
      int32_t* const next[] = {&unlisted, lists.next + i};
      *next[isHere(index[i])] = *head;
      *head = static_cast<int32_t>(i);
    }
  }

  template <typename T>
  void writeLines(const T* x, const T* y, T* result, const int64_t* index, int32_t* scratch,
                  host::ThreadPool& pool) const {
    forEachPart(index_.outer, pool, [&](int64_t o, int64_t begin, int64_t end) {
      makeLists(index + o * from_.length, listsOf(scratch, o), begin, end);
    });
    // What is read of x is in the caches.
    const bool streams =
        x != result && tile::isStreamed(to_.elements() * static_cast<int64_t>(sizeof(T)));
    pool.parallelFor(to_.length * to_.outer, std::max<int64_t>(1, 16 * kGrain / to_.inner),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t line = begin; line < end; ++line) {
                         const int64_t o = line / to_.length, place = line % to_.length;
                         const T* const of = y + to_.inner * from_.length * o;
                         const int64_t at = to_.inner * line;
                         const Lists lists = listsOf(scratch, o);
                         adds_ ? addLines(x + at, of, result + at, lists, place, streams)
                               : moveLine(x + at, of, result + at, lists, place, streams);
                       }
                       tile::finishCopies(streams);
                     });
  }

  // Asks for a line that is read soon.
  template <typename T>
  [[gnu::always_inline]] void fetchLine(const T* line) const {
    constexpr int64_t kMostBytes = 512;
    fetchBytes(line, std::min<int64_t>(kMostBytes, to_.inner * sizeof(T)));
  }

  template <typename T>
  void moveLine(const T* x, const T* y, T* out, const Lists& lists, int64_t place,
                bool streams) const {
    const auto source = [&](int64_t ahead) {
      const int64_t from = lists.heads[place + ahead];
      return from < 0 ? x + to_.inner * ahead : y + to_.inner * from;
    };
    const T *const now = source(0), *const ahead = out + to_.inner * kLinesAhead;
    if (place + kLinesAhead < to_.length && source(kLinesAhead) != ahead)
      fetchLine(source(kLinesAhead));
    if (now != out) tile::copyRun(out, now, to_.inner * sizeof(T), streams);
  }

  template <typename T>
  void addLines(const T* x, const T* y, T* out, const Lists& lists, int64_t place,
                bool streams) const {
    const int64_t inner = to_.inner, first = lists.heads[place];
    if (place + 2 * kLinesAhead < to_.length && lists.heads[place + 2 * kLinesAhead] >= 0)
      __builtin_prefetch(lists.next + lists.heads[place + 2 * kLinesAhead]);
    if (place + kLinesAhead < to_.length) {
      if (lists.heads[place + kLinesAhead] >= 0) fetchLine(x + inner * kLinesAhead);
      for (int64_t i = lists.heads[place + kLinesAhead]; i >= 0; i = lists.next[i])
        fetchLine(y + inner * i);
    }
    if (first < 0 && x == out) return;
    if (first < 0) return tile::copyRun(out, x, inner * sizeof(T), streams);
    for (int64_t k = 0; k < inner; k += kMostWidth) {
      const int64_t count = std::min(kMostWidth, inner - k);
      Elements<T, kMostWidth> sums;
      const T* sum = x + k;
      for (int64_t i = first; i >= 0; i = lists.next[i], sum = sums.data())
        math_.add(sums.data(), sum, y + inner * i + k, count);
      tile::copyRun(out + k, sums.data(), count * sizeof(T), streams);
    }
  }

  // ---- elements ----

  // One for each index, to places [begin, end); others go where nobody reads.
  template <bool adds, typename T>
  void writePlaces(const T* y, const int64_t* index, T* to, int64_t begin, int64_t end) const {
    constexpr int64_t kAhead = 32, kUnread = 16;
    T unread[kUnread] = {};
    const auto target = [&](int64_t i) {
      const bool isHere =
          static_cast<uint64_t>(index[i] - begin) < static_cast<uint64_t>(end - begin);
      T* const targets[] = {unread + i % kUnread, to + index[i]};
      return targets[isHere];
    };
    for (int64_t i = 0; i < from_.length; ++i) {
      if (i + kAhead < from_.length) __builtin_prefetch(target(i + kAhead), 1);
      T& element = *target(i);
      element = adds ? sumOf(element, y[i]) : y[i];
    }
  }

  template <typename T>
  void writeElements(const T* y, T* to, const int64_t* index, host::ThreadPool& pool) const {
    if (from_.inner == 1 && from_.elements() > 0) {
      return forEachPart(from_.outer, pool, [&](int64_t o, int64_t begin, int64_t end) {
        const int64_t* const at = index + (index_.outer == 1 ? 0 : o) * from_.length;
        const T* const from = y + o * from_.length;
        T* const line = to + o * to_.length;
        adds_ ? writePlaces<true>(from, at, line, begin, end)
              : writePlaces<false>(from, at, line, begin, end);
      });
    }
    const int64_t width = std::min(kMostWidth, from_.inner);
    const int64_t blocks = width == 0 ? 0 : (from_.inner + width - 1) / width;
    const int64_t work = std::max<int64_t>(1, width * from_.length);
    pool.parallelFor(
        blocks * from_.outer, std::max<int64_t>(1, kGrain / work), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t first = i % blocks * width;
            writeBlock(y, index, to, first, std::min(first + width, from_.inner), i / blocks);
          }
        });
  }

  // Elements [first, last) of each line, in the order of lines.
  template <typename T>
  void writeBlock(const T* y, const int64_t* index, T* to, int64_t first, int64_t last,
                  int64_t o) const {
    const int64_t step = index_.inner == 1 ? 0 : 1;
    for (int64_t i = 0; i < from_.length; ++i) {
      const int64_t* at = index + index_.inner * (i + from_.length * (index_.outer == 1 ? 0 : o));
      const T* line = y + from_.inner * (i + from_.length * o);
      T* const whole = to + to_.inner * (at[0] + to_.length * o);
      if (step == 0 && adds_) math_.add(whole + first, whole + first, line + first, last - first);
      if (step == 0 && !adds_) std::memcpy(whole + first, line + first, (last - first) * sizeof(T));
      for (int64_t k = first; step > 0 && k < last; ++k) {
        T& target = to[k + to_.inner * (at[k * step] + to_.length * o)];
        target = adds_ ? sumOf(target, line[k]) : line[k];
      }
    }
  }

  const dtype type_;
  const bool adds_;
  const AxisShape to_, from_, index_;
  const RunMath math_;
};

}  // namespace

std::shared_ptr<LibraryFunction> prepareScatter(const LibraryCall& call) {
  auto scatter = std::make_shared<ScatterRoutine>(call);
  return scatter->fits() ? scatter : nullptr;
}

}  // namespace fl::library
