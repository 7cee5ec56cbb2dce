// Vector math: exp, log, log1p, sin, cos, tanh, erf, pow and fmod as straight-line code over the
// builder that Meaning.h describes, for f32 and f64.
//
// There is no branch, table look-up, conversion between float and integer, or contraction: every
// fused multiply-add is written out, so each executor computes the same bits (of a NaN: a NaN).
// What few arguments need, the reduction of huge angles (the one that converts) and long quotients,
// goes through b.rarely(). Arguments are reduced the classic way (Cody and Waite, "Software Manual
// for the Elementary Functions", 1980; the logarithms follow Tang's series in s = f / (2 + f)).
// Polynomials are minimax fits made with Sollya's fpminimax and remez for the intervals stated
// beside them.
//
// Largest errors, in units in the last place of the result: exp 0.98, log 0.85, erf 1 (f64 1.3),
// pow 1.3, tanh 1.4, log1p 1.5, sin and cos 1.6; fmod is exact. tests/ir/VectorMathTest.cpp asserts
// bounds; docs/accuracy.md is a table over all f32 numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "fl/base/Types.h"

namespace fl::ir::vm {

namespace detail {

// Facts and polynomials of one float format. Coefficients stand highest power first.
struct Single {
  static constexpr bool kIsShort = false;
  static constexpr int kWidth = 32;
  static constexpr int kMantissa = 23;
  static constexpr int kBias = 127;
  static constexpr double kMinNormal = 0x1p-126;
  static constexpr int64_t kSqrtHalfBits = 0x3f3504f3;
  static constexpr double kLn2Hi = 0x1.62e4p-1, kLn2Lo = 0x1.7f7d1cp-20;
  static constexpr double kHalfPi[] = {0x1.921fb6p+0, -0x1.777a5cp-25, -0x1.ee59dap-50};
  // From here on an angle is huge. Its turns are the sum of its products with these pieces, 28 bits
  // each, of 1 / (2 pi); below kFewTurns the first five tell, from there on the last five.
  static constexpr double kHugeAngle = 1e5, kFewTurns = 0x1p83;
  static constexpr double kInverseTurn[] = {0x1.45f306cp-3,  0x1.c9c882ap-31,  0x1.4fe13a8p-61,
                                            0x1.f47d4dp-88,  0x1.bb81b6cp-115, 0x1.4acc9ep-145,
                                            0x1.0e4107cp-172};
  static constexpr double kThirdHi = 0x1.555556p-2, kThirdLo = -0x1.555556p-27;
  // exp gives 0 below and infinity above.
  static constexpr double kExpLow = -104, kExpHigh = 89;
  // (e^r - 1 - r) / r^2, |r| <= 0.3475
  static constexpr double kExp[] = {0x1.9ab65p-13, 0x1.6d53d4p-10, 0x1.1115a8p-7,
                                    0x1.5554e2p-5, 0x1.555552p-3,  0x1p-1};
  // (log((1 + s) / (1 - s)) - 2s) / s^3 in s^2, |s| <= 0.1718
  static constexpr double kLog[] = {0x1.ec004ep-3, 0x1.23f252p-2, 0x1.999bd2p-2, 0x1.555554p-1};
  // (atanh(s) / s - 1) / s^2 - 1/3 in s^2, over s^2
  static constexpr double kAtanh[] = {0x1.dfa64ap-4, 0x1.24527p-3, 0x1.999ap-3};
  // (tanh(x) / x - 1) / x^2 in x^2, |x| <= 0.56; tanh is 1 above kTanhHigh
  static constexpr double kTanhHigh = 10;
  static constexpr double kTanh[] = {-0x1.958c74p-8, 0x1.584238p-6, -0x1.b90a76p-5, 0x1.110c7p-3,
                                     -0x1.555548p-2};
  // (sin(r) / r - 1) / r^2 and ((cos(r) - 1) / r^2 + 1/2) / r^2 in r^2, |r| <= 0.8
  static constexpr double kSin[] = {0x1.76878cp-19, -0x1.a0439cp-13, 0x1.11116p-7, -0x1.555556p-3};
  static constexpr double kCos[] = {0x1.999a6cp-16, -0x1.6c0b08p-10, 0x1.555548p-5};
  // erf(x) / x - 1 in x^2, |x| <= kErfSplit
  static constexpr double kErfSplit = 0.94;
  static constexpr double kErfSmall[] = {0x1.59589p-14,  -0x1.a9337p-11, 0x1.54a9fp-8,
                                         -0x1.b80b72p-6, 0x1.ce2de2p-4,  -0x1.812742p-2,
                                         0x1.06eba8p-3};
  // log(erfc(x)) in x weighted by erfc(x), 0.84 <= x <= kErfHigh; erf is 1 above
  static constexpr double kErfHigh = 4.1;
  static constexpr double kErfLarge[] = {0x1.aad972p-13, -0x1.98872p-9,  0x1.70e7fp-6,
                                         -0x1.ac2002p-4, -0x1.45e5eap-1, -0x1.20c8aep0,
                                         -0x1.b3c8bep-14};
};

// f32 numbers that are rounded to a 16-bit float: what is off by 2^-17 adds a fiftieth of the ulp
// of one at most (f16; of bf16 much less).
struct Short : Single {
  static constexpr bool kIsShort = true;
  static constexpr double kLn2Hi = 0x1.62e43p-1;  // alone
  static constexpr double kExp[] = {0x1.522176p-5, 0x1.571f18p-3, 0x1.0006c6p-1};
  // log(1 + f) / f, sqrt(1/2) <= 1 + f <= sqrt(2)
  static constexpr double kLog[] = {-0x1.9de28p-4,  0x1.4c3a92p-3, -0x1.614e5p-3,  0x1.978e82p-3,
                                    -0x1.ff621cp-3, 0x1.5559dap-2, -0x1.00007ap-1, 0x1.fffffep-1};
  static constexpr double kTanh[] = {-0x1.5e4d76p-5, 0x1.0d1cb2p-3, -0x1.553bc8p-2};
  static constexpr double kSin[] = {0x1.0b4926p-7, -0x1.5542d6p-3};
  static constexpr double kCos[] = {-0x1.658de6p-10, 0x1.5548bp-5};
  static constexpr double kErfSmall[] = {0x1.df8de6p-9, -0x1.a57286p-6, 0x1.ccbb98p-4,
                                         -0x1.811cfap-2, 0x1.06eb48p-3};
  static constexpr double kErfLarge[] = {-0x1.04d0dep-5, -0x1.7f8f6cp-1, -0x1.0ba602p0,
                                         -0x1.7aa8b8p-6};
};

struct Double {
  static constexpr bool kIsShort = false;
  static constexpr int kWidth = 64;
  static constexpr int kMantissa = 52;
  static constexpr int kBias = 1023;
  static constexpr double kMinNormal = 0x1p-1022;
  static constexpr int64_t kSqrtHalfBits = 0x3fe6a09e667f3bcd;
  static constexpr double kLn2Hi = 0x1.62e42fefp-1, kLn2Lo = 0x1.473de6af278edp-34;
  static constexpr double kHalfPi[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54,
                                       -0x1.f1976b7ed8fbcp-110};
  // From here on an angle is huge. These are 64 zeros, then the bits of 1 / (2 pi).
  static constexpr double kHugeAngle = 0x1p29;
  static constexpr uint64_t kInverseTurn[] = {0,
                                              0x28be60db9391054a,
                                              0x7f09d5f47d4d3770,
                                              0x36d8a5664f10e410,
                                              0x7f9458eaf7aef158,
                                              0x6dc91b8e909374b8,
                                              0x01924bba82746487,
                                              0x3f877ac72c4a69cf,
                                              0xba208d7d4baed121,
                                              0x3a671c09ad17df90,
                                              0x4e64758e60d4ce7d,
                                              0x272117e2ef7e4a0e,
                                              0xc7fe25fff7816603,
                                              0xfbcbc462d6829b47,
                                              0xdb4d9fb3c9f2c26d,
                                              0xd3d18fd9a797fa8b,
                                              0x5d49eeb1faf97c5e,
                                              0xcf41ce7de294a4ba,
                                              0x9afed7ec47e35742,
                                              0x1580cc11bf1edaea};
  static constexpr double kThirdHi = 0x1.5555555555555p-2, kThirdLo = 0x1.5555555555555p-56;
  static constexpr double kExpLow = -746, kExpHigh = 710;
  static constexpr double kExp[] = {
      0x1.ad85bb7fcf4dap-26, 0x1.28aeb476caa8dp-22, 0x1.71df22fd74365p-19, 0x1.a01998b27e796p-16,
      0x1.a01a012aa8e77p-13, 0x1.6c16c184a9d23p-10, 0x1.1111111127d09p-7,  0x1.5555555550629p-5,
      0x1.55555555554f9p-3,  0x1.000000000000ap-1};
  static constexpr double kLog[] = {
      0x1.2f171455cee48p-3, 0x1.39a017b678884p-3, 0x1.74664de26594ep-3, 0x1.c71c51c70a8a6p-3,
      0x1.2492494239a4p-2,  0x1.999999997f957p-2, 0x1.5555555555593p-1};
  static constexpr double kAtanh[] = {
      0x1.eb8b645649dd8p-5, 0x1.de23c48d68f1cp-5, 0x1.1121202518a83p-4, 0x1.3b135fb0ecbf8p-4,
      0x1.745d183ee07fep-4, 0x1.c71c71c562cacp-4, 0x1.2492492493157p-3, 0x1.9999999999995p-3};
  static constexpr double kTanhHigh = 20;
  static constexpr double kTanh[] = {
      -0x1.3f08862fa6e0bp-16, 0x1.5a3766e620591p-14, -0x1.e85009e66488dp-13, 0x1.34678f31c7cb5p-11,
      -0x1.7d8c6d809d868p-10, 0x1.d6d2586245a94p-9,  -0x1.226e2d6cd3a6bp-7,  0x1.664f484c90e02p-6,
      -0x1.ba1ba1b944192p-5,  0x1.11111111103a8p-3,  -0x1.555555555554cp-2};
  static constexpr double kSin[] = {0x1.5d6cf65ff9cf9p-33, -0x1.ae5de34ff438bp-26,
                                    0x1.71de34d0fd286p-19, -0x1.a01a019b51f18p-13,
                                    0x1.111111110f281p-7,  -0x1.5555555555545p-3};
  static constexpr double kCos[] = {-0x1.8f7e4238c61abp-37, 0x1.1ee98deec25f1p-29,
                                    -0x1.27e4f77ebfeacp-22, 0x1.a01a019befa6bp-16,
                                    -0x1.6c16c16c149a9p-10, 0x1.5555555555548p-5};
  static constexpr double kErfSplit = 0.85;
  static constexpr double kErfSmall[] = {
      -0x1.00d1d1ba44919p-30, 0x1.ef15cc710fc8cp-27, -0x1.5ef0282f3c935p-23, 0x1.b9e6cfb902308p-20,
      -0x1.f4d336dfd7b3fp-17, 0x1.f9a33a997f01ap-14, -0x1.c02db4e501e93p-11, 0x1.565bcd147fbf7p-8,
      -0x1.b82ce312b8ff6p-6,  0x1.ce2f21a0438d7p-4,  -0x1.812746b037ap-2,    0x1.06eba8214db69p-3};
  static constexpr double kErfHigh = 6;
  static constexpr double kErfLarge[] = {
      -0x1.224310d5b2b4ap-37, 0x1.6b561cd242091p-32,  -0x1.a67b629c156a5p-28,
      0x1.2e379a033d389p-24,  -0x1.283cc32e3367bp-21, 0x1.a142c2b42adecp-19,
      -0x1.a9aae7a2f936cp-17, 0x1.2b2653ead292cp-15,  -0x1.b7843e9b035c5p-15,
      -0x1.2cc9f1f9733bfp-14, 0x1.6075d259f6383p-11,  -0x1.d6ddd4d8dfa1fp-10,
      0x1.384d34d04679dp-12,  0x1.3874674386247p-6,   -0x1.a4d8840aa6e0bp-4,
      -0x1.45f4298fe7fe1p-1,  -0x1.20dd5880e8d63p0,   -0x1.4b132bf58b8dp-23};
};

// The functions for one format: V is the builder's value, B the builder.
template <class Format, class B, class V>
class Formulas {
 public:
  Formulas(B& b, V like) : b_(b), like_(like) {}

