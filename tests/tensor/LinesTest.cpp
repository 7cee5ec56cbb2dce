// Operators that go along an axis one element after the other, for line counts and lengths around
// the sizes in which the CPU's routines work: against loops over float.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fl/host/ThreadPool.h"
#include "fl/tensor/tensor.h"
#include "tests/ErrorOf.h"

namespace fl {
namespace {

// Whole numbers from -8 to 7, which all dtypes hold; their sums round in 16-bit floats.
std::vector<float> values(Dim count) {
  std::vector<float> values(count);
  for (Dim i = 0; i < count; ++i) {
    values[i] = static_cast<float>((i * 7919 / 13) % 16 - 8 + (i % 3));
  }
  return values;
}

std::vector<float> rounded(const std::vector<float>& x, const Shape& shape, dtype type) {
  return Tensor::fromVector(shape, x).astype(type).astype(dtype::f32).toHostVector<float>();
}

std::vector<float> read(const Tensor& x) { return x.astype(dtype::f32).toHostVector<float>(); }

// Shapes [inner, length, outer].
const Shape kShapes[] = {{1, 1, 1},   {1, 700, 3}, {1, 1030, 2}, {5, 40, 2},   {1, 3, 500},
                         {1, 64, 41}, {1, 65, 7},  {64, 33, 1},  {300, 20, 2}, {1100, 9, 1}};

TEST(LinesTest, Cumsums) {
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16}) {
    for (const Shape& shape : kShapes) {
      const std::vector<float> x = rounded(values(shape.elements()), shape, type);
      std::vector<float> want(x.size());
      for (Dim o = 0; o < shape[2]; ++o) {
        for (Dim k = 0; k < shape[0]; ++k) {
          float total = 0;
          for (Dim i = 0; i < shape[1]; ++i) {
            const Dim at = k + shape[0] * (i + shape[1] * o);
            want[at] = total += x[at];
          }
        }
      }
      EXPECT_EQ(read(cumsum(Tensor::fromVector(shape, x, type), 1)), rounded(want, shape, type))
          << dtypeToString(type) << shape;
    }
  }
}

// A long line's fractions, which round, beside sums in long double.
TEST(LinesTest, LongCumsums) {
  for (const Shape& shape : {Shape({1000000}), Shape({32769, 3}), Shape({95, 40})}) {
    for (const dtype type : {dtype::f32, dtype::f64}) {
      const Tensor x = (rand(shape, dtype::f64) / 3.0 - 0.1).astype(type);
      const auto in = x.astype(dtype::f64).toHostVector<double>();
      const auto got = cumsum(x, 0).astype(dtype::f64).toHostVector<double>();
      const double unit = type == dtype::f64 ? 0x1p-52 : 0x1p-23;
      long double want = 0, worst = 0;
      for (size_t i = 0; i < in.size(); ++i) {
        want = in[i] + (i % shape[0] == 0 ? 0 : want);
        worst = std::max(worst, std::fabs(got[i] - want) / std::max(1.0L, std::fabs(want)));
      }
      // The total of f32 is kept in f64, that of f64 rounds as it grows.
      EXPECT_LE(worst / unit, type == dtype::f32 ? 2 : 200) << type << shape;
    }
  }
}

// As the sums of short lines: NaN is only where infinities of both signs come before.
TEST(LinesTest, LongCumsumsThatOverflow) {
  constexpr float kLarge = 3e38f, kInfinity = INFINITY;
  for (const int first : {0, 5, 33, 66}) {
    std::vector<float> x(70);
    const std::vector<float> large = {kLarge, kLarge, -kLarge, -kLarge};
    std::ranges::copy(large, x.begin() + first);
    const std::vector<float> got = read(cumsum(Tensor::fromVector(x), 0));
    EXPECT_EQ(got[first], kLarge);
    EXPECT_EQ(got[first + 1], kInfinity);
    for (const float sum : got) EXPECT_FALSE(std::isnan(sum)) << first;
    x[first] = kInfinity;
    EXPECT_EQ(read(cumsum(Tensor::fromVector(x), 0))[69], kInfinity);
    x[first + 3] = -kInfinity;
    const std::vector<float> none = read(cumsum(Tensor::fromVector(x), 0));
    EXPECT_EQ(none[first + 2], kInfinity);
    EXPECT_TRUE(std::isnan(none[first + 3]) && std::isnan(none[69])) << first;
  }
}

TEST(LinesTest, LongCumsumsOfIntegersWrapAround) {
  const Shape shape = {70001, 2};
  for (const dtype type : {dtype::s32, dtype::u32, dtype::s64, dtype::u64}) {
    const Tensor x = (rand(shape) * 1e9).astype(type) * 5;
    const auto in = x.astype(dtype::u64).toHostVector<uint64_t>();
    const auto got = cumsum(x, 0).astype(dtype::u64).toHostVector<uint64_t>();
    const uint64_t mask = type == dtype::s32 || type == dtype::u32 ? 0xffffffff : ~0ull;
    uint64_t want = 0;
    for (size_t i = 0; i < in.size(); ++i) {
      want = in[i] + (i % shape[0] == 0 ? 0 : want);
      ASSERT_EQ(got[i] & mask, want & mask) << type << " " << i;
    }
  }
}

