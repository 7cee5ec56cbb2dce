// Ops that the kernel form cannot hold, for any dtype: scatter, cumulative sums, sorting. Each
// works on lines along one axis, which are independent, in the order that its row in Ops.def
// states.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>

#include "fl/base/Error.h"
#include "fl/kernel/Kernel.h"
#include "fl/runtime/cpu/LibraryFunctions.h"
#include "fl/runtime/cpu/Widening.h"
#include "fl/tile/TileOps.h"

namespace fl::runtime::cpu {
namespace {

// Elements that are worth a thread.
constexpr int64_t kGrain = 1 << 14;
// Lines that are worked on side by side: enough to use what the processor fetches ahead.
constexpr int64_t kLeastWidth = 256, kMostWidth = 512;

// A shape seen from one axis: [inner, length, outer].
struct AxisShape {
  AxisShape(const Shape& shape, Dim axis) : length(shape[axis]) {
    for (int i = 0; i < shape.ndim(); ++i) {
      (i < axis ? inner : outer) *= i == axis ? 1 : shape[i];
    }
  }
  int64_t inner = 1;
  int64_t length;
  int64_t outer = 1;
  int64_t elements() const { return inner * length * outer; }
};

// Calls body(first, last, o): lines [first, last) of inner, for each outer index, in parallel.
template <class F>
void forEachBlock(const AxisShape& shape, ThreadPool& pool, F&& body) {
  const int64_t width =
      std::clamp<int64_t>(kGrain / std::max<int64_t>(shape.length, 1), kLeastWidth, kMostWidth);
  const int64_t blocks = (shape.inner + width - 1) / width;
  const int64_t work = std::max<int64_t>(1, std::min(width, shape.inner) * shape.length);
  pool.parallelFor(blocks * shape.outer, std::max<int64_t>(1, kGrain / work),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       const int64_t first = i % blocks * width;
                       body(first, std::min(first + width, shape.inner), i / blocks);
                     }
                   });
}

template <typename T>
T sumOf(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
  } else if constexpr (std::is_floating_point_v<T>) {
    return x + y;
  } else {
    return T(static_cast<float>(x) + static_cast<float>(y));
  }
}

// The type in which elements of type T are summed.
template <typename T>
using SumType = std::conditional_t<std::is_arithmetic_v<T>, T, float>;

// Moves elements between their dtype and the one they are summed in.
class Widener {
 public:
  explicit Widener(dtype type) {
    if (computeType(type) != type) {
      widening_.emplace(type);
    }
  }

  template <typename T>
  void widen(SumType<T>* to, const T* from, int64_t count) const {
    if constexpr (std::is_arithmetic_v<T>) {
      std::copy_n(from, count, to);
    } else {
      widening_->widen(to, from, count);
    }
  }
  template <typename T>
  void narrow(T* to, const SumType<T>* from, int64_t count) const {
    if constexpr (std::is_arithmetic_v<T>) {
      std::copy_n(from, count, to);
    } else {
      widening_->narrow(to, from, count);
    }
  }

 private:
  std::optional<Widening> widening_;  // of 16-bit floats
};

class Routine : public LibraryFunction {
 public:
  size_t scratchBytes() const override { return 0; }
  std::string implementation() const override { return "routine"; }
};

// result = x, then result[index] = y or += y in the order of y along the axis.
class ScatterRoutine : public Routine {
 public:
  explicit ScatterRoutine(const LibraryCall& call)
      : type_(call.result.type),
        adds_(call.op == ir::Op::ScatterAdd),
        to_(call.result.shape, call.attrs[0]),
        from_(call.operands[2].shape, call.attrs[0]),
        index_(call.operands[1].shape, call.attrs[0]),
        widener_(type_) {}

  // The index is whole or one line on each side of the axis.
  bool fits() const {
    return (index_.inner == 1 || index_.inner == from_.inner) &&
           (index_.outer == 1 || index_.outer == from_.outer);
  }