  V exp(V x) {
    x = clamp(x, Format::kExpLow, Format::kExpHigh);
    const auto reduced = reduceExp(x);
    return scale(b_.add(reduced.expm1, real(1)), reduced.n);
  }

  V log(V x) {
    const auto parts = split(x);
    return finishLog(x, logOf(b_.sub(parts.mantissa, real(1)), parts.exponent));
  }

  V log1p(V x) {
    const V u = b_.add(x, real(1));
    const auto parts = split(u);
    // m - 1 where 1 + x = 2^k m, rounded once: x 2^-k + (2^-k - 1). The factor 4 keeps 2^-k normal.
    const auto biased = b_.sub(b_.integer(parts.k, 2 * Format::kBias + 2), parts.k);
    const V power = b_.fromBits(shiftLeft(biased, Format::kMantissa));
    const V f = b_.fma(b_.mul(x, real(0.25)), power, b_.fma(power, real(0.25), real(-1)));
    const V result = finishLog(u, logOf(f, parts.exponent));
    // Keeps -0 and subnormal numbers.
    return b_.select(b_.lt(b_.magnitude(x), real(kHalfUlp)), x, result);
  }

  V sin(V x) { return b_.select(b_.eq(x, real(0)), x, sinOfTurned(x, 0)); }
  V cos(V x) { return sinOfTurned(x, 1); }

