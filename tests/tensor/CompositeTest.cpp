// Composites on the dtypes and sizes where their parts do not fit: every backend shares one
// definition of each, so that no comparison of backends would show a wrong one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "fl/tensor/tensor.h"
#include "tests/ErrorOf.h"

namespace fl {
namespace {

using test::errorOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double number(const Tensor& tensor) { return tensor.asScalar<double>(); }

Tensor of(const std::vector<float>& values, dtype type) {
  return Tensor::fromVector(values).astype(type);
}

TEST(Composite, SigmoidOfEveryDtype) {
  for (dtype type : {dtype::u8, dtype::u16, dtype::u32, dtype::u64, dtype::s16, dtype::s32,
                     dtype::s64, dtype::f16, dtype::f32, dtype::f64, dtype::bf16}) {
    const Tensor y = sigmoid(of({0, 1, 5, 100}, type));
    EXPECT_EQ(y.type(), isFloating(type) ? type : dtype::f32);
    const std::vector<double> values = y.astype(dtype::f64).toHostVector<double>();
    const double tolerance = type == dtype::bf16 ? 4e-3 : 1e-3;
    EXPECT_NEAR(values[0], 0.5, tolerance) << type;
    EXPECT_NEAR(values[1], 0.7310586, tolerance) << type;
    EXPECT_NEAR(values[2], 0.9933071, tolerance) << type;
    EXPECT_NEAR(values[3], 1, tolerance) << type;
  }
}

TEST(Composite, SigmoidOf16BitFloatsIsRoundedOnce) {
  std::vector<float> values;
  for (int i = -80; i <= 80; ++i) values.push_back(static_cast<float>(i) / 8);
  for (dtype type : {dtype::f16, dtype::bf16}) {
    const int digits = type == dtype::f16 ? 11 : 8;
    const std::vector<double> y =
        sigmoid(of(values, type)).astype(dtype::f64).toHostVector<double>();
    for (size_t i = 0; i < values.size(); ++i) {
      const double exact = 1 / (1 + std::exp(-static_cast<double>(values[i])));
      const int place = std::ilogb(exact) + 1 - digits;
      const double unit = std::ldexp(1.0, type == dtype::f16 ? std::max(place, -24) : place);
      EXPECT_LE(std::fabs(y[i] - exact), 0.501 * unit) << type << " of " << values[i];
    }
  }
}

TEST(Composite, NormsOf16BitFloatsAreComputedInF32) {
  for (dtype type : {dtype::f16, dtype::bf16}) {
    const Tensor x = full({4}, 300.0, type);
    for (double p : {0.0, 1.0, 2.0, 3.0, kInfinity, -kInfinity}) {
      EXPECT_EQ(norm(x, {}, p).type(), dtype::f32) << type << " " << p;
    }
    EXPECT_FLOAT_EQ(number(norm(x)), 600) << type;
    EXPECT_FLOAT_EQ(number(norm(x, {}, 1)), 1200) << type;
  }
  EXPECT_NEAR(number(norm(of({312, 300, 300, 300}, dtype::bf16))), 606.0891, 1e-3);
}

TEST(Composite, MeansOfTruthValuesCountWhatHolds) {
  const Tensor x = Tensor::fromVector(std::vector<int>{3, 0, 1, 7}).astype(dtype::b8);
  const Tensor bytes = Tensor::fromVector(std::vector<char>{3, 0, 1, 7});
  for (const Tensor& mask : {x, bytes}) {
    EXPECT_EQ(number(mean(mask)), 0.75);
    EXPECT_EQ(number(norm(mask, {}, 1)), 3);
    EXPECT_EQ(number(var(mask, {}, true)), 0.25);
    EXPECT_EQ(number(median(mask)), 1);
    EXPECT_EQ(number(median(mask(range(1, 3)))), 0.5);
    EXPECT_EQ(median(mask, {0}, /*keepDims=*/true).shape(), Shape({1}));
  }
}

TEST(Composite, NormsOfEveryOrder) {
  const Tensor x = of({3, -7, 0}, dtype::f64);
  EXPECT_EQ(number(norm(x, {}, 0)), 2);
  EXPECT_EQ(number(norm(x, {}, kInfinity)), 7);
  EXPECT_EQ(number(norm(x, {}, -kInfinity)), 0);
  EXPECT_NEAR(number(norm(x, {}, 3)), std::cbrt(27.0 + 343.0), 1e-6);
}

TEST(Composite, DeviationsWhoseSquareDoesNotFit) {
  EXPECT_EQ(number(fl::std(of({1000, -1000}, dtype::f16))), 1000);
  EXPECT_EQ(fl::std(of({1000, -1000}, dtype::f16)).type(), dtype::f16);
}

TEST(Composite, AnyAndAllOfNothing) {
  for (const Tensor& none : {Tensor(), full({0, 2}, 1.0, dtype::f32), full({0}, true, dtype::b8)}) {
    EXPECT_EQ(any(none).scalar<char>(), 0);
    EXPECT_EQ(all(none).scalar<char>(), 1);
  }
  EXPECT_THAT(any(full({0, 2}, 1.0), {0}).toHostVector<char>(), ElementsAre(0, 0));
  EXPECT_THAT(all(full({0, 2}, 1.0), {0}).toHostVector<char>(), ElementsAre(1, 1));
}

TEST(Composite, RangesOfUnsignedNumbersDoNotWrap) {
  EXPECT_THAT(errorOf([] { arange(5U, 0U); }), HasSubstr("arange: 5 to 0 by 1 is empty"));
  EXPECT_EQ(arange(2U, 8U, 3U).shape(), Shape({2}));
}

TEST(Composite, RangesAreCountedWithoutOverflow) {
  EXPECT_THAT(arange(-2000000000, 2000000000, 1000000000).toHostVector<int>(),
              ElementsAre(-2000000000, -1000000000, 0, 1000000000));
  EXPECT_EQ(arange(0.f, -0.5f).shape(), Shape({0}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(errorOf([&] { arange(0.f, nan); }),
              HasSubstr("arange: 0 to nan by 1 has no number of elements"));
  EXPECT_THAT(errorOf([&] { arange(0.f, infinity); }),
              HasSubstr("arange: 0 to inf by 1 has no number of elements"));
  EXPECT_THAT(errorOf([] { arange(0.0, 1e30); }), HasSubstr("has no number of elements"));
  EXPECT_THAT(errorOf([] { arange(0ULL, ~0ULL); }), HasSubstr("has no number of elements"));
}

TEST(Composite, AllCloseTellsLargeIntegersApart) {
  const auto close = [](auto a, auto b, double tolerance) {
    return allClose(Tensor::fromVector(std::vector{a}), Tensor::fromVector(std::vector{b}),
                    tolerance);
  };
  EXPECT_FALSE(close(9007199254740993LL, 9007199254740992LL, 0.5));
  EXPECT_FALSE(close(9007199254740992LL, 9007199254740993LL, 0.5));
  EXPECT_TRUE(close(9007199254740993LL, 9007199254740992LL, 1.5));
  EXPECT_FALSE(close(~0ULL, ~0ULL - 1, 0.5));
  EXPECT_FALSE(
      close(std::numeric_limits<long long>::min(), std::numeric_limits<long long>::max(), 1e19));
  EXPECT_TRUE(
      close(std::numeric_limits<long long>::min(), std::numeric_limits<long long>::max(), 2e19));
  EXPECT_TRUE(close(-3, -2, 1.5));
  EXPECT_FALSE(close(-3, -2, 1.0));
}

TEST(Composite, ResultsAreNotTooLarge) {
  const Dim large = 1LL << 40;
  EXPECT_THAT(errorOf([&] { full({large, large}, 1.f); }),
              HasSubstr("full: the result f32[1099511627776,1099511627776] has more bytes than can "
                        "be counted, at tests/tensor/CompositeTest.cpp:"));
  // As many elements as can be counted, but not their bytes.
  EXPECT_THAT(errorOf([] { full({1LL << 61}, 1.f); }), HasSubstr("has more bytes than"));
  EXPECT_THAT(errorOf([&] { matmul(full({large, 0}, 1.f), full({0, large}, 1.f)); }),
              HasSubstr("matmul: f32[1099511627776,0] x f32[0,1099511627776]: the result f32["));
  EXPECT_THAT(errorOf([] { Tensor(Shape({1LL << 62})); }), HasSubstr("has more bytes than"));
  EXPECT_EQ(full({large, large, 0}, 1.f).elements(), 0);
  EXPECT_THAT(errorOf([&] { sum(full({large, large, 0}, 1.f), {2}); }),
              HasSubstr("sum: f32[1099511627776,1099511627776,0]: the result f32["));
}

TEST(Composite, OffsetsOfSparseMatricesRise) {
  const Tensor values = of({1, 2, 3}, dtype::f32);
  const Tensor columns = of({0, 2, 1}, dtype::s32);
  const auto matrix = [&](const std::vector<float>& offsets, dtype type) {
    return errorOf([&] { Tensor(2, 3, values, of(offsets, type), columns, StorageType::CSR); });
  };
  const std::string rule = "with 3 values must rise from 0 to 3";
  EXPECT_EQ(matrix({0, 1, 3}, dtype::s32), "");
  EXPECT_THAT(matrix({0, 1, 2}, dtype::s32), HasSubstr(rule));
  EXPECT_THAT(matrix({1, 2, 3}, dtype::s32), HasSubstr(rule));
  EXPECT_THAT(matrix({0, 4, 3}, dtype::s32), HasSubstr(rule));
  EXPECT_THAT(matrix({0, 1, 3}, dtype::f32), HasSubstr("needs integer indices, not f32 and s32"));
}

TEST(Composite, NaNPrintsWithoutASign) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(of({nan, -nan}, dtype::f32).toString(), "f32[2]\nnan\nnan\n");
}

TEST(Composite, StridesOfRangesArePositive) {
  EXPECT_THAT(errorOf([] { arange({4})(range(3, 0, -1)); }),
              HasSubstr("range [3, 0) with stride -1: must be positive, flip() reverses, for "
                        "dimension 0 of 4 elements"));
}

}  // namespace
}  // namespace fl
