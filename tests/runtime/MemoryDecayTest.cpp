// The thread that gives back what nobody takes (FL_MEMORY_DECAY), on host memory as it is.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <streambuf>
#include <thread>
#include <vector>

#include "fl/base/Flags.h"
#include "fl/runtime/CachingMemoryManager.h"
#include "fl/runtime/MemoryManager.h"
#include "fl/runtime/MemoryManagerInstaller.h"
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

// Of another thread it keeps the writer waiting, long enough for this one to go on.
class SlowLog : public std::streambuf {
 public:
  void awaitWrite() const {
    while (!isWritten_) std::this_thread::yield();
  }

 private:
  std::streamsize xsputn(const char*, std::streamsize count) override {
    if (std::this_thread::get_id() != owner_) {
      isWritten_ = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return count;
  }

  const std::thread::id owner_ = std::this_thread::get_id();
  std::atomic<bool> isWritten_ = false;
};

// The last owner of a manager may let go of it while the thread writes to its log.
TEST(MemoryDecay, OutlivesAManager) {
  EXPECT_EXIT(
      {
        alarm(20);
        flags().memoryDecay = "1";
        SlowLog buffer;
        std::ostream log(&buffer);
        const auto make = [] {
          return std::make_shared<CachingMemoryManager>(
              1, std::make_shared<MemoryManagerDeviceInterface>());
        };
        std::shared_ptr<CachingMemoryManager> manager = make();
        MemoryManagerInstaller(std::shared_ptr<MemoryManagerAdapter>(manager));
        manager->setLogStream(&log);
        manager->setLogFlushInterval(1);
        manager->setLoggingEnabled(true);
        Dim bytes = 4 * kMB;
        std::vector<void*> blocks(3);
        for (int i = 0; i < 3; ++i) {  // as they are taken again, they are kept
          for (void*& block : blocks) block = manager->alloc(false, 1, &bytes, 1);
          for (void* block : blocks) manager->unlock(block, false);
        }
        buffer.awaitWrite();
        manager.reset();
        make();
        _exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(MemoryDecay, IsANumber) {
  flags().memoryDecay = "soon";
  EXPECT_THROW(makeCachingMemoryManager(), std::invalid_argument);
  flags().memoryDecay = "10000";
}

}  // namespace
}  // namespace fl::runtime