  V tanh(V x) {
    const V a = b_.magnitude(x), square = b_.mul(x, x);
    const V small = b_.fma(b_.mul(square, poly(square, Format::kTanh)), a, a);
    // 1 - 2 / (e^2a + 1)
    const V clamped = atMost(a, Format::kTanhHigh);
    const auto reduced = reduceExp(b_.add(clamped, clamped));
    const V power = powerOfTwo(reduced.n);
    const V plusOne = b_.fma(reduced.expm1, power, b_.add(power, real(1)));
    const V large = b_.sub(real(1), twoOver(plusOne));
    return withSign(b_.select(b_.lt(a, real(0.55)), small, large), x);
  }

  V erf(V x) {
    const V a = b_.magnitude(x), square = b_.mul(x, x);
    const V small = b_.fma(poly(square, Format::kErfSmall), x, x);
    // 1 - erfc(a) = 1 - 2^n (1 + expm1)
    const V clamped = atMost(a, Format::kErfHigh);
    const auto reduced = reduceExp(poly(clamped, Format::kErfLarge));
    const V power = powerOfTwo(reduced.n);
    const V large = b_.fma(b_.negate(reduced.expm1), power, b_.sub(real(1), power));
    return b_.select(b_.lt(a, real(Format::kErfSplit)), small, withSign(large, x));
  }

