// What routines on lines along one axis share: the shape seen from that axis, and loops over runs
// of elements that add and convert them in vectors. Relies on the tile functions and
// Widening.h; the routines are the users.
#pragma once

#include <algorithm>
#include <optional>
#include <type_traits>

#include "fl/base/Shape.h"
#include "fl/base/Types.h"
#include "fl/library/Widening.h"
#include "fl/tile/TileOps.h"

namespace fl::library {

// Elements that are worth a thread.
inline constexpr int64_t kGrain = 1 << 14;
// Elements that a block of lines side by side has at most.
inline constexpr int64_t kMostWidth = 1024;

// A shape seen from one axis: [inner, length, outer].
struct AxisShape {
  AxisShape(const Shape& shape, Dim axis) : length(shape[axis]) {
    for (int i = 0; i < shape.ndim(); ++i) (i < axis ? inner : outer) *= i == axis ? 1 : shape[i];
  }
  int64_t inner = 1;
  int64_t length;
  int64_t outer = 1;
  int64_t elements() const { return inner * length * outer; }
};

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

// Memory of `count` elements of type T, which are not initialised: bfloat16 would be, by 0.
template <typename T, int64_t count>
struct Elements {
  T* data() { return reinterpret_cast<T*>(bytes); }
  alignas(64) char bytes[count * sizeof(T)];
};

// The type in which elements of type T are summed.
template <typename T>
using SumType = std::conditional_t<std::is_arithmetic_v<T>, T, float>;

// Loops over runs of elements of one dtype, at any address; nothing behind a run is read.
class RunMath {
 public:
  explicit RunMath(dtype type) {
    const tile::TileOps& ops = tile::tileOps(tile::bestTileVariant());
    if (computeType(type) != type) widening_.emplace(type);
    add_ = ops.apply[static_cast<int>(ir::Op::Add)][static_cast<int>(type)];
    sum_ = ops.sum[static_cast<int>(type)];
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
  // to[i] = x[i] + y[i], rounded; `to` may be x.
  template <typename T>
  void add(T* to, const T* x, const T* y, int64_t count) const {
    const int64_t whole = count & -tile::kTileGroup;
    add_(to, x, y, nullptr, whole);
    for (int64_t i = whole; i < count; ++i) to[i] = sumOf(x[i], y[i]);
  }
  // totals[i] += x[i]; to[i] = totals[i], rounded: of rows that lie `stride` elements apart, one
  // after another. With `streams` what is written, at multiples of 64 bytes, leaves the caches.
  template <typename T>
  void sum(T* to, const T* x, SumType<T>* totals, int64_t rows, int64_t stride, int64_t count,
           bool streams) const {
    const int64_t whole = count & -tile::kTileGroup, rest = count - whole;
    sum_(to, x, totals, rows, stride * sizeof(T), whole, streams);
    for (to += whole, x += whole; rest > 0 && rows > 0; --rows, to += stride, x += stride) {
      T values[tile::kTileGroup] = {};
      SumType<T> sums[tile::kTileGroup] = {};
      std::copy_n(x, rest, values);
      std::copy_n(totals + whole, rest, sums);
      sum_(values, values, sums, 1, 0, tile::kTileGroup, false);
      std::copy_n(values, rest, to);
      std::copy_n(sums, rest, totals + whole);
    }
  }

 private:
  std::optional<Widening> widening_;  // of 16-bit floats
  tile::TileFunction add_;
  tile::SumFunction sum_;
};

// Asks for memory that is read soon. Inline in any case: GCC leaves out calls of functions that do
// nothing else.
[[gnu::always_inline]] inline void fetchBytes(const void* from, int64_t bytes) {
  constexpr int64_t kCacheLine = 64;
  for (int64_t i = 0; i < bytes; i += kCacheLine) {
    __builtin_prefetch(static_cast<const char*>(from) + i);
  }
}

}  // namespace fl::library
