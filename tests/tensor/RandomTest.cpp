// Random numbers against the distributions they are drawn from, and the same bits however they are
// computed. Seeds are fixed, so that every figure is the same at each run; bounds are those that
// one seed in 10,000 or so would miss.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "fl/host/ThreadPool.h"
#include "fl/ir/Graph.h"
#include "fl/definitions/GraphRunner.h"
#include "fl/tensor/tensor.h"

namespace fl::testing {
namespace {

constexpr Dim kSamples = 1'000'000;
constexpr double kSigmas = 4;

std::vector<double> doubles(const Tensor& x) { return x.astype(dtype::f64).toHostVector<double>(); }

double meanOf(const std::vector<double>& x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}

double varianceOf(const std::vector<double>& x) {
  const double mean = meanOf(x);
  double sum = 0;
  for (double each : x) {
    sum += (each - mean) * (each - mean);
  }
  return sum / static_cast<double>(x.size());
}

// Pearson's coefficient of x[i] and y[i + lag].
double correlation(const std::vector<double>& x, const std::vector<double>& y, size_t lag = 0) {
  const std::vector<double> a(x.begin(), x.end() - lag), b(y.begin() + lag, y.end());
  const double meanA = meanOf(a), meanB = meanOf(b);
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum += (a[i] - meanA) * (b[i] - meanB);
  }
  return sum / static_cast<double>(a.size()) / std::sqrt(varianceOf(a) * varianceOf(b));
}

double uniformBelow(double x) { return std::clamp(x, 0.0, 1.0); }
double normalBelow(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

// Kolmogorov and Smirnov's statistic: the largest distance of the sample's distribution function
// from `below`.
double farthest(std::vector<double> x, double (*below)(double)) {
  std::sort(x.begin(), x.end());
  const double n = static_cast<double>(x.size());
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = below(x[i]), index = static_cast<double>(i);
    worst = std::max({worst, want - index / n, (index + 1) / n - want});
  }
  return worst;
}

// Exceeded with probability 1e-4; numbers that are rounded to a grid are a step off besides.
double farthestAllowed(dtype type) {
  const double step = type == dtype::f16 ? 0x1p-10 : type == dtype::bf16 ? 0x1p-7 : 0;
  return std::sqrt(-0.5 * std::log(1e-4 / 2) / kSamples) + step;
}

const dtype kFloats[] = {dtype::f16, dtype::bf16, dtype::f32, dtype::f64};

TEST(RandomUniform, IsUniform) {
  for (dtype type : kFloats) {
    for (int seed : {1, 2, -3}) {
      setSeed(seed);
      const auto x = doubles(rand({kSamples}, type));
      SCOPED_TRACE(dtypeToString(type) + ", seed " + std::to_string(seed));
      EXPECT_LE(farthest(x, uniformBelow), farthestAllowed(type));
      EXPECT_NEAR(meanOf(x), 0.5, kSigmas * std::sqrt(1.0 / 12 / kSamples));
      EXPECT_NEAR(varianceOf(x), 1.0 / 12, kSigmas * std::sqrt(1.0 / 180 / kSamples) + 1e-5);
      const auto [least, most] = std::minmax_element(x.begin(), x.end());
      EXPECT_GE(*least, 0);
      EXPECT_LE(*most, 1);
    }
  }
}

TEST(RandomNormal, IsNormal) {
  for (dtype type : kFloats) {
    for (int seed : {1, 2, -3}) {
      setSeed(seed);
      const auto x = doubles(randn({kSamples}, type));
      SCOPED_TRACE(dtypeToString(type) + ", seed " + std::to_string(seed));
      EXPECT_LE(farthest(x, normalBelow), farthestAllowed(type));
      EXPECT_NEAR(meanOf(x), 0, kSigmas * std::sqrt(1.0 / kSamples));
      EXPECT_NEAR(varianceOf(x), 1, kSigmas * std::sqrt(2.0 / kSamples) + 1e-4);
      const auto [least, most] = std::minmax_element(x.begin(), x.end());
      EXPECT_LT(*least, -4);  // a million normal numbers reach 4.9 or so
      EXPECT_GT(*most, 4);
      EXPECT_LT(std::max(-*least, *most), 7);
    }
  }
}

// Every bit of an integer is set as often as not.
TEST(RandomIntegers, BitsAreFair) {
  for (dtype type : {dtype::b8, dtype::u8, dtype::s16, dtype::u32, dtype::s64, dtype::u64}) {
    setSeed(5);
    const Tensor x = rand({100'003}, type);
    const int width = type == dtype::b8 ? 1 : 8 * static_cast<int>(getTypeSize(type));
    for (int bit = 0; bit < width; ++bit) {
      const Tensor one = full({1}, 1, dtype::u64) << bit;
      const auto set = doubles(sum((x.astype(dtype::u64) & one) != 0));
      EXPECT_NEAR(set[0], 100'003 / 2.0, kSigmas * std::sqrt(100'003 / 4.0))
          << dtypeToString(type) << " bit " << bit;
    }
  }
}

TEST(RandomStreams, NeighboursDoNotCorrelate) {
  const double bound = kSigmas / std::sqrt(kSamples);
  for (Tensor (*draw)(const Shape&, dtype) : {&rand, &randn}) {
    for (dtype type : {dtype::f32, dtype::f64}) {
      setSeed(11);
      const auto x = doubles(draw({kSamples}, type));
      for (size_t lag : {1, 2, 3, 4, 5, 7, 8, 16, 64, 1024}) {
        EXPECT_NEAR(correlation(x, x, lag), 0, bound) << dtypeToString(type) << " lag " << lag;
      }
    }
  }
}

TEST(RandomStreams, SeedsAndOffsetsDoNotCorrelate) {
  const double bound = kSigmas / std::sqrt(kSamples);
  std::vector<std::vector<double>> streams;
  for (int seed : {0, 1, 2, 1 << 16, -1}) {
    setSeed(seed);
    streams.push_back(doubles(rand({kSamples})));  // offset 0
    streams.push_back(doubles(rand({kSamples})));  // offset 1
    streams.push_back(doubles(randn({kSamples})));
  }
  for (size_t i = 0; i < streams.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      EXPECT_NEAR(correlation(streams[i], streams[k]), 0, bound) << i << " and " << k;
      EXPECT_NEAR(correlation(streams[i], streams[k], 1), 0, bound) << i << " and " << k;
    }
  }
}

// ---- The same bits ----

std::vector<uint8_t> bytesOf(const Tensor& x) {
  std::vector<uint8_t> bytes(x.bytes());
  x.host(static_cast<void*>(bytes.data()));
  return bytes;
}

// What `draw` gives after setSeed(seed) on one thread of the oracle and in every other way.
template <typename Draw>
void expectTheSameEverywhere(int seed, const std::string& what, Draw&& draw) {
  const auto drawOn = [&](const char* backend, const char* device) {
    const BackendScope scope(backend, device);
    setSeed(seed);
    return bytesOf(draw());
  };
  const auto want = drawOn("eager", "ref");
  EXPECT_EQ(drawOn("lazy", "ref"), want) << what;
  for (int threads : {1, 2, 3, 4}) {
    host::setNumThreads(threads);
    for (const char* backend : {"lazy", "eager"}) {
      EXPECT_EQ(drawOn(backend, "cpu"), want) << what << " " << backend << " " << threads;
    }
  }
}

const std::vector<dtype> kTypes = {dtype::f16, dtype::bf16, dtype::f32, dtype::f64,
                                   dtype::b8,  dtype::u8,   dtype::s32, dtype::u64};

TEST(RandomBits, OfEveryDtypeAndCount) {
  for (dtype type : kTypes) {
    for (Dim count : {1, 2, 3, 5, 1000, 4099, 200'001}) {  // also not divisible by 4
      expectTheSameEverywhere(17, dtypeToString(type) + " " + std::to_string(count),
                              [&] { return rand({count}, type); });
    }
  }
}

TEST(RandomBits, OfLargeSeeds) {
  for (int seed : {0, -1, -12345, std::numeric_limits<int>::min()}) {
    expectTheSameEverywhere(seed, "seed " + std::to_string(seed),
                            [] { return rand({1001}, dtype::f64); });
  }
}

// A view of the draw, read by what follows it in the same kernel.
TEST(RandomBits, OfOtherOrders) {
  for (dtype type : {dtype::f32, dtype::f64, dtype::u32}) {
    expectTheSameEverywhere(
        3, "transposed", [&] { return transpose(rand({37, 91}, type)) + full({91, 37}, 1, type); });
    expectTheSameEverywhere(3, "sliced", [&] {
      return rand({37, 91}, type)(range(1, 36, 3), range(5, 90)) * full({1}, 3, type);
    });
    expectTheSameEverywhere(3, "broadcast",
                            [&] { return rand({1, 91}, type) + full({37, 1}, 1, type); });
  }
}

// Fused with neighbours or computed first, the numbers are the same.
TEST(RandomBits, FusedOrAlone) {
  for (dtype type : {dtype::f32, dtype::f64}) {
    const auto mask = [&](const Tensor& drawn) { return where(drawn < 0.25, drawn * 0.5, drawn); };
    setSeed(23);
    const auto fused = bytesOf(mask(rand({33, 77}, type)));
    setSeed(23);
    const Tensor alone = rand({33, 77}, type);
    bytesOf(alone);
    EXPECT_EQ(bytesOf(mask(alone)), fused);
    // Drawn twice in one plan: a reduction and a map that both recompute it or share it.
    setSeed(23);
    const Tensor both = rand({33, 77}, type);
    const Tensor total = sum(both), masked = mask(both);
    EXPECT_EQ(bytesOf(masked), fused);
    EXPECT_EQ(bytesOf(total), bytesOf(sum(alone)));
  }
}

// Box and Muller's formula in double, of the same draws.
TEST(RandomNormal, IsTheFormulaOfTwoUniformNumbers) {
  for (dtype type : kFloats) {
    const dtype drawn = type == dtype::f64 ? dtype::f64 : dtype::f32;
    setSeed(31);
    const auto first = doubles(rand({200'001}, drawn)), second = doubles(rand({200'001}, drawn));
    setSeed(31);
    const auto normal = doubles(randn({200'001}, type));
    const int fraction = type == dtype::f16    ? 10
                         : type == dtype::bf16 ? 7
                         : type == dtype::f32  ? 23
                                               : 52;
    // Log, cos (1 and 2.5 ulp), its rounded angle and three roundings; one for 16 bits.
    const double ulps = fraction > 10 ? 5 : 1, unit = std::ldexp(1.0, -fraction);
    double worst = 0;
    for (size_t i = 0; i < normal.size(); ++i) {
      const double radius = std::sqrt(-2 * std::log(first[i]));
      const double want = radius * std::cos(2 * std::numbers::pi * second[i]);
      // The angle's rounding tells where the cosine is near 0; below 2^-14, f16 is a grid.
      const double size = std::max({std::fabs(want), radius * (fraction > 10 ? 1.0 : 0x1p-10),
                                    type == dtype::f16 ? 0x1p-14 : 0});
      worst = std::max(worst, std::fabs(normal[i] - want) / (unit * size));
    }
    EXPECT_LE(worst, ulps) << dtypeToString(type);
  }
}

TEST(RandomNormal, HasTheSameBitsEverywhere) {
  for (dtype type : kFloats) {
    for (Dim count : {1, 2, 3, 5, 1000, 4099, 200'001}) {
      const std::string what = dtypeToString(type) + " " + std::to_string(count);
      expectTheSameEverywhere(29, what, [&] { return randn({count}, type); });
      expectTheSameEverywhere(29, what + ", fused", [&] { return randn({count}, type) * 0.5; });
    }
  }
}

// The operator's own seed and offset have 64 bits, all of which count.
TEST(RandomBits, OfSeedsAndOffsetsAbove32Bits) {
  ir::Graph graph;
  const ir::ValueId seed = graph.addParameter({{dtype::u64, Shape({})}, true});
  const ir::ValueId offset = graph.addParameter({{dtype::u64, Shape({})}, true});
  graph.setResults({graph.addNode(ir::Op::Random, {seed, offset},
                                  ir::Attrs({static_cast<Dim>(dtype::f32), 1003}))});
  const auto draw = [&](unsigned long long s, unsigned long long o) {
    return runGraph(graph, {fromScalar(s, dtype::u64), fromScalar(o, dtype::u64)})[0];
  };
  const unsigned long long high = 1ull << 40;
  std::vector<std::vector<uint8_t>> drawn;
  for (unsigned long long s : {1ull, high + 1, (high << 20) + 1, ~0ull}) {
    for (unsigned long long o : {2ull, high + 2, ~0ull}) {
      drawn.push_back(bytesOf(draw(s, o)));
      expectTheSameEverywhere(0, "seed " + std::to_string(s) + " offset " + std::to_string(o),
                              [&] { return draw(s, o); });
    }
  }
  std::sort(drawn.begin(), drawn.end());
  EXPECT_EQ(std::unique(drawn.begin(), drawn.end()), drawn.end()) << "two streams are one";
}

}  // namespace
}  // namespace fl::testing
