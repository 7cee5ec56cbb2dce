#include "fl/runtime/DefaultMemoryManager.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "fl/base/Error.h"
#include "fl/runtime/AdaptedMemoryManager.h"
#include "fl/runtime/MemoryManager.h"
#include "fl/runtime/SystemMemory.h"

namespace fl {

DefaultMemoryManager::DefaultMemoryManager(int, unsigned maxBuffers, bool,
                                           std::shared_ptr<MemoryManagerDeviceInterface> functions)
    : MemoryManagerAdapter(std::move(functions)), maxBuffers_(maxBuffers) {}

// The mutex is not held while the device's functions take others.
void* DefaultMemoryManager::alloc(bool userLock, const unsigned ndims, Dim* dims,
                                  const unsigned elSize) {
  const size_t bytes = runtime::allocationBytes(ndims, dims, elSize);
  if (bytes == 0) return nullptr;
  runtime::checkDeviceFunctions(*deviceInterface);
  std::unique_ptr<void, const std::function<void(void*)>&> block(
      deviceInterface->nativeAlloc(bytes), deviceInterface->nativeFree);
  if (block == nullptr) throw OutOfMemory();
  std::lock_guard lock(mutex_);
  blocks_[block.get()] = {bytes, !userLock, userLock};
  ++stats_.allocations;
  stats_.liveBytes += bytes;
  stats_.peakBytes = std::max(stats_.peakBytes, stats_.liveBytes);
  return block.release();
}

size_t DefaultMemoryManager::allocated(void* ptr) {
  std::lock_guard lock(mutex_);
  const auto found = blocks_.find(ptr);
  return found == blocks_.end() ? 0 : found->second.bytes;
}

void DefaultMemoryManager::unlock(void* ptr, bool userLock) {
  if (ptr == nullptr) return;
  {
    std::lock_guard lock(mutex_);
    Block& block = liveBlock("unlock", ptr);
    (userLock ? block.userLock : block.managerLock) = false;
    if (block.managerLock || block.userLock) return;
    stats_.liveBytes -= block.bytes;
    blocks_.erase(ptr);
  }
  deviceInterface->nativeFree(ptr);
}

void DefaultMemoryManager::printInfo(const char* msg, const int device, std::ostream* ostream) {
  *ostream << msg << "\ndevice " << device << ": " << runtime::describe(getMemoryStats()) << " of "
           << getMaxBytes() << " B" << std::endl;
}

void DefaultMemoryManager::userLock(const void* ptr) {
  std::lock_guard lock(mutex_);
  liveBlock("userLock", ptr).userLock = true;
}

bool DefaultMemoryManager::isUserLocked(const void* ptr) {
  std::lock_guard lock(mutex_);
  const auto found = blocks_.find(ptr);
  return found != blocks_.end() && found->second.userLock;
}

bool DefaultMemoryManager::jitTreeExceedsMemoryPressure(size_t bytes) {
  std::lock_guard lock(mutex_);
  return stats_.liveBytes + bytes > maxBytes_;
}

MemoryStats DefaultMemoryManager::getMemoryStats() {
  std::lock_guard lock(mutex_);
  return stats_;
}

void DefaultMemoryManager::setMaxMemorySize() {
  const size_t bytes = deviceInterface->getMaxMemorySize(deviceInterface->getActiveDeviceId());
  std::lock_guard lock(mutex_);
  maxBytes_ = bytes;
}

size_t DefaultMemoryManager::getMaxBytes() {
  std::lock_guard lock(mutex_);
  return maxBytes_;
}

bool DefaultMemoryManager::checkMemoryLimit() {
  std::lock_guard lock(mutex_);
  return stats_.liveBytes >= maxBytes_ || blocks_.size() >= maxBuffers_;
}

DefaultMemoryManager::Block& DefaultMemoryManager::liveBlock(const char* caller, const void* ptr) {
  const auto found = blocks_.find(ptr);
  FL_USER_CHECK(found != blocks_.end(), "DefaultMemoryManager::", caller, ": ", ptr,
                " is no live block");
  return found->second;
}

}  // namespace fl
