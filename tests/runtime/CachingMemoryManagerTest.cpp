#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <new>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <vector>

#include "fl/runtime/CachingMemoryManager.h"
#include "fl/runtime/SystemMemory.h"
#include "tests/ErrorOf.h"
#include "tests/runtime/CachingManager.h"

namespace fl::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(CachingManager, AllocatesTheProductOfItsArguments) {
  Dim dims[] = {3, 5, 7};
  void* block = manager_->alloc(false, 3, dims, 8);
  EXPECT_EQ(manager_->allocated(block), 896u) << "the next size from 840";
  EXPECT_EQ(manager_->allocated(nullptr), 0u);
  EXPECT_EQ(manager_->allocated(static_cast<char*>(block) + 64), 0u);
  giveBack(block);
  EXPECT_EQ(manager_->allocated(block), 0u);
  dims[1] = 0;
  EXPECT_EQ(manager_->alloc(false, 3, dims, 8), nullptr);
  giveBack(nullptr);
  dims[1] = -1;
  EXPECT_THROW(manager_->alloc(false, 3, dims, 8), std::bad_alloc);
  dims[1] = std::numeric_limits<Dim>::max();
  EXPECT_THROW(manager_->alloc(false, 3, dims, 8), std::bad_alloc);
  EXPECT_EQ(manager_->getMemoryStats().allocations, 1u);
}

