// Pooling by the library against loops in double, over odd shapes and for every dtype.
#include <limits>

#include "fl/base/Flags.h"
#include "fl/library/Functions.h"
#include "tests/FlagScope.h"
#include "tests/library/LibraryHarness.h"

namespace fl::library {
namespace {

// Forward, and the gradient of the input for `gradient`.
struct PoolReference {
  PoolReference(const PoolCase& c, int mode, const Floats& input, const Floats& gradient)
      : forward(c.output().shape.elements()), backward(c.input().shape.elements()) {
    const int64_t ow = c.outW(), oh = c.outH();
    for (int64_t out = 0; out < static_cast<int64_t>(forward.sum.size()); ++out) {
      const int64_t ox = out % ow, oy = out / ow % oh, plane = out / ow / oh * c.w * c.h;
      std::vector<int64_t> window;  // x fastest
      for (int64_t y = oy * c.sy - c.py; y < oy * c.sy - c.py + c.kh; ++y) {
        for (int64_t x = ox * c.sx - c.px; x < ox * c.sx - c.px + c.kw; ++x) {
          if (x >= 0 && x < c.w && y >= 0 && y < c.h) {
            window.push_back(plane + x + c.w * y);
          }
        }
      }
      pool(mode, c.kw * c.kh, window, out, input, gradient);
    }
  }

  void pool(int mode, int64_t windowSize, const std::vector<int64_t>& window, int64_t out,
            const Floats& input, const Floats& gradient) {
    if (mode == kMax) {
      int64_t best = window.front();
      for (const int64_t i : window) {
        best = input[i] > input[best] ? i : best;
      }
      forward.add(out, input[best], 1);
      backward.add(best, gradient[out], 1);
      return;
    }
    const double weight =
        1.0 / static_cast<double>(mode == kIncludePadding ? windowSize : window.size());
    for (const int64_t i : window) {
      forward.add(out, input[i], weight);
      backward.add(i, gradient[out], weight);
    }
  }

