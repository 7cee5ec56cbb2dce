// SpecAugment and RawWavSpecAugment against loops over the same draws.
#include <cmath>
#include <numbers>
#include <numeric>
#include <random>
#include <sstream>

#include "tests/contrib/Checks.h"

namespace fl::test {
namespace {

using Strategy = SpecAugment::MaskingStrategy;

// What a module draws, in its order.
class Draws {
 public:
  int below(int end) { return from(0, end); }
  int from(int begin, int end) {
    return std::uniform_int_distribution<int>(begin, end - 1)(engine_);
  }
  // Marks runs as a module draws them.
  std::vector<bool> runs(int places, int count, int longest) {
    std::vector<bool> masked(places, false);
    for (int i = 0; i < count; ++i) {
      const int more = below(longest), start = below(places - more);
      for (int place = start; place <= start + more; ++place) {
        masked[place] = true;
      }
    }
    return masked;
  }

 private:
  std::mt19937 engine_{0};
};

std::vector<float> masked(const Variable& x, const std::vector<bool>& frequencies,
                          const std::vector<bool>& times, float value) {
  std::vector<float> values = valuesOf(x);
  const size_t columns = frequencies.size(), rows = times.size();
  for (size_t i = 0; i < values.size(); ++i) {
    if (times[i % rows] || frequencies[i / rows % columns]) {
      values[i] = value;
    }
  }
  return values;
}

TEST(SpecAugment, MasksRuns) {
  const Variable x = input(rand({20, 12, 2, 3}));
  SpecAugment module(80, 4, 2, 9, 0.25, 3);  // at most 5 of 20 times
  Draws draws;
  for (int call = 0; call < 5; ++call) {
    const std::vector<bool> frequencies = draws.runs(12, 2, 4), times = draws.runs(20, 3, 5);
    EXPECT_EQ(valuesOf(module(x)), masked(x, frequencies, times, 0)) << call;
  }
  // Copies go on where the original is.
  SpecAugment copy(module);
  EXPECT_EQ(valuesOf(copy(x)), valuesOf(module(x)));
  module.eval();
  EXPECT_EQ(valuesOf(module(x)), valuesOf(x));
}

TEST(SpecAugment, ByTheMean) {
  const Variable x = input(rand({6, 8}));
  const std::vector<float> values = valuesOf(x);
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / 48;
  SpecAugment module(0, 3, 1, 2, 1, 1, Strategy::GLOBAL_MEAN);
  Draws draws;
  const std::vector<bool> frequencies = draws.runs(8, 1, 3), times = draws.runs(6, 1, 2);
  const std::vector<float> expected = masked(x, frequencies, times, static_cast<float>(mean));
  const std::vector<float> actual = valuesOf(module(x));
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], 1e-6);
  }
}

// What is masked is replaced, not multiplied; the dtype stays.
TEST(SpecAugment, MasksInfinities) {
  const Variable x = input(full(Shape({3, 2}), INFINITY, dtype::f16));
  SpecAugment module(0, 2, 40, 0, 0, 0);
  const Variable y = module(x);
  EXPECT_EQ(y.type(), dtype::f16);
  EXPECT_EQ(valuesOf(y), std::vector<float>(6, 0));
  // No time is masked if a mask may cover less than one.
  SpecAugment none(0, 0, 0, 5, 0.1, 3);
  EXPECT_EQ(valuesOf(none(x)), valuesOf(x));
}

TEST(SpecAugment, Errors) {
  expectError("SpecAugment: 1 masks of up to 0 frequencies are none",
              [] { SpecAugment(0, 0, 1, 0, 0, 0); });
  expectError("SpecAugment: -1 masks of up to 3 times are none",
              [] { SpecAugment(0, 0, 0, 3, 1, -1); });
  expectError("SpecAugment: the part of the times that a mask may cover must be in (0, 1], not 2",
              [] { SpecAugment(0, 0, 0, 3, 2, 1); });
  SpecAugment module(0, 4, 1, 3, 1, 1);
  expectError(
      "SpecAugment ( W: 0, F: 4, mF: 1, T: 3, p: 1, mT: 1 ): the input must be (time, "
      "frequency, ...) with at least 4 frequencies, not f32[5,3]",
      [&] { module(input(rand({5, 3}))); });
  expectError("mT: 1 ): has no gradient for its input", [&] { module(param(rand({5, 4}))); });
}

// ---- RawWavSpecAugment ----

