// Cumulative sums of neighbours, for AVX2, which all that runs here has. Private to this folder;
// CumsumRoutine.cpp is the user.
#pragma once

#include <cstdint>
#include <type_traits>

namespace fl::library {

// What the sum so far of elements of type T is kept in: the sums of a long run of f32 are as good
// at its end as at its start.
template <typename T>
using TotalOf = std::conditional_t<std::is_same_v<T, float>, double, T>;

// to[i] = before + total + x[0] + ... + x[i]; then `total` has all of x added. The elements of 32
// bytes are added up by a tree, four such vectors one after another; if some sum is not finite, all
// are, so that what overflows is no NaN. Integers are unsigned.
template <typename T>
void sumRun(T* to, const T* x, int64_t count, TotalOf<T> before, TotalOf<T>& total);

}  // namespace fl::library
