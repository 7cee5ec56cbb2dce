// The thread that gives back what nobody takes (FL_MEMORY_DECAY), on host memory as it is.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <thread>

#include "fl/base/Flags.h"
#include "fl/runtime/MemoryManager.h"
#include "tests/ResidentMemory.h"

namespace fl::runtime {
namespace {

constexpr size_t kMB = size_t{1} << 20;

size_t cachedBytes() { return hostMemoryManager()->stats().cachedBytes; }

// 200 MB that were live and are kept, until nobody has looked for a while.
void use() {
  for (int i = 0; i < 3; ++i) {
    const Buffer first(100 * kMB), second(100 * kMB);
    std::memset(first.data(), 1, first.bytes());
    std::memset(second.data(), 1, second.bytes());
  }
}

// Within a minute, which is long enough for any machine.
bool awaitDecay() {
  for (int i = 0; i < 60'000 && cachedBytes() > 2 * kMB; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return cachedBytes() <= 2 * kMB;
}

TEST(MemoryDecay, GivesBackWhileTheProgramCallsNothing) {
  const size_t before = testing::residentBytes();
  flags().memoryDecay = "0";
  use();
  EXPECT_GE(cachedBytes(), 200 * kMB);
  const size_t most = testing::residentBytes();
  flags().memoryDecay = "20";
  use();
  EXPECT_TRUE(awaitDecay());
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // have memory of their own
  EXPECT_GE(most, before + 200 * kMB);
  EXPECT_LE(testing::residentBytes(), before + 10 * kMB);
#endif
  use();
  EXPECT_TRUE(awaitDecay()) << "a second time";
}

// Without the parent's thread.
TEST(MemoryDecay, GoesOnInAChild) {
  flags().memoryDecay = "20";
  use();
  EXPECT_EXIT(
      {
        use();
        _exit(awaitDecay() ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_TRUE(awaitDecay());
}

size_t threads() {
  using std::filesystem::directory_iterator;
  return static_cast<size_t>(std::distance(directory_iterator("/proc/self/task"), {}));
}

TEST(MemoryDecay, StartsNoThreadIfItNeedNot) {
  EXPECT_EXIT(
      {
        const size_t before = threads();
        flags().memoryDecay = "0";
        use();
        if (threads() != before) _exit(1);
        flags().memoryDecay = "3600000";
        hostMemoryManager()->release();
        {
          Buffer(2 * kMB);
        }
        if (threads() != before) _exit(2);
        use();
        _exit(threads() == before + 1 ? 0 : 3);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace fl::runtime
