// Unary functions within their bounds over a fixed sample: every exponent, the special values and
// the places where the vector math changes its way. Kernels and tiles give the same bits, also of
// the elements at the end of a tensor, and leave the thread's rounding mode alone.
#include <gtest/gtest.h>
#include <immintrin.h>

#include <bit>
#include <cmath>
#include <limits>

#include "benchmarks/Accuracy.h"
#include "fl/host/ThreadPool.h"

namespace fl::bench {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float fromBits(uint32_t bits) { return std::bit_cast<float>(bits); }

// `count` neighbours of x on both sides.
void addAround(std::vector<float>* sample, double x, int count) {
  for (const float centre : {static_cast<float>(x), static_cast<float>(-x)}) {
    float below = centre, above = centre;
    sample->push_back(centre);
    for (int i = 0; i < count; ++i) {
      sample->insert(sample->end(), {below = std::nextafter(below, -kInfinity),
                                     above = std::nextafter(above, kInfinity)});
    }
  }
}

std::vector<float> sample() {
  std::vector<float> sample = {0.f, -0.f, kInfinity, -kInfinity, std::nanf(""), -std::nanf("")};
  for (uint32_t top = 0; top < 512; ++top) {  // sign and exponent
    for (uint32_t i = 0; i < 300; ++i) {
      // The first and last mantissas, and 298 others.
      const uint32_t mantissa = i == 0 ? 0 : i == 1 ? 0x7fffff : i * 27'893 & 0x7fffff;
      sample.push_back(fromBits(top << 23 | mantissa));
    }
  }
  // exp, sigmoid and tanh reduce by log(2), sin and cos by pi / 2.
  for (int i = 0; i < 160; ++i) {
    addAround(&sample, (i + 0.5) * std::log(2.0), 3);
    addAround(&sample, i * M_PI_4, 3);
  }
  for (const double place : {104., 103.97, 88.8, 87.34, 0.55, 0.94, 4.1, 10., M_SQRT2, M_SQRT1_2,
                             1e5, 0x1p83, 0x1p23, 0x1p-126, 0x1p-149, 0x1p-24, 1.}) {
    addAround(&sample, place, 20);
  }
  // The number nearest a multiple of pi / 2.
  addAround(&sample, std::ldexp(16367173.0, 72), 20);
  return sample;
}

std::vector<float> resultsOf(const UnaryFunction& function, std::vector<float> x) {
  return function.apply(Tensor::fromVector(std::move(x))).astype(dtype::f32).toHostVector<float>();
}

TEST(AccuracyTest, FunctionsKeepTheirBounds) {
  const std::vector<float> x = sample();
  for (const UnaryFunction& function : unaryFunctions()) {
    const Accuracy found = measureAccuracy(function, x);
    EXPECT_EQ(found.arguments, x.size());
    EXPECT_LE(found.worst, function.bound)
        << function.name << "(" << found.x << ") = " << found.got << ", correct " << found.want;
    EXPECT_EQ(found.different, 0u) << function.name << ": kernel and tiles";
  }
}

TEST(AccuracyTest, OtherFloatsKeepTheirBounds) {
  const std::vector<double> sample = sampleOfDoubles(40'000);
  for (const UnaryFunction& function : unaryFunctions()) {
    EXPECT_EQ(function.wide == nullptr, function.bound == 0)
        << function.name << ": what rounds is held to long double";
    for (const dtype type : {dtype::f64, dtype::f16, dtype::bf16}) {
      const bool isDouble = type == dtype::f64;
      const Accuracy found =
          measureAccuracy(function, type, isDouble ? sample : allOfSixteenBits(type));
      EXPECT_LE(found.worst, isDouble ? function.bound64 : kSixteenBitBound)
          << function.name << " of " << type << "(" << found.x << ") = " << found.got
          << ", correct " << found.want;
      EXPECT_EQ(found.different, 0u) << function.name << " of " << type << ": kernel and tiles";
    }
  }
}

TEST(AccuracyTest, BoundsAreThosePromised) {
  for (const UnaryFunction& function : unaryFunctions()) {
    const bool isTight = function.name == "exp" || function.name == "log" ||
                         function.name == "erf" || function.name == "sqrt";
    EXPECT_LE(function.bound, isTight ? 1 : 2.5) << function.name;
  }
}

TEST(AccuracyTest, TheLastElementsAreComputedAsOthers) {
  const std::vector<float> all = sample();
  for (const UnaryFunction& function : unaryFunctions()) {
    const std::vector<float> want = resultsOf(function, all);
    for (const char* backend : {"lazy", "eager"}) {
      const BackendScope scope(backend);
      size_t first = 0;
      for (size_t count = 1; count <= 70; ++count, first += 1999) {
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
        const std::vector<float> got =
            resultsOf(function, {begin, begin + static_cast<std::ptrdiff_t>(count)});
        for (size_t i = 0; i < count; ++i) {
          const float expected = want[first + i];
          ASSERT_TRUE((std::isnan(got[i]) && std::isnan(expected)) ||
                      std::bit_cast<uint32_t>(got[i]) == std::bit_cast<uint32_t>(expected))
              << function.name << "(" << all[first + i] << "), " << count << " elements";
        }
      }
    }
  }
}

// Rounding, exceptions that trap, flush to zero and denormals are zero; not the flags that
// operations raise.
uint32_t mode() { return _mm_getcsr() & ~0x3fu; }

TEST(AccuracyTest, TheModeOfFloatsIsLeftAlone) {
  const std::vector<float> x = sample();
  const uint32_t before = mode();
  for (const UnaryFunction& function : unaryFunctions()) {
    measureAccuracy(function, x);
    EXPECT_EQ(mode(), before) << function.name;
  }
  host::threadPool().parallelFor(
      64, 1, [&](int64_t, int64_t) { EXPECT_EQ(mode(), before) << "in the pool"; });
}

TEST(AccuracyTest, ErrorsAreCountedInTheLastPlace) {
  constexpr double kUlp = 0x1p-23;
  const double infinite = kInfinity;
  EXPECT_EQ(ulpError(1.f, 1.0), 0);
  EXPECT_EQ(ulpError(1.f, 1 + kUlp / 4), 0.25);
  EXPECT_EQ(ulpError(1.f + static_cast<float>(kUlp), 1.0), 1);
  EXPECT_EQ(ulpError(0x1p-149f, 0x1p-148), 1);
  EXPECT_EQ(ulpError(0.f, 0x1p-151), 0.25);
  EXPECT_EQ(ulpError(0x1p-149f, 0x1p-151), 0.75);
  EXPECT_EQ(ulpError(-0.f, 0.0), infinite);
  EXPECT_EQ(ulpError(-0.f, -0.0), 0);
  EXPECT_EQ(ulpError(std::nanf(""), std::nan("")), 0);
  EXPECT_EQ(ulpError(std::nanf(""), 1.0), infinite);
  EXPECT_EQ(ulpError(1.f, std::nan("")), infinite);
  EXPECT_EQ(ulpError(kInfinity, infinite), 0);
  EXPECT_EQ(ulpError(-kInfinity, infinite), infinite);
  EXPECT_EQ(ulpError(std::numeric_limits<float>::max(), infinite), infinite);
  EXPECT_EQ(ulpError(kInfinity, 1e300), 0);
  EXPECT_EQ(ulpError(std::numeric_limits<float>::max(), 1e300), 1);
  EXPECT_EQ(ulpError(kInfinity, 0x1.fffffep127), 1);
}

// The page shows the bound that decides.
TEST(AccuracyTest, TablesShowTheBoundOfTheirDtype) {
  std::vector<UnaryFunction> functions = unaryFunctions();
  std::erase_if(functions, [](const UnaryFunction& each) { return each.name != "exp"; });
  ASSERT_EQ(functions.size(), 1u);
  EXPECT_EQ(functions[0].bound, 1);
  EXPECT_GT(functions[0].bound64, 1);
  const std::vector<Accuracy> found = {{.worst = 0.5}};
  EXPECT_NE(accuracyTable(functions, found, dtype::f32).find("| exp | 0.500 | 1 |"),
            std::string::npos);
  EXPECT_NE(accuracyTable(functions, found, dtype::f64).find("| exp | 0.500 | 1.01 |"),
            std::string::npos);
}

TEST(AccuracyTest, ErrorsOfOtherFloatsAreCountedTheSame) {
  for (const float got : {1.f, 0.f, -0.f, 0x1p-149f, 3e38f, kInfinity, std::nanf("")}) {
    for (const double want : {1.0, 1 + 0x1p-25, 0.0, 0x1p-151, 0x1.8p-149, 3e38, 1e300, M_PI}) {
      EXPECT_EQ(ulpError(got, want, dtype::f32), ulpError(got, want)) << got << ", " << want;
    }
  }
  EXPECT_EQ(ulpError(1.0, 1 + 0x1p-54L, dtype::f64), 0.25);
  EXPECT_EQ(ulpError(0x1p-1074, 0x1.8p-1074L, dtype::f64), 0.5);
  EXPECT_EQ(ulpError(1.0, 1 + 0x1p-12, dtype::f16), 0.25);
  EXPECT_EQ(ulpError(kInfinity, 65519, dtype::f16), 0.53125);
  EXPECT_EQ(ulpError(kInfinity, 65520, dtype::f16), 0.5);
  EXPECT_EQ(ulpError(1.0, 1 + 0x1p-9, dtype::bf16), 0.25);
}

}  // namespace
}  // namespace fl::bench