  V pow(V x, V y) {
    const V a = b_.magnitude(x);
    if constexpr (Format::kIsShort) {
      return finishPow(x, y, exp(b_.mul(y, log(a))));
    }
    const auto log = logInTwoParts(a);
    // y log(a) in two parts, then exp of the sum.
    V product = b_.mul(y, log.high);
    const auto inRange =
        b_.maskAnd(b_.le(real(Format::kExpLow), product), b_.le(product, real(Format::kExpHigh)));
    V rest = b_.fma(y, log.low, b_.fma(y, log.high, b_.negate(product)));
    rest = b_.select(inRange, rest, real(0));
    product = clamp(product, Format::kExpLow, Format::kExpHigh);
    const auto reduced = reduceExp(product, &rest);
    const V result = scale(b_.add(reduced.expm1, real(1)), reduced.n);
    return finishPow(x, y, result);
  }

  // Subtracts multiples of |y| 2^k for falling k. Each step takes a quotient of one mantissa's
  // width, so every difference is exact; few quotients are longer than one step's.
  V fmod(V x, V y) {
    constexpr int kSteps = (2 * Format::kBias + Format::kMantissa) / (Format::kMantissa + 1) + 1;
    const V a = b_.magnitude(x), d = b_.magnitude(y);
    const V rest = b_.rarely(
        b_.le(nextStep(d), a), [&] { return remainder<1>(a, d); },
        [&] { return remainder<kSteps>(a, d); });
    const auto valid = b_.maskAnd(b_.lt(a, infinity()), b_.lt(real(0), d));
    return b_.select(valid, withSign(rest, x), real(__builtin_nan("")));
  }

 private:
  static constexpr int64_t kOneBits = int64_t{Format::kBias} << Format::kMantissa;
  // Adding it rounds |x| < 2^(mantissa - 1) to an integer, which then stands in the low bits.
  static constexpr double kMagic = 3.0 * (int64_t{1} << (Format::kMantissa - 1));
  static constexpr int64_t kMagicBits =
      (int64_t{Format::kBias + Format::kMantissa} << Format::kMantissa) |
      (int64_t{1} << (Format::kMantissa - 1));
  static constexpr double kHalfUlp = 0.5 / (int64_t{1} << Format::kMantissa);

  template <class I>
  struct ReducedExp {
    V expm1;  // e^r - 1
    I n;      // where x = n log(2) + r
  };
  template <class I>
  struct Split {
    V mantissa;  // in [sqrt(1/2), sqrt(2))
    V exponent;
    I k;  // the exponent plus the bias, before the correction for subnormal numbers
  };
  struct TwoParts {
    V high, low;
  };

  V real(double value) { return b_.real(like_, value); }
  V infinity() { return real(__builtin_inf()); }
  template <class I>
  I shiftLeft(I i, int count) {
    return b_.shl(i, b_.integer(i, count));
  }
  template <class I>
  I shiftRight(I i, int count) {
    return b_.lshr(i, b_.integer(i, count));
  }
  template <class I>
  I plus(I i, int64_t value) {
    return b_.add(i, b_.integer(i, value));
  }

