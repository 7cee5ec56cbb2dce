// Cumulative sums of any dtype: on lines along one axis, which are independent, in order.
#include <utility>

#include "fl/library/Functions.h"
#include "fl/library/Lines.h"
#include "fl/tile/StreamingCopy.h"

namespace fl::library {
namespace {

class CumsumRoutine : public LibraryFunction {
 public:
  explicit CumsumRoutine(const LibraryCall& call)
      : type_(call.result.type), shape_(call.result.shape, call.attrs[0]), math_(type_) {}

  size_t scratchBytes() const override { return 0; }
  std::string implementation() const override { return "routine"; }

  void run(void* const* operands, void* result, void*, host::ThreadPool& pool) const override {
    if (shape_.elements() == 0) return;
    dispatchType(type_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* const in = static_cast<const T*>(operands[0]);
      T* const out = static_cast<T*>(result);
      if (shape_.inner == 1) {
        pool.parallelFor(shape_.outer, std::max<int64_t>(1, kGrain / shape_.length),
                         [&](int64_t begin, int64_t end) { sumLines(in, out, begin, end); });
      } else {
        sumBlocks(in, out, pool);
      }
    });
  }

 private:
  // Lines whose elements are neighbours, some at a time: a sum waits for the one before it.
  template <typename T>
  void sumLines(const T* in, T* out, int64_t begin, int64_t end) const {
    if (shape_.length <= kShortLine) {
      sumShortLines(in + begin * shape_.length, out + begin * shape_.length,
                    (end - begin) * shape_.length);
      return;
    }
    for (; begin + 4 <= end; begin += 4) {
      sumTogether(in + begin * shape_.length, out + begin * shape_.length,
                  std::make_index_sequence<4>());
    }
    for (; begin < end; ++begin) {
      sumTogether(in + begin * shape_.length, out + begin * shape_.length,
                  std::make_index_sequence<1>());
    }
  }

  // Lines that follow one another are converted together, as many as fill a part.
  template <typename T>
  void sumShortLines(const T* in, T* out, int64_t elements) const {
    const int64_t part = kPart / shape_.length * shape_.length;
    SumType<T> values[kPart];
    for (int64_t begin = 0; begin < elements; begin += part) {
      const int64_t count = std::min(part, elements - begin);
      math_.widen(values, in + begin, count);
      for (SumType<T>* line = values; line < values + count; line += shape_.length) {
        SumType<T> total = {};
        for (int64_t i = 0; i < shape_.length; ++i) line[i] = total = sumOf(total, line[i]);
      }
      math_.narrow(out + begin, values, count);
    }
  }

  template <typename T, size_t... line>
  void sumTogether(const T* in, T* out, std::index_sequence<line...>) const {
    SumType<T> totals[sizeof...(line)] = {}, values[sizeof...(line)][kPart];
    for (int64_t begin = 0; begin < shape_.length; begin += kPart) {
      const int64_t count = std::min(kPart, shape_.length - begin);
      (math_.widen(values[line], in + line * shape_.length + begin, count), ...);
      // The totals are named one by one, which keeps them in registers.
      for (int64_t i = 0; i < count; ++i) {
        ((values[line][i] = totals[line] = sumOf(totals[line], values[line][i])), ...);
      }
      (math_.narrow(out + line * shape_.length + begin, values[line], count), ...);
    }
  }

  template <typename T>
  void sumBlocks(const T* in, T* out, host::ThreadPool& pool) const {
    constexpr int64_t kLeastWidth = 256;
    const int64_t share = (shape_.inner / pool.threads() + 63) / 64 * 64;
    const int64_t width = std::clamp(share, kLeastWidth, kWidest);
    const int64_t blocks = (shape_.inner + width - 1) / width;
    const int64_t work = std::min(width, shape_.inner) * shape_.length;
    pool.parallelFor(blocks * shape_.outer, std::max<int64_t>(1, kGrain / work),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end; ++i) {
                         const int64_t first = i % blocks * width;
                         const int64_t line = first + shape_.inner * shape_.length * (i / blocks);
                         sumBlock(in + line, out + line, std::min(width, shape_.inner - first));
                       }
                     });
  }

  // `count` lines side by side, some rows at a time, a piece of each: rows that lie a power of two
  // apart drive one another out of the caches, and one row alone is too short to be foreseen.
  template <typename T>
  void sumBlock(const T* in, T* out, int64_t count) const {
    constexpr int64_t kStreamFrom = 4 << 20, kPiece = 512 / sizeof(T);
    const int64_t rowBytes = shape_.inner * static_cast<int64_t>(sizeof(T));
    const bool streams = shape_.elements() * static_cast<int64_t>(sizeof(T)) >= kStreamFrom &&
                         (reinterpret_cast<intptr_t>(out) | rowBytes) % 64 == 0;
    alignas(64) SumType<T> totals[kWidest] = {};
    for (int64_t row = 0; row < shape_.length; row += kRowsTogether) {
      const int64_t rows = std::min(kRowsTogether, shape_.length - row);
      for (int64_t k = 0; k < count; k += kPiece) {
        const int64_t at = row * shape_.inner + k;
        math_.sum(out + at, in + at, totals + k, rows, shape_.inner, std::min(kPiece, count - k),
                  streams);
      }
    }
    tile::finishCopies(streams);
  }

  static constexpr int64_t kWidest = 2048, kRowsTogether = 8;
  static constexpr int64_t kPart = 256, kShortLine = 64;

  const dtype type_;
  const AxisShape shape_;
  const RunMath math_;
};

}  // namespace

std::shared_ptr<LibraryFunction> prepareCumsum(const LibraryCall& call) {
  return std::make_shared<CumsumRoutine>(call);
}

}  // namespace fl::library
