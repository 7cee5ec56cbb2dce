// Ops that the kernel form cannot hold, for any dtype: scatter, cumulative sums, sorting. Each
// works on lines along one axis, which are independent, in the order that its row in Ops.def
// states.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "fl/base/Error.h"
#include "fl/kernel/Kernel.h"
#include "fl/runtime/cpu/LibraryFunctions.h"

namespace fl::runtime::cpu {
namespace {

// Elements that are worth a thread.
constexpr int64_t kGrain = 1 << 14;

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
  const int64_t width = std::clamp<int64_t>(kGrain / std::max<int64_t>(shape.length, 1), 16, 1024);
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
        index_(call.operands[1].shape, call.attrs[0]) {}

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

  const dtype type_;
  const bool adds_;
  const AxisShape to_, from_, index_;
};

class CumsumRoutine : public Routine {
 public:
  explicit CumsumRoutine(const LibraryCall& call)
      : type_(call.result.type), shape_(call.result.shape, call.attrs[0]) {}

  void run(void* const* operands, void* result, void*, ThreadPool& pool) const override {
    dispatchType(type_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      forEachBlock(shape_, pool, [&](int64_t first, int64_t last, int64_t o) {
        sumBlock(static_cast<const T*>(operands[0]), static_cast<T*>(result), first, last, o);
      });
    });
  }

 private:
  // 16-bit floats are summed in f32.
  template <typename T>
  void sumBlock(const T* in, T* out, int64_t first, int64_t last, int64_t o) const {
    using Sum = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
    std::vector<Sum> totals(last - first, Sum(0));
    for (int64_t i = 0; i < shape_.length; ++i) {
      const int64_t line = shape_.inner * (i + shape_.length * o);
      for (int64_t k = first; k < last; ++k) {
        Sum& total = totals[k - first];
        total = sumOf(total, static_cast<Sum>(in[line + k]));
        out[line + k] = static_cast<T>(total);
      }
    }
  }

  const dtype type_;
  const AxisShape shape_;
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
