// Vector math as the tile functions compute it, against the C library in the next wider type.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#define FL_TILE_VARIANT philox_test
#include "fl/ir/Philox.h"
#include "fl/tile/TileBuilder.h"
#include "fl/tile/TileOps.h"
#include "tests/runtime/TileVariants.h"

namespace fl::ir {
namespace {

using tile::kTileGroup;
using tile::TileVariant;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <class T>
constexpr dtype kType = sizeof(T) == 4 ? dtype::f32 : dtype::f64;

template <class T>
std::vector<T> apply(TileVariant variant, Op op, std::vector<T> x, std::vector<T> y = {}) {
  const size_t size = x.size();
  const size_t padded = (size + kTileGroup - 1) / kTileGroup * kTileGroup;
  x.resize(padded, T(1));
  y.resize(padded, T(1));
  std::vector<T> result(padded);
  tile::tileOps(variant).apply[static_cast<int>(op)][static_cast<int>(kType<T>)](
      result.data(), x.data(), y.data(), nullptr, static_cast<int64_t>(padded));
  result.resize(size);
  return result;
}

// The same number, or both NaN.
template <class T>
bool same(T x, T y) {
  return (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y));
}

// |got - want| in units in the last place of a T at `want`; infinite where one of the two is not
// finite (a NaN for a NaN, an infinity for an infinity is 0).
template <class T, class Wide>
double ulps(T got, Wide want) {
  const T rounded = static_cast<T>(want);
  if (!std::isfinite(got) || !std::isfinite(rounded)) {
    return same(got, rounded) ? 0 : kInfinity;
  }
  int exponent;
  std::frexp(rounded, &exponent);
  const Wide ulp = std::ldexp(Wide(1), std::max(exponent, std::numeric_limits<T>::min_exponent) -
                                           std::numeric_limits<T>::digits);
  return static_cast<double>(std::fabs(got - want) / ulp);
}

template <class Wide>
using Reference = Wide (*)(Wide);

struct Function {
  Op op;
  Reference<double> reference;
  Reference<long double> wide;
  double bound, wideBound;  // units in the last place, f32 and f64
  double typical = 20;      // |x| up to which f64 arguments are drawn evenly
};

const Function kFunctions[] = {
    {Op::Exp, std::exp, std::exp, 1, 1.01, 740},      {Op::Log, std::log, std::log, 0.9, 0.9},
    {Op::Log1p, std::log1p, std::log1p, 1.5, 1.5, 2}, {Op::Sin, std::sin, std::sin, 1.6, 1.7},
    {Op::Cos, std::cos, std::cos, 1.6, 1.7},          {Op::Tanh, std::tanh, std::tanh, 1.4, 1.4, 2},
    {Op::Erf, std::erf, std::erf, 1, 0.91, 2},
};

// Checks op over x against the reference and the variants against each other.
template <class T, class Wide>
void expectAccurate(const Function& function, Reference<Wide> reference, double bound,
                    const std::vector<T>& x) {
  std::vector<Wide> want;
  for (T value : x) {
    want.push_back(reference(value));
  }
  std::vector<T> first;
  for (TileVariant variant : testing::tileVariants()) {
    const std::vector<T> got = apply(variant, function.op, x);
    double worst = 0;
    T at = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double error = ulps(got[i], want[i]);
      if (error > worst) {
        worst = error;
        at = x[i];
      }
    }
    EXPECT_LE(worst, bound) << opName(function.op) << "(" << at << ")";
    EXPECT_GE(worst, bound / 3) << opName(function.op) << ": the bound is loose";
    for (size_t i = 0; i < first.size(); ++i) {
      ASSERT_TRUE(same(got[i], first[i])) << opName(function.op) << "(" << x[i] << ")";
    }
    first = got;
  }
}

TEST(VectorMathTest, SingleIsAccurateOnASampleOfAllBitPatterns) {
  for (const Function& function : kFunctions) {
    std::vector<float> x;
    for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 4099) {
      x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    }
    expectAccurate<float, double>(function, function.reference, function.bound, x);
  }
}

TEST(VectorMathTest, DoubleIsAccurate) {
  constexpr uint64_t kSeed = 20240229;
  std::mt19937_64 random(kSeed);
  for (const Function& function : kFunctions) {
    std::vector<double> x;
    std::uniform_real_distribution<double> even(-function.typical, function.typical);
    for (int i = 0; i < 100'000; ++i) {
      for (double value : {std::bit_cast<double>(random()), even(random), even(random) * 1e-3}) {
        x.push_back(value);
      }
    }
    SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
    expectAccurate<double, long double>(function, function.wide, function.wideBound, x);
  }
}

