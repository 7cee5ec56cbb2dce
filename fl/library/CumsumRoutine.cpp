// Cumulative sums of any dtype, on lines along one axis, which are independent.
#include <utility>

#include "fl/library/Functions.h"
#include "fl/library/Lines.h"
#include "fl/library/RunningSum.h"
#include "fl/tile/StreamingCopy.h"

namespace fl::library {
namespace {

// Signed integers wrap around, as unsigned ones of their size do.
template <typename T>
using Wrapping =
    std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>;

class CumsumRoutine : public LibraryFunction {
 public:
  explicit CumsumRoutine(const LibraryCall& call)
      : type_(call.result.type), shape_(call.result.shape, call.attrs[0]), math_(type_) {}

  // A sum for each piece of long lines.
  size_t scratchBytes() const override {
    const bool isLong = shape_.inner == 1 && pieces() > 1;
    return isLong ? shape_.outer * pieces() * sizeof(double) : 0;
  }
  std::string implementation() const override { return "routine"; }

  void run(void* const* operands, void* result, void* scratch,
           host::ThreadPool& pool) const override {
    if (shape_.elements() == 0) return;
    dispatchType(type_, [&](auto tag) {
      using T = typename Wrapping<typename decltype(tag)::type>::type;
      const T* const in = static_cast<const T*>(operands[0]);
      T* const out = static_cast<T*>(result);
      if (shape_.inner > 1) {
        sumBlocks(in, out, pool);
      } else if (shape_.length <= kShortLine) {
        pool.parallelFor(shape_.outer, std::max<int64_t>(1, kGrain / shape_.length),
                         [&](int64_t begin, int64_t end) { sumShortLines(in, out, begin, end); });
      } else if (isShared(pool)) {
        shareLines(in, out, static_cast<TotalOf<SumType<T>>*>(scratch), pool);
      } else {
        pool.parallelFor(shape_.outer, std::max<int64_t>(1, kGrain / shape_.length),
                         [&](int64_t begin, int64_t end) { sumLines(in, out, begin, end); });
      }
    });
  }

 private:
  // Lines [begin, end) of neighbours, which are converted together, as many as fill a part.
  template <typename T>
  void sumShortLines(const T* in, T* out, int64_t begin, int64_t end) const {
    if constexpr (std::is_arithmetic_v<T>) {
      for (int64_t line = begin; line < end; ++line)
        sumLine(in + line * shape_.length, out + line * shape_.length);
      return;
    }
    const int64_t most = kPart / shape_.length;
    SumType<T> values[kPart];
    for (int64_t lines; begin < end; begin += lines) {
      lines = std::min(most, end - begin);
      const int64_t at = begin * shape_.length, count = lines * shape_.length;
      math_.widen(values, in + at, count);
      for (int64_t line = 0; line < count; line += shape_.length)
        sumLine(values + line, values + line);
      math_.narrow(out + at, values, count);
    }
  }

  template <typename T>
  void sumLine(const T* in, T* out) const {
    T total = {};
    for (int64_t i = 0; i < shape_.length; ++i) out[i] = total = sumOf(total, in[i]);
  }

  // Long lines [begin, end). Pieces of a line are added up for themselves and go behind one another
  // then, so that sums are the same ones if several threads share the line.
  template <typename T>
  void sumLines(const T* in, T* out, int64_t begin, int64_t end) const {
    for (int64_t line = begin; line < end; ++line) {
      TotalOf<SumType<T>> before = {};
      for (int64_t i = 0; i < pieces(); ++i)
        before = sumOf(before, sumPiece(in, out, line * pieces() + i, before));
    }
  }

  // Where that is faster, though it takes two sweeps.
  bool isShared(const host::ThreadPool& pool) const {
    const auto turns = [&](int64_t count) { return (count + pool.threads() - 1) / pool.threads(); };
    return 2 * turns(shape_.outer * pieces()) < turns(shape_.outer) * pieces();
  }

  // The first sweep writes only the sums of pieces.
  template <typename T, typename Total>
  void shareLines(const T* in, T* out, Total* totals, host::ThreadPool& pool) const {
    const int64_t count = shape_.outer * pieces();
    pool.parallelFor(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) totals[i] = sumPiece<T>(in, nullptr, i, {});
    });
    Total before = {};
    for (int64_t i = 0; i < count; ++i) {
      if (i % pieces() == 0) before = {};
      before = sumOf(before, std::exchange(totals[i], before));
    }
    pool.parallelFor(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) sumPiece(in, out, i, totals[i]);
    });
  }

  // The sum of a piece; writes its cumulative sums, each with `before` added, if there is an `out`.
  template <typename T>
  auto sumPiece(const T* in, T* out, int64_t piece, TotalOf<SumType<T>> before) const {
    const int64_t line = piece / pieces() * shape_.length, first = piece % pieces() * kPiece;
    const int64_t last = line + std::min(first + kPiece, shape_.length);
    TotalOf<SumType<T>> total = {};
    SumType<T> values[kPart], sums[kPart];
    for (int64_t at = line + first; at < last; at += kPart) {
      const int64_t count = std::min(kPart, last - at);
      if constexpr (std::is_arithmetic_v<T>) {
        sumRun(out ? out + at : sums, in + at, count, before, total);
      } else {
        math_.widen(values, in + at, count);
        sumRun(sums, values, count, before, total);
        if (out) math_.narrow(out + at, sums, count);
      }
    }
    return total;
  }

  int64_t pieces() const { return (shape_.length + kPiece - 1) / kPiece; }

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
  static constexpr int64_t kPart = 512, kPiece = 1 << 15, kShortLine = 64;

  const dtype type_;
  const AxisShape shape_;
  const RunMath math_;
};

}  // namespace

std::shared_ptr<LibraryFunction> prepareCumsum(const LibraryCall& call) {
  return std::make_shared<CumsumRoutine>(call);
}

}  // namespace fl::library