TEST(LinesTest, CumsumsAreTheSameAtAnyNumberOfThreads) {
  const int before = host::threadPool().threads();
  for (const Shape& shape : {Shape({200001}), Shape({70000, 3}), Shape({70, 300})}) {
    const Tensor x = rand(shape) - 0.5;
    std::vector<std::vector<float>> got;
    for (const int threads : {1, 2, 4}) {
      host::setNumThreads(threads);
      got.push_back(read(cumsum(x, 0)));
    }
    EXPECT_EQ(got[0], got[1]) << shape;
    EXPECT_EQ(got[0], got[2]) << shape;
  }
  host::setNumThreads(before);
}

// Results that no cache holds are written around the caches; lines are a multiple of a cache line
// long, or not.
TEST(LinesTest, LargeCumsums) {
  for (const Shape& shape : {Shape({1088, 1030}), Shape({2176, 1030}), Shape({1100, 1001})}) {
    const std::vector<float> x = values(shape.elements());
    std::vector<float> want(x);
    const Dim inner = shape[0], length = shape[1];
    for (Dim at = 0; at < shape.elements(); ++at) {
      want[at] += at / inner % length > 0 ? want[at - inner] : 0;
    }
    for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16, dtype::s32}) {
      EXPECT_EQ(read(cumsum(Tensor::fromVector(shape, x, type), 1)), rounded(want, shape, type))
          << dtypeToString(type) << shape;
    }
  }
}

// Rows of a few vectors, and those too short for one, many of them.
TEST(LinesTest, ReductionsOfShortRows) {
  constexpr Dim kRows = 333;
  for (Dim length = 1; length <= 70; ++length) {
    const std::vector<float> x = values(length * kRows);
    std::vector<float> sums, largest, places, counts;
    for (auto row = x.begin(); row != x.end(); row += length) {
      const auto most = std::max_element(row, row + length);
      sums.push_back(std::accumulate(row, row + length, 0.0f));
      largest.push_back(*most);
      places.push_back(static_cast<float>(most - row));
      counts.push_back(static_cast<float>(std::count(row, row + length, *most)));
    }
    const Tensor rows = Tensor::fromVector({length, kRows}, x);
    EXPECT_EQ(read(sum(rows, {0})), sums) << length;
    EXPECT_EQ(read(amax(rows, {0})), largest) << length;
    EXPECT_EQ(read(argmax(rows, 0)), places) << length;
    const Tensor isLargest = rows == amax(rows, {0}, true);
    EXPECT_EQ(read(sum(isLargest.astype(dtype::f32), {0})), counts) << length;
  }
}

// On several threads each lists, or writes, a part of the places.
void checkManyPlaces(Dim inner) {
  constexpr Dim kPlaces = 100000, kLines = 150000;
  std::vector<long long> places(kLines);
  for (Dim i = 0; i < kLines; ++i) places[i] = i * 7919 % (kPlaces - 5);
  const std::vector<float> x = values(inner * kLines);
  const Tensor lines = Tensor::fromVector({inner, kLines}, x), index = Tensor::fromVector(places);
  for (const bool adds : {false, true}) {
    std::vector<float> want(inner * kPlaces, 1);
    for (Dim i = 0; i < kLines; ++i) {
      for (Dim k = 0; k < inner; ++k) {
        float& target = want[k + inner * places[i]];
        target = x[k + inner * i] + (adds ? target : 0);
      }
    }
    Tensor got = Tensor::fromVector({inner, kPlaces}, std::vector<float>(want.size(), 1));
    if (adds) {
      got(span, index) += lines;
    } else {
      got(span, index) = lines;
    }
    EXPECT_TRUE(read(got) == want) << adds;
  }
}

TEST(LinesTest, ManyPlaces) {
  const int before = host::threadPool().threads();
  host::setNumThreads(3);
  checkManyPlaces(64);
  checkManyPlaces(1);
  host::setNumThreads(before);
}

// Places repeat, so that a line is added to what another left.
TEST(LinesTest, EqualIndicesAddInOrder) {
  constexpr Dim kPlaces = 7;
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16}) {
    for (const Shape& shape : kShapes) {
      const Shape into({shape[0], kPlaces, shape[2]});
      std::vector<long long> places(shape[1]);
      for (Dim i = 0; i < shape[1]; ++i) {
        places[i] = i * 5 % kPlaces;
      }
      // -1, 0 or 1: the sums stay below 2^8, which no dtype rounds.
      std::vector<float> x = values(shape.elements());
      for (float& each : x) {
        each = std::fmod(each, 2.f);
      }
      std::vector<float> want = values(into.elements());
      Tensor got = Tensor::fromVector(into, want, type);
      got(span, Tensor::fromVector(places), span) += Tensor::fromVector(shape, x, type);
      for (Dim o = 0; o < shape[2]; ++o) {
        for (Dim i = 0; i < shape[1]; ++i) {
          for (Dim k = 0; k < shape[0]; ++k) {
            float& target = want[k + shape[0] * (places[i] + kPlaces * o)];
            target += x[k + shape[0] * (i + shape[1] * o)];
          }
        }
      }
      EXPECT_EQ(read(got), want) << dtypeToString(type) << shape;
    }
  }
}

TEST(LinesTest, ABadIndexIsNamed) {
  Tensor x = full({300, 4}, 0.0, dtype::bf16);
  const Tensor places = Tensor::fromVector(std::vector<long long>{1, 4});
  const auto addAndRead = [&] {
    x(span, places) += full({300, 2}, 1.0, dtype::bf16);
    read(x);
  };
  EXPECT_THAT(test::errorOf(addAndRead), testing::HasSubstr("4 is out of range"));
}

}  // namespace
}  // namespace fl
