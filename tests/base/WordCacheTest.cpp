#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "fl/base/WordCache.h"

namespace fl {
namespace {

using Words = std::vector<int64_t>;

TEST(WordCache, FindsByAllWords) {
  WordCache<std::string> cache(10);
  cache.insert(Words{1, 2, 3}, "three");
  cache.insert(Words{1, 2}, "two");
  cache.insert(Words{}, "none");
  ASSERT_NE(cache.find(Words{1, 2, 3}), nullptr);
  EXPECT_EQ(*cache.find(Words{1, 2, 3}), "three");
  EXPECT_EQ(*cache.find(Words{1, 2}), "two");
  EXPECT_EQ(*cache.find(Words{}), "none");
  EXPECT_EQ(cache.find(Words{1, 2, 4}), nullptr);
  EXPECT_EQ(cache.find(Words{1}), nullptr);
}

TEST(WordCache, KeepsWhatWasUsedLast) {
  constexpr size_t kCapacity = 100;
  WordCache<int> cache(kCapacity);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(cache.insert(Words{i, i}, i), i >= static_cast<int>(kCapacity)) << i;
    ASSERT_NE(cache.find(Words{0, 0}), nullptr) << "used each time";
    EXPECT_EQ(cache.size(), std::min<size_t>(i + 1, kCapacity));
  }
  for (int i = 1; i < 1000; ++i) {
    const int* found = cache.find(Words{i, i});
    ASSERT_EQ(found != nullptr, i > 900) << i;
    EXPECT_EQ(found ? *found : i, i);
  }
}

TEST(WordCache, KeepsWhatWeighsNoMoreThanItMay) {
  WordCache<int> cache(100, 10);
  EXPECT_FALSE(cache.insert(Words{1}, 1, 4));
  EXPECT_FALSE(cache.insert(Words{2}, 2, 6));
  EXPECT_TRUE(cache.insert(Words{3}, 3, 5)) << "both others go: the first would not do";
  EXPECT_EQ(cache.size(), 1u);
  EXPECT_FALSE(cache.insert(Words{4}, 4, 5));
  EXPECT_TRUE(cache.insert(Words{5}, 5, 11)) << "stays, being the last";
  EXPECT_EQ(cache.size(), 1u);
  ASSERT_NE(cache.find(Words{5}), nullptr);
  EXPECT_EQ(*cache.find(Words{5}), 5);
}

}  // namespace
}  // namespace fl
