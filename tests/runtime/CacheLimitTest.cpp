#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "fl/runtime/CacheLimit.h"

namespace fl::testing {
namespace {

using runtime::CacheLimit;

constexpr size_t kMB = size_t{1} << 20;

TEST(CacheLimit, IsWhatIsTakenAgainWithinAQuarterOfThePeak) {
  constexpr size_t kGB = 1000 * kMB;
  CacheLimit limit;
  EXPECT_EQ(limit.mostCached(0), CacheLimit::kLeast);
  EXPECT_EQ(limit.mostCached(kGB), kGB / 8);
  limit.allocated(kGB, kGB, 0);
  limit.freed(0, kGB);
  EXPECT_EQ(limit.mostCached(0), CacheLimit::kLeast) << "nothing was taken again";
  limit.gaveBack(kGB);
  limit.took(kGB + 1);
  limit.allocated(kGB + 1, kGB, 0);
  EXPECT_EQ(limit.mostCached(0), CacheLimit::kLeast) << "it would not have served";
  limit.took(kGB / 2);
  limit.allocated(kGB / 2, kGB, 0);
  EXPECT_EQ(limit.mostCached(0), kGB / 4 * 3) << "half of it would have been taken again";
  limit.took(kGB / 2);
  limit.allocated(kGB / 2, kGB, 0);
  EXPECT_EQ(limit.mostCached(0), kGB / 32 * 39);
  EXPECT_EQ(limit.mostCached(kGB), kGB / 32 * 7);
  EXPECT_EQ(limit.mostCached(kGB / 2), kGB / 32 * 23);
}

// As of a small program's few blocks, though no more was live at most; not of blocks that grow.
TEST(CacheLimit, MayBeMoreWhereBlocksFitBadly) {
  CacheLimit limit;
  const auto window = [&limit](size_t live, size_t bytes, size_t taken) {
    limit.gaveBack(bytes);
    limit.took(taken);
    for (size_t i = 0; i <= CacheLimit::kWindow; ++i)
      limit.allocated(std::max(live, CacheLimit::kSmall), live, 0);
    return limit.mostCached(live);
  };
  EXPECT_EQ(window(8 * kMB, 5 * kMB, 6 * kMB), CacheLimit::kLeast) << "it would not have served";
  EXPECT_EQ(window(8 * kMB, 5 * kMB, 5 * kMB), 5 * kMB) << "at once";
  for (int i = 0; i < 5; ++i) window(8 * kMB, 5 * kMB, 5 * kMB);
  EXPECT_EQ(limit.mostCached(8 * kMB), 2 * kMB + CacheLimit::kSmall) << "no more";
  EXPECT_EQ(window(10 * kMB, 5 * kMB, 5 * kMB), CacheLimit::kSmall) << "more is live";
  EXPECT_EQ(window(10 * kMB, 5 * kMB, 5 * kMB), CacheLimit::kSmall);
  for (int i = 0; i < 5; ++i) window(10 * kMB, 5 * kMB, 5 * kMB);
  EXPECT_EQ(limit.mostCached(10 * kMB), 10 * kMB / 4 + CacheLimit::kSmall);
  limit.wasUnused();
  EXPECT_EQ(limit.mostCached(10 * kMB), CacheLimit::kLeast);
}

// A cache that does as it is told, of blocks that always fit, under loads that change: repeated
// steps, single peaks, blocks that grow.
TEST(CacheLimit, IdleIsAQuarterOfThePeak) {
  std::mt19937 random(3);
  CacheLimit limit;
  size_t live = 0, cached = 0, peak = 0, kept = 0;
  const auto take = [&](size_t bytes) {
    if (cached >= bytes) {
      cached -= bytes;
    } else {
      limit.took(bytes);
    }
    live += bytes;
    peak = std::max(peak, live);
    limit.allocated(bytes, live, cached);
  };
  const auto giveBack = [&](size_t bytes) {
    live -= bytes;
    cached += bytes;
    limit.freed(live, cached);
    if (const size_t most = limit.mostCached(live); cached > most) {
      limit.gaveBack(cached - most);
      cached = most;
    }
    ASSERT_LE(limit.takenAgain(), peak) << "no step takes more than that";
    const size_t idle = cached - std::min(cached, limit.takenAgain());
    ASSERT_LE(idle, std::max(CacheLimit::kLeast, peak / 4));
    kept = std::max(kept, cached);
  };
  for (int phase = 0; phase < 300; ++phase) {
    std::vector<size_t> sizes(1 + random() % 10);
    std::ranges::generate(sizes, [&] { return (1 + random() % 100) * kMB; });
    const size_t growth = random() % 2 * kMB;
    for (size_t steps = 1 + random() % 20; steps > 0; --steps) {
      std::ranges::for_each(sizes, take);
      std::ranges::for_each(sizes, giveBack);
      for (size_t& size : sizes) size += growth;
    }
  }
  EXPECT_GT(kept, peak / 2) << "nothing was kept for those who take it again";
}

}  // namespace
}  // namespace fl::testing