  Reference forward, backward;
};

class PoolTest : public ::testing::TestWithParam<std::tuple<PoolCase, int, dtype>> {};

TEST_P(PoolTest, AgreesWithLoops) {
  const auto& [c, mode, type] = GetParam();
  const Floats input = randomFloats(c.input().shape.elements(), 7, type);
  const Floats gradient = randomFloats(c.output().shape.elements(), 8, type);
  const PoolReference want(c, mode, input, gradient);
  expectNear(run(ofType(c.forward(mode), type), {input}), want.forward, type);
  expectNear(run(ofType(c.backward(mode), type), {gradient, input}), want.backward, type);
  expectNear(runLast(ofType(c.forward(mode), type), {input}), want.forward, type);
  expectNear(runLast(ofType(c.backward(mode), type), {gradient, input}), want.backward, type);
}

TEST_P(PoolTest, TheFirstOfEqualMaximaGetsTheGradient) {
  const auto& [c, mode, type] = GetParam();
  if (mode != kMax) {
    return;
  }
  Floats input = randomFloats(c.input().shape.elements(), 9, type);
  for (float& value : input) {
    value = std::round(value);  // -1, 0 or 1
  }
  const Floats gradient = randomFloats(c.output().shape.elements(), 10, type);
  const PoolReference want(c, mode, input, gradient);
  expectNear(run(ofType(c.backward(mode), type), {gradient, input}), want.backward, type);
  expectNear(runLast(ofType(c.backward(mode), type), {gradient, input}), want.backward, type);
}

TEST_P(PoolTest, HasTheSameBitsOnEveryProcessor) {
  const auto& [c, mode, type] = GetParam();
  const Floats input = randomFloats(c.input().shape.elements(), 13, type);
  const Floats gradient = randomFloats(c.output().shape.elements(), 14, type);
  const auto results = [&](const char* cpu) {
    const fl::testing::FlagScope scope(&Flags::cpu, cpu);
    std::vector<std::vector<unsigned char>> all;
    const auto add = [&](const LibraryCall& call, const std::vector<Floats>& operands) {
      const Floats plain = runFunction(*preparePool(call), call, operands);
      all.push_back(stored(plain, dtype::f32));
      const auto last = preparePool(channelsLast(call));
      all.push_back(stored(runLast(*last, call, operands), dtype::f32));
      EXPECT_EQ(all.back(), *(all.end() - 2));
    };
    add(ofType(c.forward(mode), type), {input});
    add(ofType(c.backward(mode), type), {gradient, input});
    return all;
  };
  EXPECT_EQ(results("x86-64-v3"), results(""));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, PoolTest,
    ::testing::Combine(
        ::testing::Values(PoolCase{1, 1, 1, 1, 1, 1}, PoolCase{6, 4, 3, 2, 2, 2, 2, 2},
                          PoolCase{9, 7, 5, 3, 3, 2, 1, 2, 1, 1},
                          PoolCase{7, 7, 17, 1, 3, 3, 2, 2, 1, 1}, PoolCase{8, 5, 2, 3, 2, 3, 3, 4},
                          PoolCase{6, 6, 20, 4, 6, 6}, PoolCase{5, 9, 33, 3, 4, 4, 1, 1, 2, 2},
                          PoolCase{28, 28, 32, 13, 2, 2, 2, 2},
                          PoolCase{31, 30, 16, 6, 3, 3, 2, 2, 1, 1}),
        ::testing::Values(kMax, kIncludePadding, kExcludePadding), ::testing::ValuesIn(kTypes)));

class PoolOfTypeTest : public ::testing::TestWithParam<dtype> {};
INSTANTIATE_TEST_SUITE_P(Types, PoolOfTypeTest, ::testing::ValuesIn(kTypes));

// Of some planes only. The gradient goes to the first element that is the maximum or NaN, and to
// none if that is padding, which is -inf.
TEST_P(PoolOfTypeTest, MaximumKeepsNanAndMinusInfinity) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const PoolCase c{6, 1, 20, 2, 2, 1, 2, 1};
  const Floats special = {nan, 1, -infinity, -infinity, infinity, nan};
  Floats input = randomFloats(c.input().shape.elements(), 11, GetParam());
  const Floats gradient = randomFloats(c.output().shape.elements(), 12, GetParam());
  const PoolReference clean(c, kMax, input, gradient);
  for (const int64_t plane : {0, 7, 39}) {
    std::copy(special.begin(), special.end(), input.begin() + 6 * plane);
  }
  const LibraryCall forward = ofType(c.forward(kMax), GetParam());
  const LibraryCall backward = ofType(c.backward(kMax), GetParam());
  const Floats pooled = run(forward, {input}), spread = run(backward, {gradient, input});
  const auto bits = [](const Floats& values) { return stored(values, dtype::f32); };
  EXPECT_EQ(bits(runLast(forward, {input})), bits(pooled));
  EXPECT_EQ(bits(runLast(backward, {gradient, input})), bits(spread));
  for (int64_t plane = 0; plane < 40; ++plane) {
    SCOPED_TRACE(plane);
    const float* y = pooled.data() + 3 * plane;
    const float* dy = gradient.data() + 3 * plane;
    const Floats dx(spread.begin() + 6 * plane, spread.begin() + 6 * (plane + 1));
    if (plane == 0 || plane == 7 || plane == 39) {
      EXPECT_TRUE(std::isnan(y[0]));
      EXPECT_EQ(y[1], -infinity);
      EXPECT_TRUE(std::isnan(y[2]));
      EXPECT_EQ(dx, (Floats{dy[0], 0, dy[1], 0, 0, dy[2]}));
      continue;
    }
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(y[i], clean.forward.sum[3 * plane + i]);
    }
    for (int64_t i = 0; i < 6; ++i) {
      EXPECT_EQ(dx[i], clean.backward.sum[6 * plane + i]);
    }
  }
}

TEST(Pool, PaddingIsTheFirstOfMinusInfinities) {
  const float infinity = std::numeric_limits<float>::infinity();
  const PoolCase c{3, 1, 1, 1, 2, 1, 1, 1, 1, 0};
  EXPECT_EQ(run(c.forward(kMax), {{-infinity, -infinity, 5}}),
            (Floats{-infinity, -infinity, 5, 5}));
  EXPECT_EQ(run(c.backward(kMax), {{1, 2, 4, 8}, {-infinity, -infinity, 5}}), (Floats{2, 0, 12}));
}

TEST(Pool, ReordersNoImageWhoseChannelsAreLast) {
  const PoolCase c{28, 28, 32, 13, 2, 2, 2, 2};
  for (const LibraryCall& call : {c.forward(kMax), c.backward(kMax)}) {
    EXPECT_GT(prepareLibrary(call)->imageReorders(), 0);
    EXPECT_EQ(prepareLibrary(channelsLast(call))->imageReorders(), 0);
  }
}

}  // namespace
}  // namespace fl::library
