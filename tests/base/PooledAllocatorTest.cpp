#include <gtest/gtest.h>

#include <cstddef>
#include <thread>
#include <vector>

#include "fl/base/PooledAllocator.h"

namespace fl::testing {
namespace {

constexpr size_t kMostKept = 4096;

// A size that nothing else here has, so that each test has a pool of its own.
template <size_t kBytes>
struct Thing {
  std::byte bytes[kBytes];
};

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(PooledAllocator, GivesOutWhatWasFreedLast) {
  PooledAllocator<Thing<1040>> allocator;
  auto *const first = allocator.allocate(1), *const second = allocator.allocate(1);
  EXPECT_NE(first, second);
  allocator.deallocate(first, 1);
  allocator.deallocate(second, 1);
  EXPECT_EQ(allocator.allocate(1), second);
  EXPECT_EQ(allocator.allocate(1), first);
  allocator.deallocate(first, 1);
  allocator.deallocate(second, 1);
}
#endif

TEST(PooledAllocator, TakesMoreThanItKeeps) {
  PooledAllocator<Thing<24>> allocator;
  std::vector<Thing<24>*> things;
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < kMostKept + 100; ++i) {
      things.push_back(allocator.allocate(1));
      things.back()->bytes[23] = std::byte{1};
    }
    for (; !things.empty(); things.pop_back()) {
      allocator.deallocate(things.back(), 1);
    }
  }
}

// What a thread made may be freed by another, even while that ends.
TEST(PooledAllocator, BlocksCrossThreads) {
  PooledAllocator<Thing<40>> allocator;
  std::vector<Thing<40>*> things;
  std::thread([&] {
    for (int i = 0; i < 100; ++i) {
      things.push_back(allocator.allocate(1));
    }
  }).join();
  struct FreesLate {
    std::vector<Thing<40>*> things;
    ~FreesLate() {
      for (Thing<40>* thing : things) {
        PooledAllocator<Thing<40>>().deallocate(thing, 1);
      }
    }
  };
  std::thread([&] {
    static thread_local FreesLate late;  // destroyed behind the pool, which is made after it
    late.things = things;
    allocator.deallocate(allocator.allocate(1), 1);
  }).join();
}

}  // namespace
}  // namespace fl::testing