  void run(void* const* operands, void* result, void*, ThreadPool& pool) const override {
    const size_t bytes = to_.elements() * getTypeSize(type_);
    std::memcpy(result, operands[0], bytes);
    dispatchType(type_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto* index = static_cast<const int64_t*>(operands[1]);
      forEachBlock(from_, pool, [&](int64_t first, int64_t last, int64_t o) {
        scatterBlock(static_cast<const T*>(operands[2]), index, static_cast<T*>(result), first,
                     last, o);
      });
    });
  }

 private:
  template <typename T>
  void scatterBlock(const T* from, const int64_t* index, T* to, int64_t first, int64_t last,
                    int64_t o) const {
    const int64_t step = index_.inner == 1 ? 0 : 1;
    for (int64_t i = 0; i < from_.length; ++i) {
      const int64_t* at = index + index_.inner * (i + from_.length * (index_.outer == 1 ? 0 : o));
      const T* line = from + from_.inner * (i + from_.length * o);
      if (!std::is_arithmetic_v<T> && adds_ && step == 0 && last - first >= tile::kTileGroup / 4) {
        addLine(line + first, to + first + to_.inner * to_.length * o, at[0], last - first);
        continue;
      }
      for (int64_t k = first; k < last; ++k) {
        const int64_t place = at[k * step];
        if (static_cast<uint64_t>(place) >= static_cast<uint64_t>(to_.length)) {
          throw ir::IndexOutOfRange({place, to_.length});
        }
        T& target = to[k + to_.inner * (place + to_.length * o)];
        target = adds_ ? sumOf(target, line[k]) : line[k];
      }
    }
  }

  // The same for `count` elements that go to one place of the axis.
  template <typename T>
  void addLine(const T* line, T* to, int64_t place, int64_t count) const {
    if (static_cast<uint64_t>(place) >= static_cast<uint64_t>(to_.length)) {
      throw ir::IndexOutOfRange({place, to_.length});
    }
    T* const target = to + to_.inner * place;
    SumType<T> sums[kMostWidth], values[kMostWidth];
    widener_.widen(sums, target, count);
    widener_.widen(values, line, count);
    for (int64_t k = 0; k < count; ++k) {
      sums[k] = sumOf(sums[k], values[k]);
    }
    widener_.narrow(target, sums, count);
  }

  const dtype type_;
  const bool adds_;
  const AxisShape to_, from_, index_;
  const Widener widener_;
};

class CumsumRoutine : public Routine {
 public:
  explicit CumsumRoutine(const LibraryCall& call)
      : type_(call.result.type), shape_(call.result.shape, call.attrs[0]), widener_(type_) {}

  void run(void* const* operands, void* result, void*, ThreadPool& pool) const override {
    dispatchType(type_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      forEachBlock(shape_, pool, [&](int64_t first, int64_t last, int64_t o) {
        if (shape_.inner == 1) {
          const int64_t line = shape_.length * o;
          return sumLine(static_cast<const T*>(operands[0]) + line, static_cast<T*>(result) + line);
        }
        sumBlock(static_cast<const T*>(operands[0]), static_cast<T*>(result), first, last, o);
      });
    });
  }

 private:
  // 16-bit floats are summed in f32.
  template <typename T>
  void sumBlock(const T* in, T* out, int64_t first, int64_t last, int64_t o) const {
    SumType<T> totals[kMostWidth] = {}, values[kMostWidth];
    for (int64_t i = 0; i < shape_.length; ++i) {
      const int64_t line = first + shape_.inner * (i + shape_.length * o);
      widener_.widen(values, in + line, last - first);
      for (int64_t k = 0; k < last - first; ++k) {
        totals[k] = sumOf(totals[k], values[k]);
      }
      widener_.narrow(out + line, totals, last - first);
    }
  }

  // The same for one line whose elements are neighbours.
  template <typename T>
  void sumLine(const T* in, T* out) const {
    SumType<T> total(0), values[kMostWidth];
    for (int64_t begin = 0; begin < shape_.length; begin += kMostWidth) {
      const int64_t count = std::min(kMostWidth, shape_.length - begin);
      widener_.widen(values, in + begin, count);
      for (int64_t i = 0; i < count; ++i) {
        values[i] = total = sumOf(total, values[i]);
      }
      widener_.narrow(out + begin, values, count);
    }
  }

  const dtype type_;
  const AxisShape shape_;
  const Widener widener_;
};

class ArgsortRoutine : public Routine {
 public:
  explicit ArgsortRoutine(const LibraryCall& call)
      : type_(call.operands[0].type),
        shape_(call.operands[0].shape, call.attrs[0]),
        count_(call.attrs[1]) {}

  void run(void* const* operands, void* result, void*, ThreadPool& pool) const override {
    dispatchType(type_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      forEachBlock(shape_, pool, [&](int64_t first, int64_t last, int64_t o) {
        for (int64_t k = first; k < last; ++k) {
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
    case ir::Op::ScatterAdd: {
      auto scatter = std::make_shared<ScatterRoutine>(call);
      return scatter->fits() ? scatter : nullptr;
    }
    case ir::Op::Cumsum:
      return std::make_shared<CumsumRoutine>(call);
    case ir::Op::Argsort:
      return std::make_shared<ArgsortRoutine>(call);
    default:
      return nullptr;
  }
}

}  // namespace fl::runtime::cpu
