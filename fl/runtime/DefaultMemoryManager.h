// A memory manager without a cache.
#pragma once

#include <limits>
#include <memory>
#include <unordered_map>

#include "fl/base/ForkSafeMutex.h"
#include "fl/runtime/MemoryManagerAdapter.h"

namespace fl {

// Every block is one of the system, of exactly as many bytes as are asked for: for programs that
// look for misuse of memory, and as the least that a manager is. It has one account for all
// devices. Thread-safe.
class DefaultMemoryManager : public MemoryManagerAdapter {
 public:
  // `maxBuffers` is a limit of checkMemoryLimit(); the other numbers are Flashlight's and change
  // nothing.
  DefaultMemoryManager(int numDevices, unsigned maxBuffers, bool debug,
                       std::shared_ptr<MemoryManagerDeviceInterface> deviceInterface);

  // Asks the device how much memory it has.
  void initialize() override { setMaxMemorySize(); }
  void shutdown() override {}
  void* alloc(bool userLock, const unsigned ndims, Dim* dims, const unsigned elSize) override;
  size_t allocated(void* ptr) override;
  // Null is no block. Throws std::invalid_argument for what is no live block.
  void unlock(void* ptr, bool userLock) override;
  void signalMemoryCleanup() override {}
  void printInfo(const char* msg, const int device, std::ostream* ostream = &std::cout) override;
  // Throw as unlock() does.
  void userLock(const void* ptr) override;
  void userUnlock(const void* ptr) override { unlock(const_cast<void*>(ptr), true); }
  bool isUserLocked(const void* ptr) override;
  // 1 if a limit is reached, 0 otherwise.
  float getMemoryPressure() override { return checkMemoryLimit() ? 1.0F : 0.0F; }
  // Whether so many bytes more would exceed getMaxBytes().
  bool jitTreeExceedsMemoryPressure(size_t bytes) override;
  void addMemoryManagement(int) override {}
  void removeMemoryManagement(int) override {}
  MemoryStats getMemoryStats() override;

  // Takes the memory of the active device for getMaxBytes().
  void setMaxMemorySize();
  size_t getMaxBytes();
  unsigned getMaxBuffers() { return maxBuffers_; }
  // Whether as many bytes, or blocks, are in use as there may be.
  bool checkMemoryLimit();

 private:
  struct Block {
    size_t bytes;
    bool managerLock, userLock;
  };

  Block& liveBlock(const char* caller, const void* ptr);

  const unsigned maxBuffers_;
  mutable ForkSafeMutex mutex_;
  std::unordered_map<const void*, Block> blocks_;
  size_t maxBytes_ = std::numeric_limits<size_t>::max();
  MemoryStats stats_;
};

}  // namespace fl
