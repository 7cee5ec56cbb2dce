// A caching memory manager on host memory that is counted.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "fl/base/Flags.h"
#include "fl/runtime/CachingMemoryManager.h"
#include "fl/runtime/MemoryManagerInstaller.h"

namespace fl::testing {

inline constexpr size_t kMB = size_t{1} << 20;

// Host memory that is counted.
struct CountedDevice {
  CountedDevice() {
    functions->getActiveDeviceId = [this] { return active; };
    functions->getMaxMemorySize = [this](int) { return memory; };
  }
  // Once the other functions are set.
  void count() {
    functions->nativeAlloc = [this, native = functions->nativeAlloc](size_t bytes) {
      void* block = native(bytes);
      std::lock_guard lock(mutex);
      ++allocations;
      held += sizes[block] = bytes;
      return block;
    };
    functions->nativeFree = [this, native = functions->nativeFree](void* block) {
      {
        std::lock_guard lock(mutex);
        ++frees;
        held -= sizes.extract(block).mapped();
      }
      native(block);
    };
    functions->nativeDiscard = [this, native = functions->nativeDiscard](void* block,
                                                                         size_t bytes) {
      discarded += bytes;
      native(block, bytes);
    };
  }

  const std::shared_ptr<MemoryManagerDeviceInterface> functions =
      std::make_shared<MemoryManagerDeviceInterface>();
  int active = 0;
  size_t memory = size_t{1} << 40;
  std::mutex mutex;
  std::map<void*, size_t> sizes;
  size_t allocations = 0, frees = 0, held = 0, discarded = 0;
};

class CachingManager : public ::testing::Test {
 protected:
  CachingManager() {
    flags().memoryDecay = "0";  // what is unused goes when a test says so
    MemoryManagerInstaller{manager_};
    device_.count();
  }

  void* take(size_t bytes, bool userLock = false) {
    Dim dims = static_cast<Dim>(bytes);
    return manager_->alloc(userLock, 1, &dims, 1);
  }
  void giveBack(void* block) { manager_->unlock(block, false); }
  // All at once, then all back.
  void cycle(const std::vector<size_t>& sizes) {
    std::vector<void*> blocks;
    for (const size_t bytes : sizes) {
      blocks.push_back(take(bytes));
    }
    std::ranges::for_each(blocks, [this](void* block) { giveBack(block); });
  }

  // As the thread does after some time.
  void pass() {
    manager_->giveBackUnused();
    manager_->giveBackUnused();
  }

  CountedDevice device_;
  const std::shared_ptr<CachingMemoryManager> manager_ =
      std::make_shared<CachingMemoryManager>(1, device_.functions);
};

}  // namespace fl::testing
