// Every op on every dtype, and every cast, against plain C++.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "fl/base/Types.h"
#include "fl/tile/TileOps.h"
#include "tests/runtime/TileVariants.h"

namespace fl::tile {
namespace {

using ir::Op;

template <class T>
bool same(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    return (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y));
  } else {
    return x == y;
  }
}

// All pairs of some special and some random numbers.
template <class T>
void makePairs(std::vector<T>* x, std::vector<T>* y) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> numbers = {T(0),
                            T(1),
                            T(2),
                            T(3),
                            T(7),
                            T(8),
                            T(31),
                            T(100),
                            Limits::max(),
                            Limits::lowest(),
                            T(Limits::max() / 3)};
  if constexpr (std::is_signed_v<T>) {
    numbers.insert(numbers.end(), {T(-1), T(-2), T(-7), T(Limits::lowest() + 1)});
  }
  if constexpr (std::is_floating_point_v<T>) {
    numbers.insert(numbers.end(), {T(-0.0), T(0.5), T(-2.5), T(1.5), Limits::infinity(),
                                   -Limits::infinity(), Limits::quiet_NaN(), Limits::denorm_min()});
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 20; ++i) {
    if constexpr (std::is_floating_point_v<T>) {
      numbers.push_back(static_cast<T>(static_cast<double>(random() % 20001) * 0.01 - 100));
    } else {
      numbers.push_back(static_cast<T>(random()));
    }
  }
  for (T first : numbers) {
    for (T second : numbers) {
      x->push_back(first);
      y->push_back(second);
    }
  }
  const size_t whole = (x->size() + kTileGroup - 1) / kTileGroup * kTileGroup;
  x->resize(whole, T(1));
  y->resize(whole, T(1));
}

// What the rows of Ops.def promise, in the widest type.
template <class T>
struct Want {
  static constexpr bool kFloat = std::is_floating_point_v<T>;
  static constexpr int kWidth = 8 * sizeof(T);
  static T wrap(__int128 value) { return static_cast<T>(static_cast<uint64_t>(value)); }

  static T add(T x, T y) {
    if constexpr (kFloat)
      return x + y;
    else
      return wrap(__int128(x) + y);
  }
  static T sub(T x, T y) {
    if constexpr (kFloat)
      return x - y;
    else
      return wrap(__int128(x) - y);
  }
  static T mul(T x, T y) {
    if constexpr (kFloat)
      return x * y;
    else
      return wrap(static_cast<__int128>(static_cast<unsigned __int128>(x) *
                                        static_cast<unsigned __int128>(y)));
  }
  static T div(T x, T y) {
    if constexpr (kFloat)
      return x / y;
    else
      return y == 0 ? T(0) : wrap(__int128(x) / y);
  }
  static T mod(T x, T y) {
    if constexpr (kFloat)
      return std::fmod(x, y);
    else
      return y == 0 ? T(0) : wrap(__int128(x) % y);
  }
  static T min(T x, T y) { return x != x ? x : y != y ? y : x < y ? x : y; }
  static T max(T x, T y) { return x != x ? x : y != y ? y : y < x ? x : y; }
  static T neg(T x) {
    if constexpr (kFloat)
      return -x;
    else
      return wrap(-__int128(x));
  }
  static T abs(T x) {
    if constexpr (kFloat)
      return std::fabs(x);
    else
      return x < 0 ? wrap(-__int128(x)) : x;
  }
  static T sign(T x) { return x < 0 ? T(-1) : x > 0 ? T(1) : x; }
  static T shiftLeft(T x, T y) {
    return y < 0 || y >= kWidth ? T(0) : wrap(__int128(x) << static_cast<int>(y));
  }
  static T shiftRight(T x, T y) {
    return T(x >> (y < 0 || y >= kWidth ? kWidth - 1 : static_cast<int>(y))) *
           T(std::is_signed_v<T> || (y >= 0 && y < kWidth));
  }
};

// Plain functions keep this at one instance a dtype.
template <class T, class R>
void expectOp(Op op, dtype type, R (*want)(T, T)) {
  std::vector<T> x, y;
  makePairs(&x, &y);
  for (TileVariant variant : testing::tileVariants()) {
    std::vector<R> got(x.size());
    const TileFunction function =
        tileOps(variant).apply[static_cast<int>(op)][static_cast<int>(type)];
    ASSERT_TRUE(function) << opName(op) << " " << type;
    function(got.data(), x.data(), y.data(), nullptr, static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_TRUE(same(got[i], want(x[i], y[i])))
          << opName(op) << "(" << +x[i] << ", " << +y[i] << "): " << type << " = " << +got[i];
    }
  }
}