TEST(VectorMathTest, SinesOfLargeDoubles) {
  std::vector<double> wide;
  std::mt19937_64 random(3);
  // Signs, where the reduction changes, every exponent, and the f64 that is nearest to a quarter
  // turn of all (Muller, "Elementary Functions", table 11.1).
  std::uniform_real_distribution<double> mantissa(1, 2);
  for (int i = 0; i < 200'000; ++i) {
    const int exponent = i % 4 == 0 ? 16 + i / 4 % 1008 : 16 + i / 4 % 20;
    wide.push_back(std::copysign(std::scalbn(mantissa(random), exponent), i % 2 - 0.5));
  }
  const double nearest = std::scalbn(6381956970095103.0, 797);
  wide.insert(wide.end(), {nearest, -nearest, 1e22, std::numeric_limits<double>::max(), 0x1p1023,
                           0x1p29, std::nextafter(0x1p29, 0)});
  expectAccurate<double, long double>(kFunctions[3], std::sin, 1.7, wide);
  expectAccurate<double, long double>(kFunctions[4], std::cos, 1.7, wide);
}

// What the short formulas, which stand at f16, make of f32 numbers.
std::vector<float> applyShort(TileVariant variant, Op op, const std::vector<float>& x,
                              const std::vector<float>& y = {}) {
  std::vector<float> result(x.size());
  tile::tileOps(variant).apply[static_cast<int>(op)][static_cast<int>(dtype::f16)](
      result.data(), x.data(), y.data(), nullptr, static_cast<int64_t>(x.size()));
  return result;
}

template <class Half>
std::vector<float> allHalves() {
  std::vector<float> all;
  for (uint32_t bits = 0; bits <= std::numeric_limits<uint16_t>::max(); ++bits) {
    all.push_back(static_cast<float>(std::bit_cast<Half>(static_cast<uint16_t>(bits))));
  }
  return all;
}

// |got - want| in ulps of a Half, which has `digits`; infinite if only one is NaN, infinity or 0.
template <class Half>
double halfUlps(float got, double want) {
  constexpr bool kBrain = std::is_same_v<Half, bfloat16>;
  const float rounded = static_cast<float>(want);
  if (!std::isfinite(rounded) || rounded == 0 || !std::isfinite(got)) {
    return same(got, rounded) ? 0 : kInfinity;
  }
  int exponent;
  std::frexp(want, &exponent);
  const int least = std::max(exponent, kBrain ? -125 : -13);
  return std::fabs(got - want) / std::ldexp(1, least - (kBrain ? 8 : 11));
}

// What the short formulas add to the half of rounding, over all numbers of a Half; docs/accuracy.md
// has these bounds.
template <class Half>
void expectShortFormulas(double bound) {
  const std::vector<float> x = allHalves<Half>();
  double worst = 0;
  for (const Function& function : kFunctions) {
    std::vector<float> first;
    for (TileVariant variant : testing::tileVariants()) {
      const std::vector<float> got = applyShort(variant, function.op, x);
      for (size_t i = 0; i < x.size(); ++i) {
        const double error = halfUlps<Half>(got[i], function.reference(double{x[i]}));
        ASSERT_LE(error, bound) << opName(function.op) << "(" << x[i] << ") = " << got[i];
        worst = std::max(worst, error);
        ASSERT_TRUE(first.empty() || same(got[i], first[i])) << opName(function.op) << x[i];
      }
      first = got;
    }
  }
  EXPECT_GE(worst, bound / 3);
}

TEST(VectorMathTest, ShortFormulasAreExactToSixteenBits) {
  expectShortFormulas<half>(0.012);
  expectShortFormulas<bfloat16>(0.0015);
}