  template <size_t n>
  V poly(V x, const double (&coefficients)[n]) {
    return poly(x, coefficients, std::make_index_sequence<n - 1>());
  }
  template <size_t n, size_t... i>
  V poly(V x, const double (&coefficients)[n], std::index_sequence<i...>) {
    V result = real(coefficients[0]);
    ((result = b_.fma(result, x, real(coefficients[i + 1]))), ...);
    return result;
  }

  // These keep NaN.
  V atMost(V x, double high) { return b_.select(b_.lt(real(high), x), real(high), x); }
  V clamp(V x, double low, double high) {
    return atMost(b_.select(b_.lt(x, real(low)), real(low), x), high);
  }

  V withSign(V magnitude, V sign) {
    const auto bits = b_.bits(sign);
    const auto mask = b_.integer(bits, Format::kWidth == 64 ? INT64_MIN : INT32_MIN);
    return b_.fromBits(b_.bitOr(b_.bits(magnitude), b_.bitAnd(bits, mask)));
  }

  // 2^n for n in the normal range.
  template <class I>
  V powerOfTwo(I n) {
    return b_.fromBits(shiftLeft(plus(n, Format::kBias), Format::kMantissa));
  }
  // x 2^n by two factors, so that results overflow and underflow gradually with one rounding.
  template <class I>
  V scale(V x, I n) {
    return b_.scaled(x, n, [&] {
      const I sum = plus(n, 2 * Format::kBias);
      const I first = shiftRight(sum, 1);
      const V scaled = b_.mul(x, b_.fromBits(shiftLeft(first, Format::kMantissa)));
      return b_.mul(scaled, b_.fromBits(shiftLeft(b_.sub(sum, first), Format::kMantissa)));
    });
  }

  // e^(x + rest) in parts, for x between kExpLow and kExpHigh and a rest below an ulp of x.
  auto reduceExp(V x, const V* rest = nullptr) {
    const V shifted = b_.fma(x, real(0x1.71547652b82fep+0), real(kMagic));
    const V n = b_.sub(shifted, real(kMagic));
    V r = b_.fma(n, real(-Format::kLn2Hi), x);
    r = Format::kIsShort ? r : b_.fma(n, real(-Format::kLn2Lo), r);
    r = rest ? b_.add(r, *rest) : r;
    const V expm1 = b_.fma(b_.mul(r, r), poly(r, Format::kExp), r);
    const auto bits = plus(b_.bits(shifted), -kMagicBits);
    return ReducedExp<decltype(bits)>{expm1, bits};
  }

  // x = mantissa 2^exponent for positive finite x.
  auto split(V x) {
    const auto subnormal = b_.lt(x, real(Format::kMinNormal));
    const double power = double(int64_t{1} << Format::kMantissa);
    const auto bits = b_.bits(b_.select(subnormal, b_.mul(x, real(power)), x));
    const auto k = shiftRight(plus(bits, kOneBits - Format::kSqrtHalfBits), Format::kMantissa);
    const V mantissa = b_.fromBits(b_.sub(plus(bits, kOneBits), shiftLeft(k, Format::kMantissa)));
    // k as a float: it becomes the low bits of 2^mantissa.
    constexpr int64_t kPowerBits = kOneBits + (int64_t{Format::kMantissa} << Format::kMantissa);
    const V raised = b_.fromBits(b_.bitOr(k, b_.integer(k, kPowerBits)));
    const V offset = b_.select(subnormal, real(power + Format::kBias + Format::kMantissa),
                               real(power + Format::kBias));
    return Split<decltype(k)>{mantissa, b_.sub(raised, offset), k};
  }

  // log((1 + f) 2^exponent)
  V logOf(V f, V exponent) {
    if constexpr (Format::kIsShort) {
      return b_.fma(exponent, real(Format::kLn2Hi), b_.mul(f, poly(f, Format::kLog)));
    }
    const V s = b_.divide(f, b_.add(f, real(2)));
    const V square = b_.mul(s, s), halfSquare = b_.mul(b_.mul(f, real(0.5)), f);
    const V series = b_.mul(square, poly(square, Format::kLog));
    const V low = b_.fma(s, b_.add(halfSquare, series), b_.mul(exponent, real(Format::kLn2Lo)));
    return b_.fma(exponent, real(Format::kLn2Hi), b_.sub(f, b_.sub(halfSquare, low)));
  }
  V finishLog(V x, V result) {
    result = b_.select(b_.lt(x, infinity()), result, x);
    result = b_.select(b_.lt(x, real(0)), real(__builtin_nan("")), result);
    return b_.select(b_.eq(x, real(0)), b_.negate(infinity()), result);
  }