template <class T>
void expectArithmetic(dtype type) {
  using W = Want<T>;
  expectOp<T, T>(Op::Add, type, W::add);
  expectOp<T, T>(Op::Sub, type, W::sub);
  expectOp<T, T>(Op::Mul, type, W::mul);
  expectOp<T, T>(Op::Div, type, W::div);
  expectOp<T, T>(Op::Mod, type, W::mod);
  expectOp<T, T>(Op::Minimum, type, W::min);
  expectOp<T, T>(Op::Maximum, type, W::max);
  expectOp<T, T>(Op::Negative, type, [](T x, T) { return W::neg(x); });
  expectOp<T, T>(Op::Absolute, type, [](T x, T) { return W::abs(x); });
  expectOp<T, T>(Op::Sign, type, [](T x, T) { return W::sign(x); });
  expectOp<T, char>(Op::LogicalNot, type, [](T x, T) { return char(x == 0); });
  expectOp<T, char>(Op::LogicalAnd, type, [](T x, T y) { return char(x != 0 && y != 0); });
  expectOp<T, char>(Op::LogicalOr, type, [](T x, T y) { return char(x != 0 || y != 0); });
  expectOp<T, char>(Op::Eq, type, [](T x, T y) { return char(x == y); });
  expectOp<T, char>(Op::Neq, type, [](T x, T y) { return char(x != y); });
  expectOp<T, char>(Op::LessThan, type, [](T x, T y) { return char(x < y); });
  expectOp<T, char>(Op::LessThanEqual, type, [](T x, T y) { return char(x <= y); });
  expectOp<T, char>(Op::GreaterThan, type, [](T x, T y) { return char(x > y); });
  expectOp<T, char>(Op::GreaterThanEqual, type, [](T x, T y) { return char(x >= y); });
  if constexpr (std::is_floating_point_v<T>) {
    expectOp<T, char>(Op::IsNan, type, [](T x, T) { return char(x != x); });
    expectOp<T, char>(Op::IsInf, type, [](T x, T) { return char(std::isinf(x)); });
    expectOp<T, T>(Op::Sqrt, type, [](T x, T) { return std::sqrt(x); });
    expectOp<T, T>(Op::Floor, type, [](T x, T) { return std::floor(x); });
    expectOp<T, T>(Op::Ceil, type, [](T x, T) { return std::ceil(x); });
    expectOp<T, T>(Op::Rint, type, [](T x, T) { return std::rint(x); });
  } else {
    expectOp<T, T>(Op::BitwiseAnd, type, [](T x, T y) { return T(x & y); });
    expectOp<T, T>(Op::BitwiseOr, type, [](T x, T y) { return T(x | y); });
    expectOp<T, T>(Op::BitwiseXor, type, [](T x, T y) { return T(x ^ y); });
    expectOp<T, T>(Op::LShift, type, W::shiftLeft);
    expectOp<T, T>(Op::RShift, type, W::shiftRight);
  }
}

// Calls f with the number types that ops compute in.
template <class F>
void forEachComputeType(F&& f) {
  for (int type = 0; type < kDtypeCount; ++type) {
    const dtype t = static_cast<dtype>(type);
    dispatchType(t, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_arithmetic_v<T>) {
        f(tag, t);
      }
    });
  }
}

TEST(TileOpsTest, ArithmeticOfEveryType) {
  forEachComputeType(
      [](auto tag, dtype type) { expectArithmetic<typename decltype(tag)::type>(type); });
}

TEST(TileOpsTest, IntegerDivisionHasNoTraps) {
  const int32_t kMin = std::numeric_limits<int32_t>::min();
  std::vector<int32_t> x(kTileGroup, kMin), y(kTileGroup, -1), quotient(kTileGroup),
      rest(kTileGroup);
  y[1] = 0;
  for (TileVariant variant : testing::tileVariants()) {
    const auto& table = tileOps(variant).apply;
    constexpr int kType = static_cast<int>(dtype::s32);
    table[static_cast<int>(Op::Div)][kType](quotient.data(), x.data(), y.data(), nullptr,
                                            kTileGroup);
    table[static_cast<int>(Op::Mod)][kType](rest.data(), x.data(), y.data(), nullptr, kTileGroup);
    EXPECT_EQ(quotient[0], kMin);
    EXPECT_EQ(quotient[1], 0);
    EXPECT_EQ(rest[0], 0);
    EXPECT_EQ(rest[1], 0);
  }
}