// What no Half holds is only held to be as large or as small.
template <class Half>
void expectShortPower(double largest, double smallest, double bound) {
  std::mt19937_64 random(9);
  const std::vector<float> all = allHalves<Half>();
  std::vector<float> x, y;
  for (int i = 0; i < 1 << 18; ++i) {
    x.push_back(all[random() % all.size()]);
    y.push_back(all[random() % all.size()]);
  }
  for (TileVariant variant : testing::tileVariants()) {
    const std::vector<float> got = applyShort(variant, Op::Power, x, y);
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = std::pow(double{x[i]}, double{y[i]});
      const double magnitude = std::fabs(want);
      if (magnitude > largest || (magnitude < smallest && magnitude > 0)) {
        ASSERT_EQ(magnitude > 1, std::fabs(got[i]) > 1) << x[i] << ", " << y[i];
      } else {
        const double error = halfUlps<Half>(got[i], want);
        ASSERT_LE(error, bound) << "power(" << x[i] << ", " << y[i] << ") = " << got[i];
        worst = std::max(worst, error);
      }
    }
    EXPECT_GE(worst, bound / 3);
  }
}

TEST(VectorMathTest, ShortPower) {
  expectShortPower<half>(65504, 0x1p-25, 0.015);
  expectShortPower<bfloat16>(0x1.fep127, 0x1p-126, 0.008);
}

template <class T>
void expectSpecialValues(TileVariant variant) {
  constexpr T kTiny = std::numeric_limits<T>::denorm_min();
  constexpr T kNormal = std::numeric_limits<T>::min();
  const T x[] = {T(kNan),
                 T(kInfinity),
                 T(-kInfinity),
                 T(0),
                 T(-0.0),
                 T(1),
                 T(-1),
                 kTiny,
                 -kTiny,
                 kNormal,
                 -kNormal,
                 3 * kTiny,
                 T(-2),
                 std::numeric_limits<T>::max(),
                 std::numeric_limits<T>::lowest()};
  const std::vector<T> values(std::begin(x), std::end(x));
  for (const Function& function : kFunctions) {
    const std::vector<T> got = apply(variant, function.op, values);
    for (size_t i = 0; i < values.size(); ++i) {
      const long double want = function.wide(values[i]);
      EXPECT_LE(ulps(got[i], want), function.wideBound)
          << opName(function.op) << "(" << values[i] << ") = " << got[i];
      if (want == 0) {
        EXPECT_TRUE(same(got[i], static_cast<T>(want))) << opName(function.op) << values[i];
      }
    }
  }
}

TEST(VectorMathTest, SpecialValues) {
  for (TileVariant variant : testing::tileVariants()) {
    expectSpecialValues<float>(variant);
    expectSpecialValues<double>(variant);
  }
}

TEST(VectorMathTest, ExpUnderflowsGradually) {
  const std::vector<float> x = {-87.5f, -95.f, -103.f, -103.9f, -104.f, -1e30f};
  for (TileVariant variant : testing::tileVariants()) {
    const std::vector<float> got = apply(variant, Op::Exp, x);
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_LE(ulps(got[i], std::exp(double{x[i]})), 1) << x[i];
    }
    EXPECT_GT(got[3], 0);
    EXPECT_EQ(got[4], 0);
  }
}

template <class T>
std::vector<T> specialNumbers() {
  std::vector<T> result;
  for (double value : {0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 1e9 + 1, 1e30, kInfinity}) {
    result.push_back(static_cast<T>(value));
    result.push_back(static_cast<T>(-value));
  }
  result.push_back(T(kNan));
  result.push_back(std::numeric_limits<T>::denorm_min());
  result.push_back(-std::numeric_limits<T>::min());
  result.push_back(std::numeric_limits<T>::max());
  return result;
}

template <class T, class Wide>
void expectPow(TileVariant variant, double bound) {
  std::vector<T> x, y;
  for (T base : specialNumbers<T>()) {
    for (T exponent : specialNumbers<T>()) {
      x.push_back(base);
      y.push_back(exponent);
    }
  }
  // Random bases, with exponents that reach from underflow to overflow.
  constexpr uint64_t kSeed = 7;
  std::mt19937_64 random(kSeed);
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  std::uniform_real_distribution<double> result(sizeof(T) == 4 ? -104 : -745,
                                                sizeof(T) == 4 ? 89 : 710);
  for (int i = 0; i < 200'000; ++i) {
    const T base = std::fabs(std::bit_cast<T>(static_cast<Bits>(random())));
    if (std::isfinite(base) && base != 1) {
      x.push_back(base);
      y.push_back(static_cast<T>(result(random) / std::log(static_cast<double>(base))));
    }
  }
  const std::vector<T> got = apply(variant, Op::Power, x, y);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = ulps(got[i], std::pow(Wide(x[i]), Wide(y[i])));
    ASSERT_LE(error, bound) << "power(" << x[i] << ", " << y[i] << ") = " << got[i];
    worst = std::max(worst, error);
  }
  EXPECT_GE(worst, bound / 3);
}

