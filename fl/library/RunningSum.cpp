#include "fl/library/RunningSum.h"

#include <cstring>
#include <utility>

namespace fl::library {
namespace {

// That are added up before their sum goes into the total.
constexpr int kVectors = 4;

// Signed numbers wrap around as unsigned ones do.
template <typename T, bool isIntegral = std::is_integral_v<T>>
struct Wrapping {
  using Type = T;
};
template <typename T>
struct Wrapping<T, true> {
  using Type = std::make_unsigned_t<T>;
};

// x `places` lanes later, behind zeros.
template <int places, typename Vector, size_t... lane>
Vector delayed(Vector x, std::index_sequence<lane...>) {
  constexpr int kLanes = sizeof...(lane);
  return __builtin_shufflevector(
      x, Vector{}, (static_cast<int>(lane) < places ? kLanes : static_cast<int>(lane) - places)...);
}

// x's last lane in all of them.
template <typename Vector, size_t... lane>
Vector lastInAll(Vector x, std::index_sequence<lane...>) {
  return __builtin_shufflevector(x, x, static_cast<int>(sizeof...(lane) - 1 + 0 * lane)...);
}

// Each lane with those before it.
template <int places, typename Vector, typename Lanes>
Vector sumLanes(Vector x, Lanes lanes) {
  if constexpr (places < Lanes::size()) {
    return sumLanes<2 * places>(x + delayed<places>(x, lanes), lanes);
  } else {
    return x;
  }
}

}  // namespace

template <typename T>
void sumRun(T* to, const T* x, int64_t count, TotalOf<T> before, TotalOf<T>& total) {
  using Number = typename Wrapping<T>::Type;
  using Total = typename Wrapping<TotalOf<T>>::Type;
  typedef Number Vector __attribute__((vector_size(32)));
  constexpr int64_t kLanes = sizeof(Vector) / sizeof(Number);
  constexpr auto lanes = std::make_index_sequence<kLanes>();
  const Total start = static_cast<Total>(before);
  Total sum = static_cast<Total>(total);
  int64_t i = 0;
  const auto sumVectors = [&]<int vectors>(std::integral_constant<int, vectors>) {
    const Vector first = Vector{} + static_cast<Number>(start + sum);
    Vector behind{};
#pragma GCC unroll 4
    for (int vector = 0; vector < vectors; ++vector, i += kLanes) {
      Vector sums;
      std::memcpy(&sums, x + i, sizeof(sums));
      sums = sumLanes<1>(sums, lanes) + behind;
      behind = lastInAll(sums, lanes);
      sums += first;
      std::memcpy(to + i, &sums, sizeof(sums));
    }
    sum = static_cast<Total>(sum + behind[0]);
  };
  while (i + kVectors * kLanes <= count) sumVectors(std::integral_constant<int, kVectors>());
  while (i + kLanes <= count) sumVectors(std::integral_constant<int, 1>());
  const Number first = static_cast<Number>(start + sum);
  Number rest = 0;
  for (; i < count; ++i) {
    rest = static_cast<Number>(rest + static_cast<Number>(x[i]));
    to[i] = static_cast<T>(static_cast<Number>(first + rest));
  }
  total = static_cast<TotalOf<T>>(static_cast<Total>(sum + rest));
}

#define FL_SUM_RUN(T) template void sumRun(T*, const T*, int64_t, TotalOf<T>, TotalOf<T>&);
FL_SUM_RUN(float)
FL_SUM_RUN(double)
FL_SUM_RUN(char)
FL_SUM_RUN(int16_t)
FL_SUM_RUN(int32_t)
FL_SUM_RUN(int64_t)
FL_SUM_RUN(uint8_t)
FL_SUM_RUN(uint16_t)
FL_SUM_RUN(uint32_t)
FL_SUM_RUN(uint64_t)
#undef FL_SUM_RUN

}  // namespace fl::library