TEST(TileOpsTest, WhereSelectsByItsCondition) {
  forEachComputeType([](auto tag, dtype type) {
    using T = typename decltype(tag)::type;
    std::vector<T> x, y;
    makePairs(&x, &y);
    std::vector<char> mask;
    for (size_t i = 0; i < x.size(); ++i) {
      mask.push_back(static_cast<char>(i % 3 == 0));
    }
    for (TileVariant variant : testing::tileVariants()) {
      std::vector<T> got(x.size());
      tileOps(variant).apply[static_cast<int>(Op::Where)][static_cast<int>(type)](
          got.data(), mask.data(), x.data(), y.data(), static_cast<int64_t>(x.size()));
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_TRUE(same(got[i], mask[i] ? x[i] : y[i])) << type << " " << i;
      }
    }
  });
}

TEST(TileOpsTest, PairsAreTheirTwoFunctions) {
  std::vector<float> x, y;
  makePairs(&x, &y);
  std::vector<float> z(y.rbegin(), y.rend());
  for (TileVariant variant : testing::tileVariants()) {
    for (const TilePair& pair : tileOps(variant).pairs) {
      const auto count = static_cast<int64_t>(x.size());
      std::vector<float> made(x.size()), want(x.size()), got(x.size());
      pair.first(made.data(), x.data(), y.data(), nullptr, count);
      const float* const first = pair.place == 0 ? made.data() : z.data();
      pair.second(want.data(), first, pair.place == 0 ? z.data() : made.data(), nullptr, count);
      pair.both(got.data(), x.data(), y.data(), z.data(), count);
      for (size_t i = 0; i < x.size(); ++i) ASSERT_TRUE(same(got[i], want[i])) << i;
    }
  }
}

// Ops may write over an operand of the same width.
TEST(TileOpsTest, ResultsMayReplaceOperands) {
  std::vector<float> x(kTile), y(kTile);
  for (int64_t i = 0; i < kTile; ++i) {
    x[i] = static_cast<float>(i) * 1.5f;
    y[i] = static_cast<float>(i % 7);
  }
  for (TileVariant variant : testing::tileVariants()) {
    const TileOps& ops = tileOps(variant);
    std::vector<float> sum = y;
    ops.apply[static_cast<int>(Op::Add)][static_cast<int>(dtype::f32)](sum.data(), x.data(),
                                                                       sum.data(), nullptr, kTile);
    std::vector<float> number = x;
    ops.cast[static_cast<int>(dtype::f32)][static_cast<int>(dtype::s32)](
        number.data(), number.data(), nullptr, nullptr, kTile);
    for (int64_t i = 0; i < kTile; ++i) {
      EXPECT_EQ(sum[i], x[i] + y[i]);
      EXPECT_EQ(std::bit_cast<int32_t>(number[i]), static_cast<int32_t>(x[i]));
    }
  }
}

// ---- casts ----

// Rounds to nearest, ties to even, by arithmetic in double.
double roundToHalf(double x) {
  if (!std::isfinite(x) || x == 0) {
    return x;
  }
  int exponent;
  std::frexp(x, &exponent);
  const double ulp = std::ldexp(1, std::max(exponent - 11, -24));
  const double rounded = std::nearbyint(x / ulp) * ulp;
  return std::fabs(rounded) > 65504 ? std::copysign(INFINITY, x) : rounded;
}
double roundToBfloat(double x) {
  if (!std::isfinite(x) || x == 0) {
    return x;
  }
  int exponent;
  std::frexp(x, &exponent);
  const double ulp = std::ldexp(1, std::max(exponent - 8, -133));
  const double rounded = std::nearbyint(x / ulp) * ulp;
  return std::fabs(rounded) > 0x1.fep127 ? std::copysign(INFINITY, x) : rounded;
}

template <class T>
double numberOf(T x) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(x);
  } else if constexpr (sizeof(T) == 2 && std::is_same_v<T, half>) {
    return static_cast<double>(x);
  } else {
    return static_cast<double>(std::bit_cast<float>(uint32_t{x.bits} << 16));
  }
}

