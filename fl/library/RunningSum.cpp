#include "fl/library/RunningSum.h"

#include <cstring>
#include <utility>

namespace fl::library {
namespace {

// That are added up before their sum goes into the total.
constexpr int kVectors = 4;

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

template <typename T>
void sumInOrder(T* to, const T* x, int64_t count, TotalOf<T> before, TotalOf<T>& total) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(before + (total += x[i]));
}

}  // namespace

template <typename T>
void sumRun(T* to, const T* x, int64_t count, TotalOf<T> before, TotalOf<T>& total) {
  typedef T Vector __attribute__((vector_size(32)));
  constexpr int64_t kLanes = sizeof(Vector) / sizeof(T);
  constexpr auto lanes = std::make_index_sequence<kLanes>();
  const TotalOf<T> totalBefore = total;
  Vector unlikeThemselves{};  // no zero where a sum is not finite
  int64_t i = 0;
  const auto start = [&] { return static_cast<T>(before + total); };
  const auto sumVectors = [&]<int vectors>(std::integral_constant<int, vectors>) {
    const Vector first = Vector{} + start();
    Vector behind{};
#pragma GCC unroll 4
    for (int vector = 0; vector < vectors; ++vector, i += kLanes) {
      Vector sums;
      std::memcpy(&sums, x + i, sizeof(sums));
      sums = sumLanes<1>(sums, lanes) + behind;
      behind = lastInAll(sums, lanes);
      sums += first;
      unlikeThemselves += sums - sums;
      std::memcpy(to + i, &sums, sizeof(sums));
    }
    total = static_cast<TotalOf<T>>(total + behind[0]);
  };
  while (i + kVectors * kLanes <= count) sumVectors(std::integral_constant<int, kVectors>());
  while (i + kLanes <= count) sumVectors(std::integral_constant<int, 1>());
  T rest = {};
  for (const T first = start(); i < count; ++i) {
    rest = static_cast<T>(rest + x[i]);
    to[i] = static_cast<T>(first + rest);
    unlikeThemselves[0] += to[i] - to[i];
  }
  total = static_cast<TotalOf<T>>(total + rest);
  if constexpr (std::is_floating_point_v<T>) {
    bool isFinite = true;
    for (int64_t lane = 0; lane < kLanes; ++lane) isFinite &= unlikeThemselves[lane] == 0;
    if (!isFinite) sumInOrder(to, x, count, before, total = totalBefore);
  }
}

#define FL_SUM_RUN(T) template void sumRun(T*, const T*, int64_t, TotalOf<T>, TotalOf<T>&);
FL_SUM_RUN(float)
FL_SUM_RUN(double)
FL_SUM_RUN(uint8_t)
FL_SUM_RUN(uint16_t)
FL_SUM_RUN(uint32_t)
FL_SUM_RUN(uint64_t)
#undef FL_SUM_RUN

}  // namespace fl::library