  // log(a) with about ten bits more than one number holds: 2 atanh(f / (2 + f)) with the first
  // terms of the series in two parts.
  TwoParts logInTwoParts(V a) {
    const auto parts = split(a);
    const V f = b_.sub(parts.mantissa, real(1)), d = b_.add(parts.mantissa, real(1));
    const V dLow = b_.sub(parts.mantissa, b_.sub(d, real(1)));
    const V inverse = b_.divide(real(1), d);
    const V s = b_.mul(f, inverse), negative = b_.negate(s);
    const V sLow = b_.mul(b_.fma(negative, dLow, b_.fma(negative, d, f)), inverse);
    const V square = b_.mul(s, s);
    const V squareLow = b_.fma(b_.add(s, s), sLow, b_.fma(s, s, b_.negate(square)));
    const TwoParts factor =
        sum(real(Format::kThirdHi), b_.mul(square, poly(square, Format::kAtanh)));
    const V factorLow = b_.add(factor.low, real(Format::kThirdLo));
    const TwoParts cube = product({square, squareLow}, {factor.high, factorLow});
    const TwoParts tail = product({s, sLow}, cube);
    const TwoParts half = sum(s, tail.high);
    const V halfLow = b_.add(half.low, b_.add(sLow, tail.low));

    const V high = b_.mul(parts.exponent, real(Format::kLn2Hi));
    const TwoParts log = sum(high, b_.add(half.high, half.high));
    const V low =
        b_.add(log.low, b_.fma(parts.exponent, real(Format::kLn2Lo), b_.add(halfLow, halfLow)));
    const V known = b_.select(b_.lt(a, infinity()), log.high, a);
    return {b_.select(b_.eq(a, real(0)), b_.negate(infinity()), known), low};
  }
  // x + y where |x| >= |y| or x = 0, and x * y.
  TwoParts sum(V x, V y) {
    const V high = b_.add(x, y);
    return {high, b_.sub(y, b_.sub(high, x))};
  }
  TwoParts product(TwoParts x, TwoParts y) {
    const V high = b_.mul(x.high, y.high);
    const V error = b_.fma(x.high, y.high, b_.negate(high));
    return {high, b_.fma(x.high, y.low, b_.fma(x.low, y.high, error))};
  }

  // 2 / x for a normal x. The short one divides logarithms, which are close to a float's bits, and
  // squares the error, 0.05, by two steps of Newton's.
  V twoOver(V x) {
    if constexpr (!Format::kIsShort) {
      return b_.divide(real(2), x);
    }
    const auto bits = b_.bits(x);
    V inverse = b_.fromBits(b_.sub(b_.integer(bits, 0x7ef311bb), bits));
    for (int step = 0; step < 2; ++step) {
      inverse = b_.mul(inverse, b_.fma(b_.negate(x), inverse, real(2)));
    }
    return b_.add(inverse, inverse);
  }

  // The sign of x for odd y, and the special cases of C's Annex F.
  V finishPow(V x, V y, V result) {
    const V half = b_.mul(y, real(0.5));
    const auto integral = b_.eq(b_.floor(y), y);
    const auto odd = b_.maskAnd(integral, b_.ne(b_.floor(half), half));
    result = b_.select(odd, withSign(result, x), result);
    const auto negative = b_.maskAnd(b_.lt(x, real(0)), b_.lt(b_.negate(infinity()), x));
    const auto undefined = b_.maskAnd(negative, b_.ne(b_.floor(y), y));
    result = b_.select(undefined, real(__builtin_nan("")), result);
    const auto unit = b_.maskAnd(b_.eq(x, real(-1)), b_.eq(b_.magnitude(y), infinity()));
    const auto one = b_.maskOr(b_.maskOr(b_.eq(x, real(1)), b_.eq(y, real(0))), unit);
    return b_.select(one, real(1), result);
  }

  // An angle as quarter turns, which stand in the low bits of `quarters`, and a rest.
  struct Angle {
    V quarters, rest;
  };

  Angle reduceAngle(V x) {
    const V shifted = b_.fma(x, real(0x1.45f306dc9c883p-1), real(kMagic));
    const V n = b_.sub(shifted, real(kMagic));
    V r = x;
    r = b_.fma(n, real(-Format::kHalfPi[0]), r);
    r = b_.fma(n, real(-Format::kHalfPi[1]), r);
    r = Format::kIsShort ? r : b_.fma(n, real(-Format::kHalfPi[2]), r);
    return {shifted, clamp(r, -0.8, 0.8)};
  }

