// Ops that the kernel form cannot hold, for any dtype: cumulative sums and sorting. Each works on
// lines along one axis, which are independent, in the order that its row in Ops.def states.
#include <utility>
#include <vector>

#include "fl/host/StreamingCopy.h"
#include "fl/library/Functions.h"
#include "fl/library/Lines.h"

namespace fl::library {
namespace {

class Routine : public LibraryFunction {
 public:
  size_t scratchBytes() const override { return 0; }
  std::string implementation() const override { return "routine"; }
};

class CumsumRoutine : public Routine {
 public:
  explicit CumsumRoutine(const LibraryCall& call)
      : type_(call.result.type), shape_(call.result.shape, call.attrs[0]), math_(type_) {}

  void run(void* const* operands, void* result, void*, host::ThreadPool& pool) const override {
    if (shape_.elements() == 0) {
      return;
    }
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
    for (; begin + 4 <= end; begin += 4) {
      sumTogether(in + begin * shape_.length, out + begin * shape_.length,
                  std::make_index_sequence<4>());
    }
    for (; begin < end; ++begin) {
      sumTogether(in + begin * shape_.length, out + begin * shape_.length,
                  std::make_index_sequence<1>());
    }
  }

  template <typename T, size_t... line>
  void sumTogether(const T* in, T* out, std::index_sequence<line...>) const {
    constexpr int64_t kPart = 256;
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
    constexpr int64_t kStreamFrom = 4 << 20, kShortPiece = 64;
    const bool streams = shape_.elements() * static_cast<int64_t>(sizeof(T)) >= kStreamFrom;
    // What is read is best written at once; to convert more at a time is better still.
    const int64_t piece = streams && std::is_arithmetic_v<T> ? kShortPiece : kLongPiece;
    alignas(64) SumType<T> totals[kWidest] = {};
    for (int64_t row = 0; row < shape_.length; row += kRowsTogether) {
      const int64_t rows = std::min(kRowsTogether, shape_.length - row);
      for (int64_t k = 0; k < count; k += piece) {
        const int64_t at = row * shape_.inner + k;
        sumPiece(in + at, out + at, totals + k, rows, std::min(piece, count - k), streams);
      }
    }
    host::finishCopies(streams);
  }

  template <typename T>
  void sumPiece(const T* in, T* out, SumType<T>* totals, int64_t rows, int64_t count,
                bool streams) const {
    alignas(64) SumType<T> sums[kRowsTogether][kLongPiece];
    const SumType<T>* last = totals;
    for (int64_t row = 0; row < rows; ++row, in += shape_.inner, out += shape_.inner) {
      if constexpr (!std::is_arithmetic_v<T>) {
        alignas(64) T narrowed[kLongPiece];
        math_.widen(sums[row], in, count);
        math_.add(sums[row], sums[row], last, count);
        math_.narrow(narrowed, sums[row], count);
        host::copyRun(out, narrowed, count * sizeof(T), streams);
        last = sums[row];
      } else if (streams) {
        math_.add(sums[row], last, in, count);
        host::copyRun(out, sums[row], count * sizeof(T), streams);
        last = sums[row];
      } else {
        math_.add(out, last, in, count);
        last = out;
      }
    }
    std::copy_n(last, count, totals);
  }

  static constexpr int64_t kWidest = 2048, kRowsTogether = 4, kLongPiece = 256;

  const dtype type_;
  const AxisShape shape_;
  const RunMath math_;
};

class ArgsortRoutine : public Routine {
 public:
  explicit ArgsortRoutine(const LibraryCall& call)
      : type_(call.operands[0].type),
        shape_(call.operands[0].shape, call.attrs[0]),
        count_(call.attrs[1]) {}

  void run(void* const* operands, void* result, void*, host::ThreadPool& pool) const override {
    dispatchType(type_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(shape_.length, 1));
      pool.parallelFor(shape_.inner * shape_.outer, grain, [&](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end; ++line) {
          const int64_t k = line % shape_.inner, o = line / shape_.inner;
          sortLine(static_cast<const T*>(operands[0]) + k + shape_.inner * shape_.length * o,
                   static_cast<int64_t*>(result) + k + shape_.inner * count_ * o);
        }
      });
    });
  }

 private:
  template <typename T>
  void sortLine(const T* in, int64_t* out) const {
    using Key = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
    std::vector<std::pair<Key, int64_t>> pairs(shape_.length);
    for (int64_t i = 0; i < shape_.length; ++i) {
      pairs[i] = {static_cast<Key>(in[i * shape_.inner]), i};
    }
    // A total order, so that selecting gives what sorting would.
    const auto before = [](const auto& x, const auto& y) {
      const bool xNan = x.first != x.first, yNan = y.first != y.first;
      if (xNan || yNan) {
        return xNan == yNan ? x.second < y.second : yNan;
      }
      return x.first != y.first ? x.first < y.first : x.second < y.second;
    };
    const auto end = pairs.begin() + count_;
    if (count_ < shape_.length) {
      std::nth_element(pairs.begin(), end, pairs.end(), before);
    }
    std::sort(pairs.begin(), end, before);
    for (int64_t i = 0; i < count_; ++i) {
      out[i * shape_.inner] = pairs[i].second;
    }
  }

  const dtype type_;
  const AxisShape shape_;
  const int64_t count_;
};

}  // namespace

std::shared_ptr<LibraryFunction> prepareRoutine(const LibraryCall& call) {
  switch (call.op) {
    case ir::Op::Scatter:
    case ir::Op::ScatterAdd:
      return prepareScatter(call);
    case ir::Op::Cumsum:
      return std::make_shared<CumsumRoutine>(call);
    case ir::Op::Argsort:
      return std::make_shared<ArgsortRoutine>(call);
    default:
      return nullptr;
  }
}

}  // namespace fl::library
