// The memory manager that programs start with: it keeps freed blocks and gives them out again.
#pragma once

#include <limits>
#include <memory>
#include <vector>

#include "fl/base/ForkSafeMutex.h"
#include "fl/runtime/MemoryManagerAdapter.h"

namespace fl {

namespace runtime {
class BlockCache;
}

// Blocks of up to a megabyte have fixed sizes, and are pieces of larger ones where the device can
// discard pages; larger ones are split; pieces grow together again. A block is at most a quarter
// larger than asked for (below 256 bytes: one more unit of 64). Taking one from the cache and
// giving it back costs some tens of nanoseconds.
//
// What is kept is what the program was seen to take again, and an eighth of what is live at least:
// with what is live, never more than 39/32 of the most that was live lately, or 2 MiB more than
// that, but where blocks fit badly (fl/runtime/CacheLimit.h). What nobody took for
// FL_MEMORY_DECAY milliseconds, or half of them, goes back, but for 2 MiB, also while the program
// calls nothing: a thread does it, which ends when no manager keeps more. What was unused longest
// goes back first; of a block of which a piece is in use, the other pieces' pages go, and their
// addresses stay. All that is kept goes back before more is taken than the memory-pressure
// threshold allows, and when there is no memory.
//
// The device's functions run while the manager is locked, as no block on its way may be found,
// split or joined meanwhile, and log in that order: they must not call the manager. Under
// AddressSanitizer, what is kept is poisoned, so that reads of freed tensors are caught.
// Thread-safe.
class CachingMemoryManager : public MemoryManagerAdapter {
 public:
  // Devices are 0 to numDevices - 1. All functions act on the active one; they throw
  // std::runtime_error if it is none of them, and before the manager is installed.
  CachingMemoryManager(int numDevices,
                       std::shared_ptr<MemoryManagerDeviceInterface> deviceInterface);
  ~CachingMemoryManager() override;

  void initialize() override {}
  void shutdown() override;
  void* alloc(bool userLock, const unsigned ndims, Dim* dims, const unsigned elSize) override;
  size_t allocated(void* ptr) override;
  // Null is no block. Throws std::invalid_argument for what is no live block of the device.
  void unlock(void* ptr, bool userLock) override;
  void signalMemoryCleanup() override;
  void printInfo(const char* msg, const int device, std::ostream* ostream = &std::cout) override;
  // Throw as unlock() does.
  void userLock(const void* ptr) override;
  void userUnlock(const void* ptr) override { unlock(const_cast<void*>(ptr), true); }
  bool isUserLocked(const void* ptr) override;
  float getMemoryPressure() override;
  // Whether with so many bytes more, more would be live than the memory-pressure threshold allows.
  bool jitTreeExceedsMemoryPressure(size_t bytes) override;
  // A device that is managed already is none to add.
  void addMemoryManagement(int device) override;
  // Throws std::invalid_argument if blocks of the device are in use.
  void removeMemoryManagement(int device) override;
  MemoryStats getMemoryStats() override;

  // Gives back what may not be kept unused of what nobody took since the call before; whether there
  // may be more later. The thread calls it twice in FL_MEMORY_DECAY milliseconds.
  bool giveBackUnused();

  // Blocks of the system that are larger are given back when they are freed.
  void setRecyclingSizeLimit(size_t bytes);
  // Blocks that are larger are not split, and serve only what leaves less than a megabyte over.
  void setSplitSizeLimit(size_t bytes);

 private:
  runtime::BlockCache& cache(int device) const;
  runtime::BlockCache& activeCache() const;

  mutable ForkSafeMutex mutex_;
  size_t recyclingLimit_ = std::numeric_limits<size_t>::max(), splitLimit_ = recyclingLimit_;
  std::vector<std::unique_ptr<runtime::BlockCache>> caches_;  // null where no device is managed
};

}  // namespace fl