  // The same for |x| >= kHugeAngle, after Payne and Hanek ("Radian reduction for trigonometric
  // functions", 1983), in f64: products with a piece are exact, and whole turns are dropped from
  // each. A term that the sum so far cannot hold exactly is the last but one or two, and the sum is
  // close to the result by then, because the quarter turns, found first, are taken off first.
  Angle reduceHugeAngle(V x) {
    constexpr auto& kPieces = Format::kInverseTurn;
    constexpr int kTerms = 5;
    const auto wide = b_.template castTo<dtype::f64>(x);
    const auto number = [&](double value) { return b_.real(wide, value); };
    const auto few = b_.lt(b_.magnitude(wide), number(Format::kFewTurns));
    using Wide = std::remove_const_t<decltype(wide)>;
    const auto term = [&](int i) -> Wide {
      const auto piece = b_.select(few, number(kPieces[i]), number(kPieces[i + 2]));
      const auto turns = b_.mul(wide, piece);
      return i == kTerms - 1 ? turns : b_.sub(turns, b_.rint(turns));
    };
    const Wide terms[kTerms] = {term(0), term(1), term(2), term(3), term(4)};
    const auto sumFrom = [&](Wide sum) {
      for (int i = 1; i < kTerms; ++i) {
        sum = b_.add(sum, terms[i]);
      }
      return sum;
    };
    const auto quarters = b_.rint(b_.mul(sumFrom(terms[0]), number(4)));
    const auto rest = sumFrom(b_.fma(quarters, number(-0.25), terms[0]));
    return {b_.add(b_.template castTo<dtype::f32>(quarters), real(kMagic)),
            b_.template castTo<dtype::f32>(b_.mul(rest, number(0x1.921fb54442d18p+2)))};
  }

  // The upper half of the product of two u64.
  template <class U>
  U highProduct(U x, U y) {
    const auto low = [&](U z) { return b_.bitAnd(z, b_.integer(z, 0xffffffff)); };
    const auto high = [&](U z) { return b_.lshr(z, b_.integer(z, 32)); };
    const U cross1 = b_.mul(high(x), low(y)), cross2 = b_.mul(low(x), high(y));
    const U middle = b_.add(b_.add(high(b_.mul(low(x), low(y))), low(cross1)), low(cross2));
    return b_.add(b_.add(b_.mul(high(x), high(y)), b_.add(high(cross1), high(cross2))),
                  high(middle));
  }

  // The same for f64, in integers: of 1 / (2 pi), the 192 bits behind those whose products with x
  // are whole turns, times x's mantissa. 128 bits of the product's fraction tell an angle as near
  // to a quarter turn as any f64 comes, 2^-62, to all its digits.
  Angle reduceHugeAngleInWords(V x) {
    constexpr int kWords = std::size(Format::kInverseTurn), kTaken = 4;
    const auto word = b_.template castTo<dtype::u64>(b_.bits(b_.magnitude(x)));
    using U = std::remove_const_t<decltype(word)>;
    const auto number = [&](uint64_t value) {
      return b_.integer(word, static_cast<int64_t>(value));
    };
    const U mantissa =
        b_.bitOr(b_.bitAnd(word, number((uint64_t{1} << 52) - 1)), number(uint64_t{1} << 52));
    const U first = b_.sub(b_.lshr(word, number(52)), number(1023 + 52 - 64));
    std::array<U, kWords> words;
    for (int i = 0; i < kWords; ++i) words[i] = number(Format::kInverseTurn[i]);
    for (int step = 16; step > 0; step /= 2) {
      const auto skips = b_.isNonZero(b_.bitAnd(first, number(uint64_t{64} * step)));
      for (int i = 0; i < kTaken - 1 + step && i + step < kWords; ++i) {
        words[i] = b_.select(skips, words[i + step], words[i]);
      }
    }
    const U shift = b_.bitAnd(first, number(63)), back = b_.sub(number(63), shift);
    const auto taken = [&](int i) {
      return b_.bitOr(b_.shl(words[i], shift), b_.lshr(b_.lshr(words[i + 1], number(1)), back));
    };
    const U product = b_.mul(mantissa, taken(1));
    const U lower = b_.add(product, highProduct(mantissa, taken(2)));
    const U carry = b_.select(b_.lt(lower, product), number(1), number(0));
    const U upper =
        b_.add(b_.add(b_.mul(mantissa, taken(0)), highProduct(mantissa, taken(1))), carry);
    const U quarters = b_.lshr(b_.add(upper, number(uint64_t{1} << 61)), number(62));
    const U rest = b_.sub(upper, b_.shl(quarters, number(62)));
    const auto real64 = [&](U bits, double unit) {
      const auto signedBits = b_.template castTo<dtype::s64>(bits);
      return b_.mul(b_.template castTo<dtype::f64>(signedBits), real(unit));
    };
    // The upper 53 bits, which are a f64, and what is below.
    const V below = b_.add(real64(b_.bitAnd(rest, number(0x7ff)), 0x1p-64),
                           real64(b_.lshr(lower, number(11)), 0x1p-117));
    const V exact = real64(b_.bitAnd(rest, number(~uint64_t{0x7ff})), 0x1p-64);
    const V turn = real(0x1.921fb54442d18p+2);
    const V angle =
        b_.fma(exact, turn, b_.fma(below, turn, b_.mul(exact, real(0x1.1a62633145c07p-52))));
    const auto isNegative = b_.lt(x, real(0));
    const V number64 = b_.fromBits(b_.template castTo<dtype::s64>(
        b_.select(isNegative, b_.sub(number(0), quarters), quarters)));
    // NaN for infinity.
    return {number64, b_.add(b_.select(isNegative, b_.negate(angle), angle), b_.sub(x, x))};
  }