TEST_F(CachingManager, BlocksAreAlignedAndAtMostAQuarterTooLarge) {
  for (size_t bytes = 1; bytes < 100 * kMB; bytes += bytes / 13 + 1) {
    void* block = take(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
    EXPECT_GE(manager_->allocated(block), bytes);
    EXPECT_LE(manager_->allocated(block), bytes + std::max<size_t>(64, bytes / 4));
    giveBack(block);
  }
}

TEST_F(CachingManager, SmallBlocksServeTheirSizeOnly) {
  void* block = take(1000);
  giveBack(block);
  EXPECT_EQ(take(1024), block);
  void* larger = take(1025);
  EXPECT_EQ(manager_->allocated(larger), 1280u);
  EXPECT_NE(larger, block);
  giveBack(larger);
  void* smaller = take(600);
  EXPECT_NE(smaller, larger);
  giveBack(smaller), giveBack(block);
}

// Of whole pages.
size_t residentBytes(void* begin, size_t bytes) {
  std::vector<unsigned char> pages(bytes / runtime::kPage);
  EXPECT_EQ(mincore(begin, bytes, pages.data()), 0);
  return static_cast<size_t>(std::ranges::count(pages, 1)) * runtime::kPage;
}

// Of a block of the system that they share, which goes back with the last of them.
TEST_F(CachingManager, SmallBlocksArePiecesWhosePagesGo) {
  constexpr size_t kCount = 100, kBytes = 8192;
  std::vector<char*> blocks;
  for (size_t i = 0; i < kCount; ++i) {
    blocks.push_back(static_cast<char*>(take(kBytes)));
    std::memset(blocks[i], 1, kBytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(blocks[i]) % runtime::kPage, 0u);
  }
  EXPECT_EQ(device_.allocations, 1u);
  char* const begin = *std::ranges::min_element(blocks);
  EXPECT_EQ(residentBytes(begin, kCount * kBytes), kCount * kBytes);
  for (size_t i = 0; i < kCount; ++i) {
    if (i % 5 != 0) giveBack(blocks[i]);
  }
  EXPECT_EQ(manager_->getMemoryStats().cachedBytes, kCount / 5 * 4 * kBytes);
  manager_->signalMemoryCleanup();
  EXPECT_EQ(device_.discarded, kCount / 5 * 4 * kBytes);
  EXPECT_EQ(manager_->getMemoryStats().cachedBytes, 0u);
  EXPECT_EQ(residentBytes(begin, kCount * kBytes), kCount / 5 * kBytes);
  for (size_t i = 0; i < kCount; i += 5) {
    EXPECT_EQ(std::ranges::count(std::span(blocks[i], kBytes), 1), kBytes) << "what is in use";
    giveBack(blocks[i]);
  }
  manager_->signalMemoryCleanup();
  EXPECT_EQ(device_.held, 0u);
}

// Pages that only unused blocks share go, once all of them are let go; others stay.
TEST_F(CachingManager, BlocksBelowAPageGoByPages) {
  std::vector<char*> blocks;
  for (size_t i = 0; i < 32; ++i) blocks.push_back(static_cast<char*>(take(1024)));
  std::ranges::sort(blocks);
  ASSERT_EQ(blocks.back() - blocks.front(), 31 * 1024) << "side by side";
  ASSERT_EQ(reinterpret_cast<uintptr_t>(blocks.front()) % runtime::kPage, 0u);
  for (size_t i = 0; i < 32; ++i) {
    std::memset(blocks[i], 1, 1024);
    if (i != 10) giveBack(blocks[i]);
  }
  manager_->signalMemoryCleanup();
  EXPECT_EQ(residentBytes(blocks[0], 32 * 1024), runtime::kPage);
  EXPECT_EQ(std::ranges::count(std::span(blocks[10], 1024), 1), 1024);
  EXPECT_EQ(take(1280), blocks[0]) << "the smaller piece";
  EXPECT_EQ(take(9 * 1024), blocks[11]);
  giveBack(blocks[0]), giveBack(blocks[10]), giveBack(blocks[11]);
  manager_->signalMemoryCleanup();
  EXPECT_EQ(device_.held, 0u);
}

// A device that cannot give pages back would have to keep all of a block for one of its pieces.
TEST_F(CachingManager, SmallBlocksAreTheSystemsWherePagesCannotGo) {
  device_.functions->nativeDiscard = nullptr;
  void* const blocks[] = {take(64), take(4096), take(100), take(300'000)};
  EXPECT_EQ(device_.allocations, 4u);
  EXPECT_EQ(device_.held, 64u + 4096 + 128 + 327'680);
  EXPECT_EQ(manager_->getMemoryStats().liveBytes, device_.held);
  EXPECT_EQ(manager_->getMemoryStats().cachedBytes, 0u);
  for (void* block : blocks) giveBack(block);
  EXPECT_EQ(manager_->getMemoryStats().cachedBytes, device_.held);
  EXPECT_EQ(take(4090), blocks[1]);
  giveBack(blocks[1]);
  manager_->signalMemoryCleanup();
  EXPECT_EQ(device_.held, 0u);
  EXPECT_EQ(manager_->getMemoryStats().cachedBytes, 0u);
}

// Beside a model of which an eighth is as much as these tests have kept.
class CachingManagerOfALargeModel : public CachingManager {
 protected:
  CachingManagerOfALargeModel() {
    take(kModel);
    device_.allocations = device_.held = 0;
  }
  static constexpr size_t kModel = 128 * kMB;
};

TEST_F(CachingManagerOfALargeModel, LargeBlocksAreSplitAndGrowTogether) {
  auto* whole = static_cast<char*>(take(12 * kMB));
  giveBack(whole);
  std::vector<void*> pieces;
  for (size_t i = 0; i < 3; ++i) {
    pieces.push_back(take(4 * kMB));
    EXPECT_EQ(pieces[i], whole + i * 4 * kMB);
    EXPECT_EQ(manager_->allocated(pieces[i]), 4 * kMB);
  }
  EXPECT_EQ(device_.allocations, 1u);
  // All orders: with the neighbour before, behind, both.
  std::ranges::sort(pieces);
  do {
    std::ranges::for_each(pieces, [this](void* piece) { giveBack(piece); });
    EXPECT_EQ(manager_->getMemoryStats().cachedBytes, 12 * kMB);
    ASSERT_EQ(take(12 * kMB), whole);
    giveBack(whole);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(take(4 * kMB), whole + i * 4 * kMB);
    }
  } while (std::ranges::next_permutation(pieces).found);
  EXPECT_EQ(device_.allocations, 1u);
}

TEST_F(CachingManagerOfALargeModel, PiecesAreSplitBetweenOthers) {
  auto* whole = static_cast<char*>(take(12 * kMB));
  giveBack(whole);
  void* first = take(8 * kMB);
  void* third = take(4 * kMB);
  giveBack(first);
  EXPECT_EQ(take(3 * kMB), whole);
  void* second = take(5 * kMB);
  EXPECT_EQ(second, whole + 3 * kMB);
  giveBack(whole), giveBack(third);
  EXPECT_EQ(manager_->allocated(second), 5 * kMB);
  EXPECT_EQ(take(4 * kMB), third) << "the first has not grown into it";
  giveBack(second), giveBack(third);
  EXPECT_EQ(take(12 * kMB), whole);
}

TEST_F(CachingManagerOfALargeModel, TheSmallestLargeBlockServes) {
  void* four = take(4 * kMB);
  void* six = take(6 * kMB);
  giveBack(six), giveBack(four);
  EXPECT_EQ(take(5 * kMB + kMB / 2), six);
  EXPECT_EQ(manager_->allocated(six), 6 * kMB) << "too little is left over";
  EXPECT_EQ(take(2 * kMB), four);
  EXPECT_EQ(manager_->allocated(four), 2 * kMB);
  EXPECT_EQ(device_.allocations, 2u);
}

TEST_F(CachingManagerOfALargeModel, PagesGoWhileAPieceIsInUse) {
  auto* whole = static_cast<char*>(take(12 * kMB));
  std::memset(whole, 1, 12 * kMB);
  giveBack(whole);
  ASSERT_EQ(take(4 * kMB), whole);
  EXPECT_EQ(residentBytes(whole, 12 * kMB), 12 * kMB);
  manager_->signalMemoryCleanup();
  EXPECT_EQ(device_.frees, 0u);
  EXPECT_EQ(device_.discarded, 8 * kMB);
  EXPECT_EQ(manager_->getMemoryStats().cachedBytes, 0u);
  EXPECT_EQ(residentBytes(whole, 12 * kMB), 4 * kMB);
  EXPECT_EQ(std::ranges::count(std::span(whole, 4 * kMB), 1), 4 * kMB) << "what is in use";
  // The addresses serve again, and what was written goes with what grows together.
  ASSERT_EQ(take(2 * kMB), whole + 4 * kMB);
  std::memset(whole + 4 * kMB, 1, 2 * kMB);
  EXPECT_EQ(device_.allocations, 1u);
  EXPECT_EQ(manager_->getMemoryStats().liveBytes, kModel + 6 * kMB);
  giveBack(whole + 4 * kMB);
  EXPECT_EQ(manager_->getMemoryStats().cachedBytes, 2 * kMB);
  manager_->signalMemoryCleanup();
  EXPECT_EQ(residentBytes(whole, 12 * kMB), 4 * kMB);
  giveBack(whole);
  manager_->shutdown();
  EXPECT_EQ(device_.held, 0u);
  EXPECT_EQ(manager_->getMemoryStats().cachedBytes, 0u);
}

TEST_F(CachingManagerOfALargeModel, BlocksStayWhileAPieceIsInUseOfADeviceWithoutPages) {
  device_.functions->nativeDiscard = nullptr;
  giveBack(take(12 * kMB));
  void* piece = take(4 * kMB);
  manager_->signalMemoryCleanup();
  EXPECT_EQ(device_.frees, 0u);
  EXPECT_EQ(manager_->getMemoryStats().cachedBytes, 8 * kMB);
  giveBack(piece);
  manager_->shutdown();
  EXPECT_EQ(device_.held, 0u);
  EXPECT_EQ(manager_->getMemoryStats().cachedBytes, 0u);
}

TEST_F(CachingManagerOfALargeModel, RecyclesAndSplitsUpToItsLimits) {
  manager_->setRecyclingSizeLimit(2 * kMB);
  giveBack(take(2 * kMB));
  giveBack(take(3 * kMB));
  EXPECT_EQ(device_.frees, 1u);
  EXPECT_EQ(device_.held, 2 * kMB);
  manager_->setRecyclingSizeLimit(100 * kMB);
  manager_->setSplitSizeLimit(8 * kMB);
  void* large = take(10 * kMB);
  giveBack(large);
  EXPECT_NE(take(4 * kMB), large) << "it would have to be split";
  EXPECT_EQ(take(9 * kMB + kMB / 2), large) << "next to nothing is left over";
  manager_->setSplitSizeLimit(10 * kMB);
  giveBack(large);
  EXPECT_EQ(take(4 * kMB + kMB / 2), large);
}

TEST_F(CachingManager, LocksOfManagerAndUser) {
  void* block = take(100, /*userLock=*/true);
  EXPECT_TRUE(manager_->isUserLocked(block));
  manager_->unlock(block, /*userLock=*/false);
  EXPECT_EQ(manager_->getMemoryStats().liveBytes, 128u) << "the user's lock is left";
  manager_->userUnlock(block);
  EXPECT_EQ(manager_->getMemoryStats().liveBytes, 0u);
  EXPECT_FALSE(manager_->isUserLocked(block));
  EXPECT_EQ(take(100), block);
  EXPECT_FALSE(manager_->isUserLocked(block));
  manager_->userLock(block);
  giveBack(block);
  EXPECT_TRUE(manager_->isUserLocked(block));
  manager_->unlock(block, /*userLock=*/true);
  EXPECT_EQ(manager_->getMemoryStats().liveBytes, 0u);
}

TEST_F(CachingManager, RefusesWhatIsNoLiveBlock) {
  int local = 0;
  void* freed = take(10);
  giveBack(freed);
  for (void* block : {static_cast<void*>(&local), freed}) {
    EXPECT_THAT(test::errorOf([&] { giveBack(block); }),
                ::testing::ContainsRegex("CachingMemoryManager::unlock: 0x[0-9a-f]+ is no live"));
    EXPECT_THAT(test::errorOf([&] { manager_->userLock(block); }),
                HasSubstr("CachingMemoryManager::userLock: 0x"));
    EXPECT_FALSE(manager_->isUserLocked(block));
  }
}

TEST_F(CachingManager, MemoryPressure) {
  device_.memory = 16 * kMB;
  EXPECT_EQ(device_.functions->getMemoryPressureThreshold(), 1.0F);
  void* block = take(4 * kMB);
  giveBack(take(2 * kMB));
  EXPECT_EQ(manager_->getMemoryPressure(), 6.0F / 16);
  EXPECT_FALSE(manager_->jitTreeExceedsMemoryPressure(12 * kMB));
  EXPECT_TRUE(manager_->jitTreeExceedsMemoryPressure(13 * kMB));
  device_.functions->setMemoryPressureThreshold(0.5F);
  EXPECT_TRUE(manager_->jitTreeExceedsMemoryPressure(5 * kMB));
  giveBack(take(kMB * 3 / 2));
  EXPECT_EQ(device_.frees, 0u);
  void* other = take(3 * kMB);
  EXPECT_EQ(device_.frees, 1u) << "4 + 2 + 3 is more than half of 16";
  EXPECT_EQ(manager_->getMemoryPressure(), 7.0F / 16);
  giveBack(block), giveBack(other);
}

TEST_F(CachingManager, ADeviceAtATime) {
  void* of0 = take(100);
  device_.active = 1;
  EXPECT_THAT(test::errorOf<std::runtime_error>([&] { take(100); }),
              HasSubstr("CachingMemoryManager: device 1 is not managed"));
  manager_->addMemoryManagement(1);
  manager_->addMemoryManagement(1);
  void* of1 = take(1000);
  EXPECT_EQ(manager_->getMemoryStats().liveBytes, 1024u);
  EXPECT_EQ(manager_->allocated(of0), 0u);
  EXPECT_THAT(test::errorOf([&] { manager_->removeMemoryManagement(1); }),
              HasSubstr("removeMemoryManagement: 1024 bytes of device 1 are in use"));
  giveBack(of1);
  manager_->removeMemoryManagement(1);
  EXPECT_EQ(device_.frees, 1u);
  EXPECT_THAT(test::errorOf<std::runtime_error>([&] { manager_->removeMemoryManagement(1); }),
              HasSubstr("device 1 is not managed"));
  EXPECT_THAT(test::errorOf([&] { manager_->addMemoryManagement(-1); }),
              HasSubstr("CachingMemoryManager: there is no device -1"));
  device_.active = 0;
  giveBack(of0);
}

TEST_F(CachingManager, ShutsDownAllDevices) {
  giveBack(take(1000));
  manager_->addMemoryManagement(1);
  device_.active = 1;
  giveBack(take(1000));
  device_.active = 2;  // which is not managed
  const size_t frees = device_.frees;
  manager_->shutdown();
  EXPECT_EQ(device_.frees, frees + 2);
  device_.active = 0;
}

TEST_F(CachingManager, SaysWhatItHolds) {
  device_.memory = 5000;
  void* block = take(1000);
  giveBack(take(100));
  std::ostringstream text;
  manager_->printInfo("so far", 0, &text);
  EXPECT_EQ(text.str(),
            "so far\ndevice 0: 1024 B in use, 128 B kept for reuse, 1152 B at most, 2 allocations "
            "of 5000 B\n");
  EXPECT_THROW(manager_->printInfo("", 1, &text), std::runtime_error);
  giveBack(block);
}

TEST(CachingMemoryManager, NeedsTheFunctionsOfItsDevice) {
  CachingMemoryManager manager(1, std::make_shared<MemoryManagerDeviceInterface>());
  EXPECT_THAT(test::errorOf<std::runtime_error>([&] { manager.signalMemoryCleanup(); }),
              HasSubstr("functions of its device are not set; a MemoryManagerInstaller sets them"));
  EXPECT_THAT(test::errorOf([] { CachingMemoryManager(1, nullptr); }),
              HasSubstr("MemoryManagerAdapter: the device interface must not be null"));
}

// ---- against a model ----

// Blocks of random sizes, written at both ends.
class Traffic {
 public:
  Traffic(CachingMemoryManager* manager, unsigned seed) : manager_(manager), generator_(seed) {}
  ~Traffic() {
    while (!blocks_.empty()) {
      giveBack(blocks_.begin());
    }
  }

  void step() {
    if (blocks_.size() < 40 && generator_() % 2 == 0) {
      return take();
    }
    if (!blocks_.empty()) {
      giveBack(std::next(blocks_.begin(), generator_() % blocks_.size()));
    }
  }

 private:
  struct Block {
    size_t bytes;
    unsigned stamp;
  };
  using Blocks = std::map<uintptr_t, Block>;

  void take() {
    const size_t most = size_t{256} << generator_() % 17;
    Dim bytes = static_cast<Dim>(sizeof(unsigned) + generator_() % most);
    auto* block = static_cast<char*>(manager_->alloc(false, 1, &bytes, 1));
    const auto address = reinterpret_cast<uintptr_t>(block);
    const auto next = blocks_.lower_bound(address);
    ASSERT_EQ(address % 64, 0u);
    ASSERT_TRUE(next == blocks_.end() || address + bytes <= next->first);
    ASSERT_TRUE(next == blocks_.begin() ||
                std::prev(next)->first + std::prev(next)->second.bytes <= address);
    const Block made = {static_cast<size_t>(bytes), static_cast<unsigned>(generator_())};
    std::memcpy(block, &made.stamp, sizeof(made.stamp));
    std::memcpy(block + bytes - sizeof(made.stamp), &made.stamp, sizeof(made.stamp));
    blocks_[address] = made;
  }

  void giveBack(Blocks::iterator which) {
    auto* block = reinterpret_cast<char*>(which->first);
    const auto [bytes, stamp] = which->second;
    blocks_.erase(which);
    EXPECT_EQ(std::memcmp(block + bytes - sizeof(stamp), &stamp, sizeof(stamp)), 0);
    if (bytes >= 2 * sizeof(stamp)) {
      EXPECT_EQ(std::memcmp(block, &stamp, sizeof(stamp)), 0);
    }
    EXPECT_GE(manager_->allocated(block), bytes);
    manager_->unlock(block, false);
  }

  CachingMemoryManager* const manager_;
  std::mt19937 generator_;
  Blocks blocks_;
};

// With pages that go back, and without.
class CachingManagerBooks : public CachingManager, public ::testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Discards, CachingManagerBooks, ::testing::Bool());

TEST_P(CachingManagerBooks, AreRightOfRandomBlocksWhichAreDisjoint) {
  if (!GetParam()) device_.functions->nativeDiscard = nullptr;
  {
    Traffic traffic(manager_.get(), 1);
    size_t peak = 0;
    for (int i = 0; i < 100000 && !HasFatalFailure(); ++i) {
      traffic.step();
      const MemoryStats stats = manager_->getMemoryStats();
      peak = std::max(peak, stats.liveBytes);
      ASSERT_LE(stats.liveBytes + stats.cachedBytes, device_.held);
      if (!GetParam()) {
        ASSERT_EQ(stats.liveBytes + stats.cachedBytes, device_.held);
      }
      // With pages that come back to pieces, which is seen when the next block is freed.
      ASSERT_LE(stats.cachedBytes, 16 * kMB + peak / 4 * 5 - stats.liveBytes);
    }
    EXPECT_GT(peak, 10 * kMB);
    EXPECT_EQ(device_.discarded > 0, GetParam());
  }
  EXPECT_EQ(manager_->getMemoryStats().liveBytes, 0u);
  manager_->signalMemoryCleanup();
  EXPECT_EQ(device_.held, 0u) << "all pieces have grown together";
}

TEST_F(CachingManager, RandomBlocksOfThreads) {
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([this, seed] {
      Traffic traffic(manager_.get(), seed);
      for (int i = 0; i < 25000 && !HasFatalFailure(); ++i) {
        traffic.step();
      }
    });
  }
  std::ranges::for_each(threads, &std::thread::join);
  EXPECT_EQ(manager_->getMemoryStats().liveBytes, 0u);
  manager_->signalMemoryCleanup();
  EXPECT_EQ(device_.held, 0u);
  EXPECT_EQ(device_.allocations, device_.frees);
}

}  // namespace
}  // namespace fl::testing
