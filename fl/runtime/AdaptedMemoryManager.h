// A MemoryManagerAdapter as the engine asks for memory.
#pragma once

#include <memory>
#include <stdexcept>

#include "fl/runtime/MemoryManager.h"
#include "fl/runtime/SystemMemory.h"

namespace fl::runtime {

// Logs what it asks for. The adapter is initialized here, and shut down with it; another one of the
// same adapter waits for that.
class AdaptedMemoryManager final : public MemoryManager {
 public:
  // Throws std::runtime_error for a block that is not aligned to the power of two.
  explicit AdaptedMemoryManager(std::shared_ptr<MemoryManagerAdapter> adapter,
                                size_t alignment = kAlignment);
  ~AdaptedMemoryManager() override;

  void* allocate(size_t bytes) override;
  void deallocate(void* pointer, size_t bytes) override;
  void release() override;
  MemoryStats stats() const override { return adapter_->getMemoryStats(); }
  MemoryManagerAdapter* adapter() const override { return adapter_.get(); }

 private:
  const std::shared_ptr<MemoryManagerAdapter> adapter_;
  const size_t lowBits_;              // which the alignment leaves 0
  const std::shared_ptr<void> turn_;  // ends after the shutdown
};

// Sets the functions of host memory that the adapter's device interface lacks.
void setDeviceFunctions(const std::shared_ptr<MemoryManagerAdapter>& adapter);

// Throws std::runtime_error if nobody has set them.
inline void checkDeviceFunctions(const MemoryManagerDeviceInterface& functions) {
  if (!functions.getActiveDeviceId || !functions.nativeAlloc)
    throw std::runtime_error(
        "memory manager: the functions of its device are not set; a MemoryManagerInstaller sets "
        "them");
}

}  // namespace fl::runtime