// The rule of op Cast: what a float R must hold for x.
template <class R, class T>
double castToFloat(T x) {
  double want = numberOf(x);
  if constexpr (sizeof(R) <= 4 && std::is_integral_v<T>) {
    want = static_cast<float>(x);  // at once: by way of double it would be rounded twice
  } else if constexpr (sizeof(R) <= 4) {
    want = static_cast<float>(want);
  }
  return std::is_same_v<R, half> ? roundToHalf(want) : sizeof(R) == 2 ? roundToBfloat(want) : want;
}
template <class R, class T>
R castToInteger(T x) {
  using Limits = std::numeric_limits<R>;
  if constexpr (std::is_integral_v<T>) {
    return static_cast<R>(x);
  } else {
    const long double value = std::trunc(static_cast<long double>(numberOf(x)));
    return std::isnan(value)           ? R(0)
           : value <= Limits::lowest() ? Limits::lowest()
           : value >= Limits::max()    ? Limits::max()
                                       : static_cast<R>(value);
  }
}
template <class R, class T>
bool castIs(R got, T x, dtype to) {
  if constexpr (!std::is_integral_v<R>) {
    return same(numberOf(got), castToFloat<R>(x));
  } else {
    // No integer but 0 becomes 0 as a double.
    return to == dtype::b8 ? got == R(numberOf(x) != 0) : got == castToInteger<R>(x);
  }
}

template <class T>
std::vector<T> castSources(dtype type) {
  std::vector<T> result;
  if constexpr (sizeof(T) <= 2) {  // all of them
    for (uint32_t bits = 0; bits < uint32_t{1} << (8 * sizeof(T)); ++bits) {
      result.emplace_back();
      std::memcpy(static_cast<void*>(&result.back()), &bits, sizeof(T));
    }
    return result;
  } else {
    using Limits = std::numeric_limits<T>;
    for (double value : {0.0,          -0.0,
                         0.4,          1.0,
                         -1.0,         1.5,
                         2.5,          -2.5,
                         127.5,        128.0,
                         255.0,        256.0,
                         -129.0,       32767.9,
                         65504.0,      65519.9,
                         65520.0,      65535.0,
                         65536.0,      -40000.0,
                         2147483520.0, 2147483647.0,
                         2147483648.0, 4294967295.0,
                         4294967296.0, 9.2233720368547758e18,
                         9.3e18,       -9.2233720368547758e18}) {
      if (std::is_floating_point_v<T> || (value >= static_cast<double>(Limits::lowest()) &&
                                          value < static_cast<double>(Limits::max()))) {
        result.push_back(static_cast<T>(value));
      }
    }
    result.insert(result.end(), {Limits::max(), Limits::lowest(), Limits::min()});
    if constexpr (std::is_floating_point_v<T>) {
      result.insert(result.end(), {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                                   Limits::denorm_min(), T(1.8446744073709552e19), T(6e-8),
                                   T(0x1p-25), T(0x1.001p0), T(0x1.003p0), T(0x1.01p0)});
    }
    std::mt19937_64 random(static_cast<uint64_t>(type));
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    for (int i = 0; i < 20'000; ++i) {
      result.push_back(std::bit_cast<T>(static_cast<Bits>(random())));
      if constexpr (std::is_integral_v<T>) {
        result.push_back(static_cast<T>(static_cast<Bits>(random()) >> random() % (8 * sizeof(T))));
      } else {
        result.push_back(static_cast<T>(
            std::ldexp(static_cast<double>(random()), -static_cast<int>(random() % 90))));
      }
    }
    return result;
  }
}

// The first source that a cast got wrong, or -1.
template <class T, class R>
int64_t findWrongCast(TileFunction cast, const std::vector<T>& x, dtype to) {
  std::vector<R> got(x.size());
  cast(got.data(), x.data(), nullptr, nullptr, static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    if (!castIs(got[i], x[i], to)) {
      return static_cast<int64_t>(i);
    }
  }
  return -1;
}

template <class T>
void expectCasts(dtype from) {
  std::vector<T> x = castSources<T>(from);
  x.resize((x.size() + kTileGroup - 1) / kTileGroup * kTileGroup);
  for (int to = 0; to < kDtypeCount; ++to) {
    const dtype type = static_cast<dtype>(to);
    for (TileVariant variant : testing::tileVariants()) {
      const TileFunction cast = tileOps(variant).cast[static_cast<int>(from)][to];
      const int64_t wrong = dispatchType(type, [&](auto tag) {
        return findWrongCast<T, typename decltype(tag)::type>(cast, x, type);
      });
      EXPECT_EQ(wrong, -1) << numberOf(x[std::max<int64_t>(wrong, 0)]) << " from " << from << " to "
                           << type;
    }
  }
}