// (time, channels, batch) of the sum of tones, all at 16 kHz.
Variable tones(const std::vector<double>& frequencies, Dim times) {
  std::vector<float> values(times * 6);
  for (size_t i = 0; i < values.size(); ++i) {
    for (double frequency : frequencies) {
      const auto time = static_cast<double>(i % times) / 16000;
      values[i] += static_cast<float>(std::sin(2 * std::numbers::pi * frequency * time));
    }
  }
  return input(Tensor::fromVector(Shape({times, 3, 2}), values));
}

// A band from 2 to 6 kHz is the one bin: what lies in it goes, the rest stays, away from the ends.
TEST(RawWavSpecAugment, RemovesABand) {
  const Dim times = 300;
  const Variable rest = tones({500, 1000, 7000, 7500}, times);
  const Variable all = tones({500, 1000, 3000, 4000, 5000, 7000, 7500}, times);
  RawWavSpecAugment module(0, 1, 1, 0, 0, 0, 1, 2000, 6000, 16000, 20000);
  Draws draws;
  bool removedOnce = false, keptOnce = false;
  for (int call = 0; call < 8; ++call) {
    const int low = draws.from(0, 1);
    const bool removed = draws.from(low, 2) > low;
    const Variable y = module(all);
    EXPECT_EQ(y.shape(), all.shape());
    const Variable& expected = removed ? rest : all;
    EXPECT_TRUE(
        allClose(y.tensor()(range(64, times - 64)), expected.tensor()(range(64, times - 64)), 2e-3))
        << call;
    (removed ? removedOnce : keptOnce) = true;
  }
  EXPECT_TRUE(removedOnce && keptOnce);
}

// What a module has drawn and computed by its former settings is gone when it is loaded.
TEST(RawWavSpecAugment, IsWhatIsLoadedIntoIt) {
  const Variable wave = tones({500, 3000, 5000}, 200);
  const RawWavSpecAugment saved(0, 2, 1, 0, 0, 0, 2, 2000, 6000, 16000, 20000);
  RawWavSpecAugment used(0, 1, 1, 0, 0, 0, 1, 3000, 7000, 16000, 20000);
  for (int call = 0; call < 3; ++call) {
    used(wave);
  }
  std::stringstream stream;
  save(stream, saved);
  load(stream, used);
  RawWavSpecAugment fresh(saved);
  for (int call = 0; call < 8; ++call) {
    EXPECT_EQ(valuesOf(used(wave).tensor()), valuesOf(fresh(wave).tensor())) << call;
  }
}

// Time masks come after the bands and take the mean of the input.
TEST(RawWavSpecAugment, MasksTimes) {
  const Variable x = tones({40, 700}, 50);
  RawWavSpecAugment zero(0, 0, 0, 10, 0.5, 2);
  Draws draws;
  const std::vector<bool> times = draws.runs(50, 2, 10);
  EXPECT_EQ(valuesOf(zero(x)), masked(x, std::vector<bool>(6, false), times, 0));
  RawWavSpecAugment byMean(0, 0, 0, 10, 0.5, 2, 80, 0, 8000, 16000, 20000,
                           RawWavSpecAugment::MaskingStrategy::GLOBAL_MEAN);
  const std::vector<float> values = valuesOf(x), actual = valuesOf(byMean(x));
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / 300;
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(actual[i], times[i % 50] ? mean : values[i], 1e-5);
  }
  zero.eval();
  EXPECT_EQ(valuesOf(zero(x)), values);
}

TEST(RawWavSpecAugment, Errors) {
  expectError("RawWavSpecAugment: nMels must be positive, not 0",
              [] { RawWavSpecAugment(0, 0, 0, 0, 0, 0, 0); });
  expectError(
      "RawWavSpecAugment: frequencies must rise from 0 to half the sample rate 16000, not "
      "from 0 to 8001",
      [] { RawWavSpecAugment(0, 0, 0, 0, 0, 0, 80, 0, 8001); });
  expectError("not from 400 to 400", [] { RawWavSpecAugment(0, 0, 0, 0, 0, 0, 80, 400, 400); });
  expectError("maxKernelSize: 10,  ): filters of up to 10 samples divide no two bins",
              [] { RawWavSpecAugment(0, 0, 0, 0, 0, 0, 80, 0, 8000, 16000, 10); });
  RawWavSpecAugment module(0, 1, 1, 0, 0, 0);
  expectError(",  ): the input must be (time, channel, batch), not f32[50]",
              [&] { module(input(rand({50}))); });
  expectError(",  ): has no gradient for its input", [&] { module(param(rand({50, 1, 1}))); });
}

}  // namespace
}  // namespace fl::test