  // sin(x + quarters pi / 2)
  V sinOfTurned(V x, int64_t quarters) {
    const auto huge = [&] {
      if constexpr (Format::kWidth == 32) {
        return reduceHugeAngle(x);
      } else {
        return reduceHugeAngleInWords(x);
      }
    };
    return b_.rarely(
        b_.le(real(Format::kHugeAngle), b_.magnitude(x)),
        [&] { return sinOfAngle(reduceAngle(x), quarters); },
        [&] { return sinOfAngle(huge(), quarters); });
  }

  V sinOfAngle(Angle angle, int64_t quarters) {
    const V r = angle.rest, square = b_.mul(r, r);
    const V sin = b_.fma(b_.mul(square, poly(square, Format::kSin)), r, r);
    const V cos = b_.fma(b_.mul(square, square), poly(square, Format::kCos),
                         b_.fma(square, real(-0.5), real(1)));
    const auto turned = plus(b_.bits(angle.quarters), quarters);
    const auto odd = b_.ne(b_.bitAnd(turned, b_.integer(turned, 1)), b_.integer(turned, 0));
    const auto sign = shiftLeft(b_.bitAnd(turned, b_.integer(turned, 2)), Format::kWidth - 2);
    return b_.fromBits(b_.bitXor(b_.bits(b_.select(odd, cos, sin)), sign));
  }

  V nextStep(V d) { return b_.mul(d, real(2.0 * (int64_t{1} << Format::kMantissa))); }

  template <int steps>
  V remainder(V a, V d) {
    if constexpr (steps > 1) {
      a = remainder<steps - 1>(a, nextStep(d));
    }
    const V quotient = b_.floor(b_.divide(a, d));
    const V rest = b_.fma(b_.negate(quotient), d, a);
    // The quotient may have been rounded up by one.
    const V fixed = b_.select(b_.lt(rest, real(0)), b_.add(rest, d), rest);
    return b_.select(b_.le(d, a), fixed, a);
  }

  B& b_;
  V like_;
};

// Calls f with the formulas of x's format.
template <class B, class V, class F>
V withFormulas(B& b, V x, F&& f) {
  if constexpr (B::kStaticTypes) {
    using Long = std::conditional_t<sizeof(V) == 8, Double, Single>;
    return f(Formulas<std::conditional_t<B::isShort(), Short, Long>, B, V>(b, x));
  } else {
    return b.isDouble(x) ? f(Formulas<Double, B, V>(b, x))
           : b.isShort() ? f(Formulas<Short, B, V>(b, x))
                         : f(Formulas<Single, B, V>(b, x));
  }
}

}  // namespace detail

#define FL_VECTOR_MATH(name)                                                    \
  template <class B, class V>                                                   \
  V name(B& b, V x) {                                                           \
    return detail::withFormulas(b, x, [&](auto math) { return math.name(x); }); \
  }
FL_VECTOR_MATH(exp)
FL_VECTOR_MATH(log)
FL_VECTOR_MATH(log1p)
FL_VECTOR_MATH(sin)
FL_VECTOR_MATH(cos)
FL_VECTOR_MATH(tanh)
FL_VECTOR_MATH(erf)
#undef FL_VECTOR_MATH

template <class B, class V>
V pow(B& b, V x, V y) {
  return detail::withFormulas(b, x, [&](auto math) { return math.pow(x, y); });
}
template <class B, class V>
V fmod(B& b, V x, V y) {
  return detail::withFormulas(b, x, [&](auto math) { return math.fmod(x, y); });
}

}  // namespace fl::ir::vm
