// Vector math: exp, log, log1p, sin, cos, tanh, erf, pow and fmod as straight-line code over the
// builder that Meaning.h describes, for f32 and f64.
//
// There is no branch, table look-up, conversion between float and integer, or contraction: every
// fused multiply-add is written out, so each executor computes the same bits (of a NaN: a NaN).
// What few arguments need, the reduction of huge angles (the one that converts) and long quotients,
// goes through b.rarely(). Arguments are reduced the classic way (Cody and Waite, "Software Manual
// for the Elementary Functions", 1980; the logarithms follow Tang's series in s = f / (2 + f)).
// FloatFormats.h has their polynomials.
//
// Largest errors, in units in the last place of the result: exp 0.98 (f64 1.01), log 0.85, erf 1,
// pow 1.3, tanh 1.4, log1p 1.5, sin and cos 1.6; fmod is exact. tests/ir/VectorMathTest.cpp asserts
// bounds; docs/accuracy.md is a table of all f32 numbers, and more.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>

#include "fl/base/Types.h"
#include "fl/ir/FloatFormats.h"

namespace fl::ir::vm {

namespace detail {

// The functions for one format: V is the builder's value, B the builder.
template <class Format, class B, class V>
class Formulas {
 public:
  Formulas(B& b, V like) : b_(b), like_(like) {}

  V exp(V x) {
    x = clamp(x, Format::kExpLow, Format::kExpHigh);
    const auto reduced = reduceExp(x);
    return scale(b_.add(reduced.expm1, real(1)), reduced);
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
    const auto reduced = erfcOf(atMost(a, Format::kErfHigh));
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
    const V result = scale(b_.add(reduced.expm1, real(1)), reduced);
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
    V power;  // n, where x = n log(2) + r
    I n;
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
  V scale(V x, const ReducedExp<I>& by) {
    return b_.scaled(x, by.power, [&] {
      // Half of n + 2 kBias, where exponents stand, is cut off to the first of them.
      const I half = shiftLeft(plus(by.n, 2 * Format::kBias), Format::kMantissa - 1);
      const I first = b_.bitAnd(half, b_.integer(half, -(int64_t{1} << Format::kMantissa)));
      const V scaled = b_.mul(x, b_.fromBits(first));
      return b_.mul(scaled, b_.fromBits(b_.sub(b_.add(half, half), first)));
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
    return ReducedExp<decltype(bits)>{expm1, n, bits};
  }

  // 1 - erf(a) in parts. In f64, where half an ulp of the logarithm is a good part of one of the
  // result, what the last two steps of its polynomial round off is kept.
  auto erfcOf(V a) {
    if constexpr (Format::kWidth == 32) return reduceExp(poly(a, Format::kErfLarge));
    constexpr size_t kLast = std::size(Format::kErfLarge) - 1;
    const V first = real(Format::kErfLarge[kLast - 1]), last = real(Format::kErfLarge[kLast]);
    const V inner = poly(a, Format::kErfLarge, std::make_index_sequence<kLast - 2>());
    const V slope = b_.fma(inner, a, first), log = b_.fma(slope, a, last);
    const V slopeRest = b_.fma(inner, a, b_.sub(first, slope));
    const V rest = b_.fma(slopeRest, a, b_.add(b_.fma(slope, a, b_.negate(log)), last));
    return reduceExp(log, &rest);
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
    const V s = b_.divideOrdinary(f, b_.add(f, real(2)));
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
    const V inverse = b_.divideOrdinary(real(1), d);
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
      return b_.divideOrdinary(real(2), x);
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