// ---- sums of 16-bit floats ----

// Every value of T with some others; float sums of two of T, rounded to T, are rounded once.
template <class T>
void expectSums(dtype type) {
  const std::vector<T> x = castSources<T>(type);
  std::vector<T> y(x.size());
  std::vector<float> totals(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    y[i] = x[(i * 40503 + 12345) % x.size()];
    totals[i] = static_cast<float>(numberOf(y[i])) * 1.001f;
  }
  const auto count = static_cast<int64_t>(x.size());
  for (TileVariant variant : testing::tileVariants()) {
    const TileOps& ops = tileOps(variant);
    std::vector<T> sums(x.size()), running(x.size());
    std::vector<float> wide = totals;
    ops.apply[static_cast<int>(Op::Add)][static_cast<int>(type)](sums.data(), x.data(), y.data(),
                                                                 nullptr, count);
    ops.sum[static_cast<int>(type)](running.data(), x.data(), wide.data(), 1, 0, count, false);
    for (size_t i = 0; i < x.size(); ++i) {
      const double total = totals[i] + static_cast<float>(numberOf(x[i]));
      ASSERT_TRUE(same(numberOf(sums[i]), castToFloat<T>(numberOf(x[i]) + numberOf(y[i])))) << i;
      ASSERT_TRUE(same(static_cast<double>(wide[i]), total)) << i;
      ASSERT_TRUE(same(numberOf(running[i]), castToFloat<T>(total))) << i;
    }
  }
}

TEST(TileOpsTest, SumsOf16BitFloats) {
  expectSums<half>(dtype::f16);
  expectSums<bfloat16>(dtype::bf16);
}

// Of three rows that lie apart; what lies between them is left as it is. Integers wrap.
template <class T>
void expectRunningSums(dtype type, SumFunction sum, bool streams) {
  using Total = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
  constexpr int64_t kCount = 2 * kTileGroup, kStride = 3 * kTileGroup, kRows = 3;
  alignas(64) T x[kRows * kStride], out[kRows * kStride];
  for (int64_t i = 0; i < kRows * kStride; ++i) {
    x[i] = T(i * 7919 / 13 % 101 + 0.25);
    out[i] = T(42);
  }
  std::vector<Total> totals(kCount), want(kCount);
  for (int64_t i = 0; i < kCount; ++i) want[i] = totals[i] = Total(i % 64 + 0.5);
  sum(out, x, totals.data(), kRows, kStride * sizeof(T), kCount, streams);
  for (int64_t at = 0; at < kRows * kStride; ++at) {
    const int64_t i = at % kStride;
    if (i < kCount) want[i] = static_cast<Total>(want[i] + static_cast<Total>(x[at]));
    ASSERT_EQ(numberOf(out[at]), i < kCount ? numberOf(T(want[i])) : 42) << type << ", " << at;
  }
  ASSERT_EQ(totals, want) << type;
}

TEST(TileOpsTest, RunningSumsOfRows) {
  for (TileVariant variant : testing::tileVariants()) {
    for (int type = 0; type < kDtypeCount; ++type) {
      dispatchType(static_cast<dtype>(type), [&](auto tag) {
        for (bool streams : {false, true}) {
          expectRunningSums<typename decltype(tag)::type>(static_cast<dtype>(type),
                                                          tileOps(variant).sum[type], streams);
        }
      });
    }
  }
}

TEST(TileOpsTest, CastsOfEveryPair) {
  for (int from = 0; from < kDtypeCount; ++from) {
    dispatchType(static_cast<dtype>(from), [&](auto tag) {
      expectCasts<typename decltype(tag)::type>(static_cast<dtype>(from));
    });
  }
}

TEST(TileOpsTest, CastsKeepTheBfloatOfABfloatNan) {
  std::vector<float> x(kTileGroup, std::bit_cast<float>(0xffa00001u));
  std::vector<uint16_t> got(kTileGroup);
  for (TileVariant variant : testing::tileVariants()) {
    tileOps(variant).cast[static_cast<int>(dtype::f32)][static_cast<int>(dtype::bf16)](
        got.data(), x.data(), nullptr, nullptr, kTileGroup);
    EXPECT_EQ(got[0], bfloat16(x[0]).bits);
    EXPECT_EQ(got[0], 0xffe0);
  }
}

}  // namespace
}  // namespace fl::tile
