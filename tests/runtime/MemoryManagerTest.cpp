#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fl/runtime/MemoryManager.h"
#include "fl/runtime/SystemMemory.h"

#if defined(__SANITIZE_ADDRESS__)
#define FL_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FL_ADDRESS_SANITIZER 1
#endif
#endif

// Sanitizers abort at a hopeless request unless they are told to refuse it as the system does.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

namespace fl::runtime {
namespace {

// More than any machine has.
constexpr size_t kTooMuch = size_t{1} << 60;

class MemoryManagerTest : public testing::TestWithParam<std::unique_ptr<MemoryManager> (*)()> {
 protected:
  std::unique_ptr<MemoryManager> manager_ = GetParam()();
};
std::unique_ptr<MemoryManager> caching() { return makeCachingMemoryManager(); }
std::unique_ptr<MemoryManager> guardAfter() { return makeGuardMemoryManager(Guard::End); }
std::unique_ptr<MemoryManager> guardBefore() { return makeGuardMemoryManager(Guard::Begin); }
INSTANTIATE_TEST_SUITE_P(Managers, MemoryManagerTest,
                         testing::Values(&caching, &guardAfter, &guardBefore));

TEST_P(MemoryManagerTest, BlocksAreAlignedAndDisjoint) {
  std::vector<std::pair<unsigned char*, size_t>> blocks;
  for (size_t bytes : {0, 1, 63, 64, 65, 100, 1000, 4096, 4097, 100000, 3000000}) {
    for (int copy = 0; copy < 3; ++copy) {
      auto* block = static_cast<unsigned char*>(manager_->allocate(bytes));
      ASSERT_NE(block, nullptr);
      const bool guarded = GetParam() == &guardAfter;  // begins where its size puts it
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % (guarded ? 1 : 64), 0u);
      std::memset(block, static_cast<int>(blocks.size()), bytes);
      blocks.emplace_back(block, bytes);
    }
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto [block, bytes] = blocks[i];
    EXPECT_TRUE(std::all_of(block, block + bytes, [i](unsigned char c) { return c == i; }));
    manager_->deallocate(block, bytes);
  }
  EXPECT_EQ(manager_->stats().liveBytes, 0u);
  EXPECT_EQ(manager_->stats().allocations, blocks.size());
}

TEST_P(MemoryManagerTest, ThrowsBadAllocAndGoesOn) {
  EXPECT_THROW(manager_->allocate(kTooMuch), std::bad_alloc);
  EXPECT_THROW(manager_->allocate(~size_t{0}), std::bad_alloc);
  EXPECT_EQ(manager_->stats().allocations, 0u);
  manager_->deallocate(manager_->allocate(10), 10);
}

TEST_P(MemoryManagerTest, IsThreadSafe) {
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([this, seed] {
      std::mt19937 generator(seed);
      std::vector<std::pair<void*, size_t>> blocks;
      for (int i = 0; i < 2000; ++i) {
        const size_t bytes = generator() % 5000;
        void* block = manager_->allocate(bytes);
        std::memset(block, static_cast<int>(seed), bytes);
        blocks.emplace_back(block, bytes);
        if (blocks.size() > 20) {
          std::swap(blocks[generator() % 20], blocks.back());
          manager_->deallocate(blocks.back().first, blocks.back().second);
          blocks.pop_back();
        }
      }
      for (const auto& [block, bytes] : blocks) {
        manager_->deallocate(block, bytes);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(manager_->stats().liveBytes, 0u);
  EXPECT_EQ(manager_->stats().allocations, 4u * 2000u);
}

TEST(CachingMemoryManager, ReusesBlocksOfTheSizeClass) {
  const auto manager = makeCachingMemoryManager();
  void* block = manager->allocate(1000);
  const size_t live = manager->stats().liveBytes;
  EXPECT_EQ(live, 1024u);
  manager->deallocate(block, 1000);
  EXPECT_EQ(manager->stats().cachedBytes, live);
  EXPECT_EQ(manager->allocate(1024), block);
  EXPECT_EQ(manager->stats().cachedBytes, 0u);
  EXPECT_EQ(manager->stats().peakBytes, live);
  void* other = manager->allocate(1025);
  EXPECT_NE(other, block);
  EXPECT_EQ(manager->stats().liveBytes, 1024u + 1280u);
  manager->deallocate(block, 1024);
  manager->deallocate(other, 1025);
  EXPECT_EQ(manager->stats().peakBytes, 1024u + 1280u);
}

TEST(CachingMemoryManager, BlocksAreAtMostAQuarterTooLarge) {
  for (size_t bytes = 257; bytes < 100000; bytes += 61) {
    const auto manager = makeCachingMemoryManager();
    void* block = manager->allocate(bytes);
    EXPECT_GE(manager->stats().liveBytes, bytes);
    EXPECT_LE(manager->stats().liveBytes, bytes + bytes / 4);
    manager->deallocate(block, bytes);
  }
}

TEST(CachingMemoryManager, GivesItsCacheBack) {
  const auto manager = makeCachingMemoryManager();
  manager->deallocate(manager->allocate(5000), 5000);
  EXPECT_GT(manager->stats().cachedBytes, 0u);
  manager->release();
  EXPECT_EQ(manager->stats().cachedBytes, 0u);
}

// Of the manager that is given, for a scope.
class HostMemory {
 public:
  explicit HostMemory(std::shared_ptr<MemoryManager> manager) : before_(hostMemoryManager()) {
    setHostMemoryManager(std::move(manager));
  }
  ~HostMemory() { setHostMemoryManager(before_); }

 private:
  const std::shared_ptr<MemoryManager> before_;
};

// Has memory only after it released what it keeps, and no more than so many bytes.
class Stingy final : public MemoryManager {
 public:
  explicit Stingy(size_t most) : most_(most) {}
  void* allocate(size_t bytes) override {
    if (!released_ || live_ + bytes > most_) {
      throw std::bad_alloc();
    }
    live_ += bytes;
    return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  }
  void deallocate(void* pointer, size_t bytes) override {
    live_ -= bytes;
    std::free(pointer);
  }
  void release() override { released_ = true; }
  MemoryStats stats() const override { return {.liveBytes = live_}; }

 private:
  const size_t most_;
  size_t live_ = 0;
  bool released_ = false;
};

TEST(Buffers, ReleaseTheCacheBeforeTheyGiveUp) {
  const HostMemory memory(std::make_shared<Stingy>(1000));
  EXPECT_NO_THROW(Buffer(100));
}

TEST(Buffers, NameTheLargestWhereThereIsNoMemory) {
  const Buffer ofAnother(50'000, {"sin", CallSite()});  // of a manager that was replaced
  const HostMemory memory(std::make_shared<Stingy>(7000));
  const Buffer large(3000, {"matmul", CallSite()}), small(1000, {"exp", CallSite()});
  std::vector<std::unique_ptr<Buffer>> others;
  for (size_t bytes = 100; bytes < 109; ++bytes) {
    others.push_back(std::make_unique<Buffer>(bytes, BufferOrigin{"tanh", CallSite()}));
  }
  std::string message;
  try {
    Buffer(5000, {"add", CallSite()});
  } catch (const std::bad_alloc& error) {
    message = error.what();
  }
  EXPECT_EQ(
      message.find("host memory: 5000 bytes cannot be had\nThey are for add; 54936 are in use, 0 "
                   "kept for reuse, "),
      0u)
      << message;
  EXPECT_NE(message.find(" free in the system. The largest in use:\n"
                         "  50000 bytes of sin, of another manager\n"
                         "  3000 bytes of matmul\n"
                         "  1000 bytes of exp\n"
                         "  108 bytes of tanh\n"),
            std::string::npos)
      << message;
  EXPECT_EQ(message.find(" 101 bytes of tanh"), std::string::npos) << "an eleventh";
  EXPECT_NO_THROW(Buffer(2000));
}

// A caching one that says how much is free.
class Narrow final : public MemoryManager {
 public:
  explicit Narrow(size_t free) : free(free) {}
  void* allocate(size_t bytes) override { return inner_->allocate(bytes); }
  void deallocate(void* pointer, size_t bytes) override { inner_->deallocate(pointer, bytes); }
  void release() override {
    ++releases;
    inner_->release();
  }
  MemoryStats stats() const override { return inner_->stats(); }
  size_t freeBytes() const override {
    ++looks;
    return free;
  }
  size_t free;
  mutable int looks = 0;
  int releases = 0;

 private:
  const std::unique_ptr<MemoryManager> inner_ = makeCachingMemoryManager();
};

std::string errorOf(size_t bytes) {
  try {
    Buffer(bytes, {"add", CallSite()});
  } catch (const std::bad_alloc& error) {
    return error.what();
  }
  return "";
}

constexpr size_t kMB = size_t{1} << 20;

// The system would map it, and kill who touches it.
TEST(Buffers, AreRefusedWhatCannotBeTouched) {
  const auto narrow = std::make_shared<Narrow>(100 * kMB);
  const HostMemory memory(narrow);
  EXPECT_EQ(
      errorOf(200 * kMB).find("host memory: 209715200 bytes cannot be had\nThey are for add; "),
      0u);
  EXPECT_NE(errorOf(101 * kMB).find(" 0 kept for reuse, 104857600 free in the system. "),
            std::string::npos);
  EXPECT_NE(errorOf(97 * kMB), "") << "the tables of pages need some, too";
  EXPECT_EQ(narrow->stats().liveBytes, 0u);
  EXPECT_EQ(narrow->stats().cachedBytes, 0u) << "what was refused is not kept";
  EXPECT_EQ(errorOf(90 * kMB), "");
}

TEST(Buffers, AreRefusedWhatCannotBeTouchedWithTheOthers) {
  if (poisons()) GTEST_SKIP() << "which touches them";
  const auto narrow = std::make_shared<Narrow>(100 * kMB);
  const HostMemory memory(narrow);
  const Buffer first(30 * kMB), scalar(4), second(30 * kMB);
  EXPECT_NE(errorOf(50 * kMB), "");
  std::memset(first.data(), 1, first.bytes());
  EXPECT_EQ(errorOf(50 * kMB), "") << "what is free is what is left";
  narrow->free = 70 * kMB;
  std::memset(second.data(), 1, second.bytes());
  EXPECT_EQ(errorOf(60 * kMB), "");
  EXPECT_NE(errorOf(70 * kMB), "");
}

// Pages that are there already are not asked for again.
TEST(Buffers, OfTheCacheAreNotRefused) {
  const auto narrow = std::make_shared<Narrow>(100 * kMB);
  const HostMemory memory(narrow);
  auto touched = std::make_unique<Buffer>(2 * kMB);
  std::memset(touched->data(), 1, touched->bytes());
  {
    const HostMemory other(makeCachingMemoryManager());  // what is free is looked at after it
    touched.reset();
  }
  ASSERT_EQ(narrow->stats().cachedBytes, 2 * kMB);
  narrow->free = 0;
  const int looks = narrow->looks;
  EXPECT_EQ(errorOf(2 * kMB), "");
  EXPECT_EQ(narrow->looks, looks + 1);
  EXPECT_NE(errorOf(5 * kMB), "");
}

// That costs more than a buffer.
TEST(Buffers, SeldomLookAtWhatIsFree) {
  const auto narrow = std::make_shared<Narrow>(1000 * kMB);
  const HostMemory memory(narrow);
  for (int i = 0; i < 1000; ++i) Buffer(100'000);
  EXPECT_EQ(narrow->looks, 1);
  std::vector<std::unique_ptr<Buffer>> kept;
  for (int i = 0; i < 300; ++i) kept.push_back(std::make_unique<Buffer>(kMB / 2));
  EXPECT_EQ(narrow->looks, 1) << "less than a quarter of what is free";
  for (int i = 0; i < 300; ++i) kept.push_back(std::make_unique<Buffer>(kMB / 2));
  EXPECT_EQ(narrow->looks, 2);
}

TEST(Buffers, HaveAllManagersOfTheHostRelease) {
  const auto first = std::make_shared<Narrow>(1000 * kMB);
  const HostMemory before(first);
  const Buffer live(100);
  auto freed = std::make_unique<Buffer>(2 * kMB);
  const HostMemory after(std::make_shared<Stingy>(0));
  EXPECT_EQ(first->releases, 1) << "it was replaced";
  freed.reset();
  EXPECT_EQ(first->stats().cachedBytes, 2 * kMB);
  EXPECT_NE(errorOf(2 * kMB).find("The largest in use:\n  100 bytes of data, of another manager"),
            std::string::npos);
  EXPECT_EQ(first->releases, 2);
  EXPECT_EQ(first->stats().cachedBytes, 0u);
}

#ifdef FL_ADDRESS_SANITIZER
TEST(CachingMemoryManagerDeathTest, SanitizerSeesUseAfterFree) {
  const auto manager = makeCachingMemoryManager();
  auto* block = static_cast<volatile char*>(manager->allocate(500));
  manager->deallocate(const_cast<char*>(block), 500);
  EXPECT_DEATH(block[10] = 1, "use-after-poison");
}
#endif

#ifndef FL_ADDRESS_SANITIZER
TEST(GuardMemoryManagerDeathTest, WhatTouchesTheOutsideDies) {
  constexpr size_t kBytes = 12;
  for (Guard guard : {Guard::End, Guard::Begin}) {
    const auto manager = makeGuardMemoryManager(guard);
    auto* block = static_cast<volatile char*>(manager->allocate(kBytes));
    for (size_t i = 0; i < kBytes; ++i) {
      block[i] = 1;
    }
    volatile char* outside = guard == Guard::End ? block + kBytes : block - 1;
    EXPECT_DEATH(*outside = 1, "");
    EXPECT_DEATH(block[0] = *outside, "");
    manager->deallocate(const_cast<char*>(block), kBytes);
    EXPECT_DEATH(block[0] = 1, "") << "after it was freed";
  }
}
#endif

// Asks the system, which no sanitizer watches.
bool isReadable(void* address) {
  unsigned char byte = 0;
  const iovec to{&byte, 1}, from{address, 1};
  return syscall(SYS_process_vm_readv, getpid(), &to, 1, &from, 1, 0) == 1;
}

TEST(GuardMemoryManager, GuardsSoManyBlocksAndNoMore) {
  for (Guard guard : {Guard::End, Guard::Begin}) {
    const auto manager = makeGuardMemoryManager(guard);
    const auto isGuarded = [&](unsigned char* block) {
      return !isReadable(guard == Guard::End ? block + 100 : block - 1);
    };
    std::vector<unsigned char*> blocks;
    for (size_t i = 0; i < kMostGuardedBlocks + 100; ++i) {
      blocks.push_back(static_cast<unsigned char*>(manager->allocate(100)));
      std::memset(blocks.back(), static_cast<int>(i % 251), 100);
    }
    const size_t guarded = std::count_if(blocks.begin(), blocks.end(), isGuarded);
    EXPECT_EQ(guarded, kMostGuardedBlocks);
    for (size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_EQ(blocks[i][99], i % 251);
      manager->deallocate(blocks[i], 100);
    }
    EXPECT_EQ(manager->stats().liveBytes, 0u);
    auto* block = static_cast<unsigned char*>(manager->allocate(100));
    EXPECT_TRUE(isGuarded(block)) << "others were freed";
    manager->deallocate(block, 100);
  }
}

TEST(GuardMemoryManager, RefusesMoreThanTheMachineHas) {
  if (poisons()) GTEST_SKIP() << "which would touch a third of it";
  const size_t free = freeSystemMemory();
  const std::shared_ptr<MemoryManager> manager = makeGuardMemoryManager(Guard::End);
  const HostMemory memory(manager);
  {
    const Buffer third(free / 3);  // never written to
    EXPECT_THROW(Buffer(systemMemory() + 1), std::bad_alloc);
    EXPECT_THROW(Buffer(free / 4 * 3), std::bad_alloc);
  }
  EXPECT_EQ(manager->stats().liveBytes, 0u);
}

bool isPoison(const void* block, size_t bytes) {
  const auto* begin = static_cast<const unsigned char*>(block);
  return std::all_of(begin, begin + bytes, [](unsigned char byte) { return byte == kPoison; });
}

bool isSet(const char* variable, const char* value) {
  const char* set = std::getenv(variable);
  return set != nullptr && std::string(set) == value;
}

// As it is, with any manager.
TEST(HostMemoryManager, PoisonsWhenAskedTo) {
  std::memset(Buffer(100).data(), 1, 100);
  EXPECT_EQ(isPoison(Buffer(100).data(), 100), isSet("FL_POISON", "1"));
  float nan;
  std::memset(&nan, kPoison, sizeof(nan));
  EXPECT_NE(nan, nan);
}

TEST(HostMemoryManager, GuardsWhenAskedTo) {
  const Buffer buffer(100);
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto end = reinterpret_cast<uintptr_t>(buffer.data()) + 100;
  EXPECT_EQ(end % page == 0, isSet("FL_CHECK", "guard"));
}

// Counts what it is asked for.
class CountingManager : public MemoryManager {
 public:
  void* allocate(size_t bytes) override {
    ++live;
    return inner_->allocate(bytes);
  }
  void deallocate(void* pointer, size_t bytes) override {
    --live;
    poisoned += isPoison(pointer, bytes);
    inner_->deallocate(pointer, bytes);
  }
  void release() override { inner_->release(); }
  MemoryStats stats() const override { return inner_->stats(); }
  int live = 0, poisoned = 0;

 private:
  std::unique_ptr<MemoryManager> inner_ = makeCachingMemoryManager();
};

TEST(HostMemoryManager, BuffersReturnToTheManagerThatMadeThem) {
  const std::shared_ptr<MemoryManager> before = hostMemoryManager();
  const auto counting = std::make_shared<CountingManager>();
  setHostMemoryManager(counting);
  auto buffer = std::make_shared<Buffer>(100);
  setHostMemoryManager(before);
  std::memset(buffer->data(), 1, 100);
  Buffer other(100);
  EXPECT_EQ(counting->live, 1);
  EXPECT_EQ(buffer->bytes(), 100u);
  buffer.reset();
  EXPECT_EQ(counting->live, 0);
  EXPECT_EQ(counting->poisoned, isSet("FL_POISON", "1")) << "what is given back";
  EXPECT_THROW(setHostMemoryManager(nullptr), std::invalid_argument);
  EXPECT_EQ(hostMemoryManager(), before);
}

}  // namespace
}  // namespace fl::runtime
