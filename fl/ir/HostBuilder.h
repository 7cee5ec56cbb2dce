// The meaning of the op table on C++ numbers, for the reference interpreter: double stands for
// every float dtype, and the C library for our vector math. Relies on fl/ir/Meaning.h.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "fl/ir/Meaning.h"

namespace fl::ir {

class HostBuilder : public MeaningBuilder<HostBuilder> {
 public:
  static constexpr bool kStaticTypes = true;
  template <class V>
  static constexpr bool isFloatType() {
    return std::is_floating_point_v<V>;
  }
  template <class V>
  static constexpr bool isSigned(V) {
    return std::is_signed_v<V>;
  }
  template <class V>
  static constexpr int width(V) {
    return 8 * sizeof(V);
  }

  template <class V>
  static V real(V, double value) {
    return static_cast<V>(value);
  }
  template <class V>
  static V integer(V, int64_t value) {
    return static_cast<V>(value);
  }
  template <class V>
  static V add(V x, V y) {
    return wrap<V>(x, y, [](auto a, auto b) { return a + b; });
  }
  template <class V>
  static V sub(V x, V y) {
    return wrap<V>(x, y, [](auto a, auto b) { return a - b; });
  }
  template <class V>
  static V mul(V x, V y) {
    return wrap<V>(x, y, [](auto a, auto b) { return a * b; });
  }
  static double divide(double x, double y) { return x / y; }
  static double negate(double x) { return -x; }
  static double magnitude(double x) { return std::fabs(x); }
  static double sqrt(double x) { return std::sqrt(x); }
  static double floor(double x) { return std::floor(x); }
  static double ceil(double x) { return std::ceil(x); }
  static double rint(double x) { return std::nearbyint(x); }
  template <class V>
  static V divideInteger(V x, V y) {
    return static_cast<V>(x / y);
  }
  template <class V>
  static V remainderInteger(V x, V y) {
    return static_cast<V>(x % y);
  }
  template <class V>
  static V bitAnd(V x, V y) {
    return static_cast<V>(x & y);
  }
  template <class V>
  static V bitOr(V x, V y) {
    return static_cast<V>(x | y);
  }
  template <class V>
  static V bitXor(V x, V y) {
    return static_cast<V>(x ^ y);
  }
  template <class V>
  static V shl(V x, V n) {
    return static_cast<V>(static_cast<uint64_t>(x) << n);
  }
  template <class V>
  static V lshr(V x, V n) {
    return static_cast<V>(static_cast<std::make_unsigned_t<V>>(x) >> n);
  }
  template <class V>
  static V ashr(V x, V n) {
    return static_cast<V>(x >> n);
  }
  template <class V>
  static bool lt(V x, V y) {
    return x < y;
  }
  template <class V>
  static bool le(V x, V y) {
    return x <= y;
  }
  template <class V>
  static bool eq(V x, V y) {
    return x == y;
  }
  template <class V>
  static bool ne(V x, V y) {
    return x != y;
  }
  static bool maskAnd(bool x, bool y) { return x && y; }
  static bool maskOr(bool x, bool y) { return x || y; }
  static bool maskNot(bool x) { return !x; }
  template <class V>
  static V select(bool mask, V x, V y) {
    return mask ? x : y;
  }

  // The C library in place of our vector math.
  static double exp(double x) { return std::exp(x); }
  static double log(double x) { return std::log(x); }
  static double log1p(double x) { return std::log1p(x); }
  static double sin(double x) { return std::sin(x); }
  static double cos(double x) { return std::cos(x); }
  static double tanh(double x) { return std::tanh(x); }
  static double erf(double x) { return std::erf(x); }
  static double pow(double x, double y) { return std::pow(x, y); }
  template <class V>
  V mod(V x, V y) {
    if constexpr (std::is_floating_point_v<V>) {
      return std::fmod(x, y);
    } else {
      return MeaningBuilder<HostBuilder>::mod(x, y);
    }
  }

 private:
  template <class V, class F>
  static V wrap(V x, V y, F f) {
    if constexpr (std::is_integral_v<V>) {
      return static_cast<V>(f(static_cast<uint64_t>(x), static_cast<uint64_t>(y)));
    } else {
      return f(x, y);
    }
  }
};

}  // namespace fl::ir
