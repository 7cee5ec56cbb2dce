// What a caching memory manager keeps of what was freed.
#include <algorithm>
#include <random>
#include <vector>

#include "fl/runtime/CacheLimit.h"
#include "tests/runtime/CachingManager.h"

namespace fl::testing {
namespace {

using runtime::CacheLimit;

// Row E2.
TEST_F(CachingManager, E2BlocksThatGrowAreNotKept) {
  for (const bool isFreedFirst : {false, true}) {
    void* block = nullptr;
    size_t bytes = 2 * kMB;
    for (; bytes < 200 * kMB; bytes += bytes / 100) {
      if (isFreedFirst) {
        giveBack(block);
        block = nullptr;
      }
      void* next = take(bytes);
      giveBack(block);
      block = next;
      const size_t live = manager_->allocated(block);
      ASSERT_LE(device_.held, live + std::max(live / 4, CacheLimit::kLeast));
    }
    EXPECT_LE(device_.held, bytes / 4 * 5);
    giveBack(block);
    EXPECT_LE(device_.held, CacheLimit::kLeast) << "of blocks that were never taken again";
    manager_->signalMemoryCleanup();
  }
}

TEST_F(CachingManager, RepeatedStepsKeepTheirMemory) {
  std::mt19937 generator(1);
  for (const size_t most : {kMB / 4, 4 * kMB, 60 * kMB}) {
    std::vector<size_t> sizes;
    for (int i = 0; i < 100; ++i) {
      sizes.push_back(most / 10 + generator() % most);
    }
    cycle(sizes), cycle(sizes), cycle(sizes);
    const size_t before = device_.allocations;
    for (int i = 0; i < 200; ++i) {
      cycle(sizes);
    }
    EXPECT_EQ(device_.allocations, before);
    manager_->signalMemoryCleanup();
  }
}

// As layers do: the next value is made before the last one dies.
TEST_F(CachingManager, ChainsKeepOneBlockMore) {
  void* block = take(50 * kMB);
  for (int i = 0; i < 100; ++i) {
    void* next = take(50 * kMB);
    giveBack(block);
    block = next;
  }
  EXPECT_EQ(device_.allocations, 3u);
  EXPECT_EQ(device_.held, 100 * kMB);
  giveBack(block);
}

// By the block that is freed first.
class CachingManagerFreeing : public CachingManager,
                              public ::testing::WithParamInterface<size_t> {};
INSTANTIATE_TEST_SUITE_P(First, CachingManagerFreeing, ::testing::Values(0, 1, 2));

TEST_P(CachingManagerFreeing, WhatIsUnusedLongestGoesFirst) {
  const size_t first = GetParam();
  void* const model = take(128 * kMB);  // an eighth of it may be kept, not 17 MB
  void* const blocks[] = {take(5 * kMB), take(6 * kMB), take(6 * kMB)};
  for (size_t i = first; i < first + 3; ++i) {
    giveBack(blocks[i % 3]);
  }
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(device_.sizes.contains(blocks[i]), i != first) << i;
  }
  giveBack(model);
}

TEST_F(CachingManager, AnEarlyPeakIsForgotten) {
  const std::vector<size_t> large(10, 50 * kMB);
  cycle(large), cycle(large);
  EXPECT_EQ(device_.held, 500 * kMB);
  const size_t window = CacheLimit::kWindow * 500;
  for (size_t i = 0; i < 2 * window / 3 + 2; ++i) {
    cycle({3 * kMB});
  }
  EXPECT_EQ(device_.held, 3 * kMB) << "what is taken again";
}

// A small value is kept of a temporary's block.
TEST_F(CachingManager, APieceThatIsKeptKeepsNoMore) {
  cycle({200 * kMB}), cycle({200 * kMB});
  void* kept = take(2 * kMB);
  for (size_t i = 0; i < 2 * CacheLimit::kWindow * 200 / 4 + 2; ++i) {
    cycle({4 * kMB});
  }
  EXPECT_LE(manager_->getMemoryStats().cachedBytes, 4 * kMB) << "what is taken again";
  EXPECT_EQ(device_.held, 200 * kMB) << "addresses";
  EXPECT_GE(device_.discarded, 182 * kMB);
  giveBack(kept);
}

// As often as there are small values in a step, the large ones are kept.
TEST_F(CachingManager, LongStepsKeepTheirMemory) {
  void* const model = take(30 * kMB);
  const auto longStep = [this] {
    cycle(std::vector<size_t>(10, 10 * kMB));
    for (int i = 0; i < 10'000; ++i) cycle({1000});
  };
  for (int i = 0; i < 5; ++i) longStep();
  const size_t before = device_.allocations;
  for (int i = 0; i < 20; ++i) longStep();
  EXPECT_EQ(device_.allocations, before);
  giveBack(model);
}

// What nobody took from one call to the next goes.
TEST_F(CachingManager, E2WhatIsUnusedGoes) {
  for (int i = 0; i < 3; ++i) cycle(std::vector<size_t>(20, 10 * kMB));
  EXPECT_EQ(manager_->getMemoryStats().cachedBytes, 200 * kMB);
  EXPECT_TRUE(manager_->giveBackUnused());
  EXPECT_EQ(manager_->getMemoryStats().cachedBytes, 200 * kMB) << "it is new";
  cycle({10 * kMB});
  EXPECT_TRUE(manager_->giveBackUnused());
  EXPECT_EQ(manager_->getMemoryStats().cachedBytes, 10 * kMB) << "what was taken";
  EXPECT_EQ(device_.held, 10 * kMB);
  EXPECT_FALSE(manager_->giveBackUnused());
  EXPECT_EQ(device_.held, 0u);
  cycle({CacheLimit::kLeast});
  pass(), pass();
  EXPECT_EQ(device_.held, CacheLimit::kLeast) << "any program may keep so much";
  for (int i = 0; i < 2; ++i) cycle(std::vector<size_t>(20, 10 * kMB));
  EXPECT_EQ(manager_->getMemoryStats().cachedBytes, 202 * kMB) << "it is known to come again";
}

// However often that is looked for, as long as there is a step in between; of few large blocks,
// which are split, and many small ones.
TEST_F(CachingManager, RepeatedStepsKeepTheirMemoryAsTimePasses) {
  std::mt19937 generator(1);
  for (const size_t most : {kMB / 4, 4 * kMB, 60 * kMB}) {
    void* const model = take(30 * kMB);
    std::vector<size_t> sizes;
    for (int i = 0; i < 100; ++i) sizes.push_back(most / 10 + generator() % most);
    const auto step = [&] {
      cycle(sizes);
      cycle({sizes.begin(), sizes.begin() + 50});
      manager_->giveBackUnused();
    };
    for (int i = 0; i < 5; ++i) step();
    const size_t before = device_.allocations, discarded = device_.discarded;
    for (int i = 0; i < 200; ++i) step();
    EXPECT_EQ(device_.allocations, before) << most;
    EXPECT_EQ(device_.discarded, discarded) << most;
    giveBack(model);
    manager_->signalMemoryCleanup();
  }
}

// What is left of a block that others are taken of is as old as it was.
TEST_F(CachingManager, PiecesThatAreTakenKeepNoOthers) {
  cycle({200 * kMB}), cycle({200 * kMB}), cycle({200 * kMB});
  void* const kept = take(20 * kMB);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(device_.discarded, i < 2 ? 0 : 180 * kMB);
    for (int j = 0; j < 10; ++j) cycle({3 * kMB}), cycle({1000});
    manager_->giveBackUnused();
  }
  EXPECT_LE(manager_->getMemoryStats().cachedBytes, 50 * kMB);
  giveBack(kept);
}

TEST_F(CachingManager, ADroppedModelLeavesNothing) {
  for (int model = 0; model < 3; ++model) {
    std::vector<void*> parameters;
    for (int i = 0; i < 20; ++i) parameters.push_back(take(10 * kMB));
    for (int i = 0; i < 8; ++i) cycle(std::vector<size_t>(15, 10 * kMB));
    EXPECT_EQ(manager_->getMemoryStats().liveBytes, 200 * kMB);
    EXPECT_EQ(manager_->getMemoryStats().cachedBytes, 150 * kMB) << "for the next step";
    const size_t before = device_.allocations;
    cycle(std::vector<size_t>(15, 10 * kMB));
    EXPECT_EQ(device_.allocations, before);
    std::ranges::for_each(parameters, [this](void* block) { giveBack(block); });
    pass();
    EXPECT_LE(device_.held, CacheLimit::kLeast) << model;
  }
}

// As in eager mode: temporaries come and go in the midst of a step, while much more is live than at
// its end, which is no model that is dropped.
TEST_F(CachingManager, StepsThatTakeTemporariesInTheirMidstKeepTheirMemory) {
  for (const size_t bytes : {2 * kMB, 8 * kMB, 32 * kMB, 128 * kMB}) {
    void* const model = take(bytes);
    const auto step = [&] {
      std::vector<void*> values;
      for (int layer = 0; layer < 10; ++layer) {
        values.push_back(take(bytes));
        cycle({bytes}), cycle({bytes});
      }
      for (void* value : values) {
        cycle({bytes, bytes});
        giveBack(value);
      }
    };
    for (int i = 0; i < 4; ++i) step();
    const size_t before = device_.allocations;
    for (int i = 0; i < 40; ++i) step();
    EXPECT_EQ(device_.allocations, before) << bytes;
    giveBack(model);
    manager_->signalMemoryCleanup();
  }
}

TEST_F(CachingManager, CyclesMayGrowLonger) {
  void* const model = take(30 * kMB);
  const auto step = [this](int small) {
    cycle(std::vector<size_t>(10, 10 * kMB));
    for (int i = 0; i < small; ++i) cycle({1000});
  };
  for (int i = 0; i < 3; ++i) step(1);
  step(5000), step(5000);
  const size_t before = device_.allocations;
  for (int i = 0; i < 5; ++i) step(5000);
  EXPECT_EQ(device_.allocations, before);
  giveBack(model);
}

// A step may let go of most of what it has in its midst.
TEST_F(CachingManager, StepsWithTroughsKeepTheirMemory) {
  void* const model = take(10 * kMB);
  const auto step = [this] {
    for (const int count : {3, 8, 4}) {
      void* const outer = take(50 * kMB);
      cycle(std::vector<size_t>(count, 10 * kMB));
      void* const inner = take(30 * kMB);
      cycle(std::vector<size_t>(count, 12 * kMB));
      giveBack(outer), giveBack(inner);
    }
  };
  for (int i = 0; i < 5; ++i) step();
  const size_t before = device_.allocations, discarded = device_.discarded;
  for (int i = 0; i < 100; ++i) step();
  EXPECT_EQ(device_.allocations, before);
  EXPECT_EQ(device_.discarded, discarded);
  giveBack(model);
}

}  // namespace
}  // namespace fl::testing
