// The builder of Meaning.h over plain C++ numbers: with it an op's meaning is ordinary code on one
// element, which the compiler vectorises in a loop.
//
// This header is compiled once a variant (x86-64-v3, x86-64-v4), each time in the namespace
// FL_TILE_VARIANT: nothing in it may be an inline function shared with code built for the baseline,
// or the linker could put AVX-512 code there. TileOps.cpp is the user.
#pragma once

#include <type_traits>

#include "fl/ir/Meaning.h"

#ifndef FL_TILE_VARIANT
#error "define FL_TILE_VARIANT, the namespace of this build"
#endif

namespace fl::tile::FL_TILE_VARIANT {

// The C++ type that computes values of a dtype.
template <dtype type>
struct ComputeType;
template <>
struct ComputeType<dtype::f16> {
  using type = float;
};
template <>
struct ComputeType<dtype::bf16> {
  using type = float;
};
template <>
struct ComputeType<dtype::f32> {
  using type = float;
};
template <>
struct ComputeType<dtype::f64> {
  using type = double;
};
template <>
struct ComputeType<dtype::b8> {
  using type = char;
};
template <>
struct ComputeType<dtype::s16> {
  using type = int16_t;
};
template <>
struct ComputeType<dtype::s32> {
  using type = int32_t;
};
template <>
struct ComputeType<dtype::s64> {
  using type = int64_t;
};
template <>
struct ComputeType<dtype::u8> {
  using type = uint8_t;
};
template <>
struct ComputeType<dtype::u16> {
  using type = uint16_t;
};
template <>
struct ComputeType<dtype::u32> {
  using type = uint32_t;
};
template <>
struct ComputeType<dtype::u64> {
  using type = uint64_t;
};

// A number of type V as V's conversion rule (op Cast) makes it a To; 16-bit floats are float here.
template <class To, class V>
To convert(V x) {
  if constexpr (std::is_floating_point_v<V> && !std::is_floating_point_v<To>) {
    // Both limits are powers of two (or one less, which the comparison with `high` covers).
    constexpr bool kSigned = std::is_signed_v<To>;
    constexpr int kBits = 8 * sizeof(To) - kSigned;
    constexpr V kHigh = V(2) * V(uint64_t{1} << (kBits - 1));
    constexpr V kLow = kSigned ? -kHigh : V(0);
    constexpr To kMax = To((uint64_t{2} << (kBits - 1)) - 1);
    constexpr To kMin = kSigned ? To(-kMax - 1) : To(0);
    const bool inside = (x > kLow) & (x < kHigh);
    const To value = static_cast<To>(inside ? x : V(0));
    return x >= kHigh ? kMax : x <= kLow ? kMin : value;
  } else {
    return static_cast<To>(x);
  }
}

// What becomes of the rare part of a meaning: it is computed for every element, or left out because
// no element needs it, which a loop that only notes has found.
enum class Rare { Compute, LeaveOut, Note };

template <bool isShortly>
class BuilderOf : public ir::MeaningBuilder<BuilderOf<isShortly>> {
 public:
  explicit BuilderOf(Rare rare = Rare::Compute) : rare(rare) {}
  static constexpr bool isShort() { return isShortly; }
  const Rare rare;
  int anyRare = 0;  // of the elements noted

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
  V real(V, double value) {
    return static_cast<V>(value);
  }
  template <class V>
  V integer(V, int64_t value) {
    return static_cast<V>(value);
  }
  template <dtype type, class V>
  auto castTo(V x) {
    return convert<typename ComputeType<type>::type>(x);
  }

  template <class V>
  V add(V x, V y) {
    return V(wide(x) + wide(y));
  }
  template <class V>
  V sub(V x, V y) {
    return V(wide(x) - wide(y));
  }
  template <class V>
  V mul(V x, V y) {
    return V(wide(x) * wide(y));
  }
  template <class V>
  V divide(V x, V y) {
    return x / y;
  }
  float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
  double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
  template <class V>
  V negate(V x) {
    return -x;
  }
  float magnitude(float x) { return __builtin_fabsf(x); }
  double magnitude(double x) { return __builtin_fabs(x); }
  float sqrt(float x) { return __builtin_sqrtf(x); }
  double sqrt(double x) { return __builtin_sqrt(x); }
  float floor(float x) { return __builtin_floorf(x); }
  double floor(double x) { return __builtin_floor(x); }
  float ceil(float x) { return __builtin_ceilf(x); }
  double ceil(double x) { return __builtin_ceil(x); }
  float rint(float x) { return __builtin_rintf(x); }
  double rint(double x) { return __builtin_rint(x); }

  template <class V>
  V divideInteger(V x, V y) {
    return V(x / y);
  }
  template <class V>
  V remainderInteger(V x, V y) {
    return V(x % y);
  }
  template <class V>
  V bitAnd(V x, V y) {
    return V(x & y);
  }
  template <class V>
  V bitOr(V x, V y) {
    return V(x | y);
  }
  template <class V>
  V bitXor(V x, V y) {
    return V(x ^ y);
  }
  template <class V>
  V bitNot(V x) {
    return V(~x);
  }
  template <class V>
  V shl(V x, V count) {
    return V(wide(x) << count);
  }
  template <class V>
  V lshr(V x, V count) {
    return V(std::make_unsigned_t<V>(x) >> count);
  }
  template <class V>
  V ashr(V x, V count) {
    return V(x >> count);
  }

  template <class V>
  bool lt(V x, V y) {
    return x < y;
  }
  template <class V>
  bool le(V x, V y) {
    return x <= y;
  }
  template <class V>
  bool eq(V x, V y) {
    return x == y;
  }
  template <class V>
  bool ne(V x, V y) {
    return x != y;
  }
  bool maskAnd(bool x, bool y) { return x & y; }
  bool maskOr(bool x, bool y) { return x | y; }
  bool maskNot(bool x) { return !x; }
  template <class V>
  V select(bool mask, V x, V y) {
    return mask ? x : y;
  }

  template <class Usual, class RarePart>
  auto rarely(bool mask, Usual&& usual, RarePart&& rarePart) {
    if (rare == Rare::Compute) {
      const auto common = usual();
      return mask ? rarePart() : common;
    }
    anyRare |= mask;
    return usual();
  }

  int32_t bits(float x) { return __builtin_bit_cast(int32_t, x); }
  int64_t bits(double x) { return __builtin_bit_cast(int64_t, x); }
  float fromBits(int32_t x) { return __builtin_bit_cast(float, x); }
  double fromBits(int64_t x) { return __builtin_bit_cast(double, x); }

 private:
  // Unsigned arithmetic of at least 32 bits wraps without undefined behaviour.
  template <class V>
  static auto wide(V x) {
    if constexpr (std::is_floating_point_v<V>) {
      return x;
    } else if constexpr (sizeof(V) == 8) {
      return static_cast<uint64_t>(x);
    } else {
      return static_cast<uint32_t>(x);
    }
  }
};
using Builder = BuilderOf<false>;

}  // namespace fl::tile::FL_TILE_VARIANT