TEST(VectorMathTest, PowerIsCsPow) {
  for (TileVariant variant : testing::tileVariants()) {
    expectPow<float, double>(variant, 1.3);
    expectPow<double, long double>(variant, 1.3);
  }
}

template <class T>
void expectFmod(TileVariant variant) {
  std::vector<T> x, y;
  for (T first : specialNumbers<T>()) {
    for (T second : specialNumbers<T>()) {
      x.push_back(first);
      y.push_back(second);
    }
  }
  constexpr uint64_t kSeed = 11;
  std::mt19937_64 random(kSeed);
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  for (int i = 0; i < 20'000; ++i) {
    const T first = std::bit_cast<T>(static_cast<Bits>(random()));
    x.insert(x.end(), {first, first});
    y.push_back(std::bit_cast<T>(static_cast<Bits>(random())));
    y.push_back(first * static_cast<T>(random() % 1000) / 999);
  }
  const std::vector<T> got = apply(variant, Op::Mod, x, y);
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_TRUE(same(got[i], std::fmod(x[i], y[i])))
        << "mod(" << x[i] << ", " << y[i] << ") = " << got[i];
  }
}

TEST(VectorMathTest, ModIsExact) {
  for (TileVariant variant : testing::tileVariants()) {
    expectFmod<float>(variant);
    expectFmod<double>(variant);
  }
}

// Known answers of Random123, the library of the paper's authors.
TEST(VectorMathTest, PhiloxKnownAnswers) {
  struct Answer {
    uint64_t counter[4], key[2], want[4];
  };
  constexpr uint64_t kOnes = 0xffffffff;
  const Answer answers[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{kOnes, kOnes, kOnes, kOnes},
       {kOnes, kOnes},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  tile::philox_test::Builder b;
  for (const Answer& answer : answers) {
    vm::PhiloxWords<uint64_t> counter;
    std::copy_n(answer.counter, 4, counter.word);
    const auto words = vm::philox(b, counter, answer.key[0], answer.key[1]);
    EXPECT_TRUE(std::equal(words.word, words.word + 4, answer.want));
  }
}

// The definition in fl/ir/Philox.h, word by word.
TEST(VectorMathTest, RandomUniformIsPhilox) {
  constexpr uint64_t kSeed = 0x0123456789abcdef, kOffset = 0xfedcba9876543210;
  constexpr int64_t kFirst = (int64_t{1} << 34) - 100;
  const std::vector<uint64_t> seed(256, kSeed), offset(256, kOffset);
  std::vector<int64_t> index;
  for (int64_t i = 0; i < 256; ++i) {
    index.push_back(kFirst + i);
  }
  tile::philox_test::Builder b;
  const auto words = [&](uint64_t block) {
    return vm::philox(b,
                      vm::PhiloxWords<uint64_t>{
                          {block & 0xffffffff, block >> 32, kOffset & 0xffffffff, kOffset >> 32}},
                      kSeed & 0xffffffff, kSeed >> 32);
  };
  for (TileVariant variant : testing::tileVariants()) {
    const auto& table = tile::tileOps(variant).uniform;
    std::vector<float> single(256);
    std::vector<double> wide(256);
    table[static_cast<int>(dtype::f32)](single.data(), seed.data(), offset.data(), index.data(),
                                        256);
    table[static_cast<int>(dtype::f64)](wide.data(), seed.data(), offset.data(), index.data(), 256);
    for (size_t i = 0; i < index.size(); ++i) {
      const uint64_t number = static_cast<uint64_t>(index[i]);
      const uint64_t word = words(number / 4).word[number % 4];
      EXPECT_EQ(single[i], static_cast<float>((word >> 8) + 1) * 0x1p-24f);
      const auto pair = words(number / 2);
      const uint64_t bits = pair.word[2 * (number % 2)] << 32 | pair.word[2 * (number % 2) + 1];
      EXPECT_EQ(wide[i], static_cast<double>((bits >> 11) + 1) * 0x1p-53);
    }
  }
}

}  // namespace
}  // namespace fl::ir
