#include "fl/runtime/CachingMemoryManager.h"

#include <mutex>
#include <stdexcept>
#include <utility>

#include "fl/base/Error.h"
#include "fl/runtime/AdaptedMemoryManager.h"
#include "fl/runtime/BlockCache.h"
#include "fl/runtime/MemoryManager.h"
#include "fl/runtime/SystemMemory.h"

namespace fl {

using runtime::Block;
using runtime::BlockCache;

namespace {
Block& liveBlock(const BlockCache& cache, const char* caller, const void* ptr) {
  Block* block = cache.find(ptr);
  FL_USER_CHECK(block != nullptr, "CachingMemoryManager::", caller, ": ", ptr, " is no live block");
  return *block;
}
}  // namespace

inline BlockCache& CachingMemoryManager::cache(int device) const {
  if (const auto i = static_cast<size_t>(device); i < caches_.size() && caches_[i]) {
    return *caches_[i];
  }
  throw std::runtime_error(
      detail::concat("CachingMemoryManager: device ", device, " is not managed"));
}

inline BlockCache& CachingMemoryManager::activeCache() const {
  runtime::checkDeviceFunctions(*deviceInterface);
  return cache(deviceInterface->getActiveDeviceId());
}

CachingMemoryManager::CachingMemoryManager(int numDevices,
                                           std::shared_ptr<MemoryManagerDeviceInterface> functions)
    : MemoryManagerAdapter(std::move(functions)) {
  for (int device = 0; device < numDevices; ++device) add(device);
}

CachingMemoryManager::~CachingMemoryManager() = default;

void CachingMemoryManager::initialize() {}
void CachingMemoryManager::shutdown() {
  std::lock_guard lock(mutex_);
  for (const auto& each : caches_)
    if (each) each->release();
}

void* CachingMemoryManager::alloc(bool userLock, const unsigned ndims, Dim* dims,
                                  const unsigned elSize) {
  const size_t bytes = runtime::allocationBytes(ndims, dims, elSize);
  if (bytes == 0) return nullptr;
  std::lock_guard lock(mutex_);
  Block& block = activeCache().take(bytes);
  (userLock ? block.userLock : block.managerLock) = true;
  return block.pointer;
}

size_t CachingMemoryManager::allocated(void* ptr) {
  std::lock_guard lock(mutex_);
  const Block* block = activeCache().find(ptr);
  return block ? block->bytes : 0;
}

void CachingMemoryManager::unlock(void* ptr, bool userLock) {
  if (ptr == nullptr) return;
  std::lock_guard lock(mutex_);
  BlockCache& cache = activeCache();
  Block& block = liveBlock(cache, "unlock", ptr);
  (userLock ? block.userLock : block.managerLock) = false;
  if (!block.isLocked()) cache.giveBack(block);
}

void CachingMemoryManager::signalMemoryCleanup() {
  std::lock_guard lock(mutex_);
  activeCache().release();
}

void CachingMemoryManager::printInfo(const char* msg, const int device, std::ostream* ostream) {
  std::lock_guard lock(mutex_);
  const BlockCache& of = cache(device);
  *ostream << msg << "\ndevice " << device << ": " << runtime::describe(of.stats()) << " of "
           << of.deviceBytes() << " B" << std::endl;
}

void CachingMemoryManager::userLock(const void* ptr) {
  std::lock_guard lock(mutex_);
  liveBlock(activeCache(), "userLock", ptr).userLock = true;
}

void CachingMemoryManager::userUnlock(const void* ptr) { unlock(const_cast<void*>(ptr), true); }

bool CachingMemoryManager::isUserLocked(const void* ptr) {
  std::lock_guard lock(mutex_);
  const Block* block = activeCache().find(ptr);
  return block && block->userLock;
}

float CachingMemoryManager::getMemoryPressure() {
  std::lock_guard lock(mutex_);
  const BlockCache& cache = activeCache();
  return static_cast<float>(cache.stats().liveBytes + cache.stats().cachedBytes) /
         static_cast<float>(cache.deviceBytes());
}

bool CachingMemoryManager::jitTreeExceedsMemoryPressure(size_t bytes) {
  std::lock_guard lock(mutex_);
  const BlockCache& cache = activeCache();
  return static_cast<float>(cache.stats().liveBytes + bytes) >
         deviceInterface->getMemoryPressureThreshold() * static_cast<float>(cache.deviceBytes());
}

void CachingMemoryManager::addMemoryManagement(int device) {
  std::lock_guard lock(mutex_);
  add(device);
}

void CachingMemoryManager::removeMemoryManagement(int device) {
  std::lock_guard lock(mutex_);
  const size_t live = cache(device).stats().liveBytes;
  FL_USER_CHECK(live == 0, "CachingMemoryManager::removeMemoryManagement: ", live,
                " bytes of device ", device, " are in use");
  caches_[device].reset();
}

MemoryStats CachingMemoryManager::getMemoryStats() {
  std::lock_guard lock(mutex_);
  return activeCache().stats();
}

void CachingMemoryManager::setRecyclingSizeLimit(size_t bytes) {
  std::lock_guard lock(mutex_);
  recyclingLimit_ = bytes;
}

void CachingMemoryManager::setSplitSizeLimit(size_t bytes) {
  std::lock_guard lock(mutex_);
  splitLimit_ = bytes;
}

void CachingMemoryManager::add(int device) {
  FL_USER_CHECK(device >= 0, "CachingMemoryManager: there is no device ", device);
  if (device >= static_cast<int>(caches_.size())) caches_.resize(device + 1);
  if (caches_[device] == nullptr) {
    caches_[device] =
        std::make_unique<BlockCache>(deviceInterface, device, recyclingLimit_, splitLimit_);
  }
}

}  // namespace fl
