#include "fl/runtime/CachingMemoryManager.h"

#include <malloc.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "fl/base/Error.h"
#include "fl/base/Flags.h"
#include "fl/runtime/AdaptedMemoryManager.h"
#include "fl/runtime/BlockCache.h"
#include "fl/runtime/MemoryManager.h"
#include "fl/runtime/SystemMemory.h"

namespace fl {

using runtime::Block;
using runtime::BlockCache;

namespace {
using Milliseconds = std::chrono::duration<double, std::milli>;

Block& liveBlock(const BlockCache& cache, const char* caller, const void* ptr) {
  Block* block = cache.find(ptr);
  FL_USER_CHECK(block != nullptr, "CachingMemoryManager::", caller, ": ", ptr, " is no live block");
  return *block;
}

// What the thread that has managers give back what is unused shares with them; never destroyed, as
// managers may outlive static objects.
struct Decay {
  ForkSafeMutex mutex;
  std::vector<CachingMemoryManager*> managers;
  std::atomic<bool> runs = false;  // the thread
};

Decay& decay() {
  static auto& instance = *new Decay();
  return instance;
}

void runDecay(Milliseconds interval) {
  for (bool goesOn = true; goesOn;) {
    std::this_thread::sleep_for(interval);
    const std::lock_guard lock(decay().mutex);
    // First, so that whoever comes to keep more from here on starts another one, or is seen.
    decay().runs = goesOn = false;
    for (CachingMemoryManager* each : decay().managers) goesOn |= each->giveBackUnused();
    goesOn = goesOn && !decay().runs.exchange(true);
  }
  malloc_trim(0);  // what tensors were beside their elements
}

// After a manager, which the caller does not lock, came to keep more than it may unused.
void startDecay() {
  if (decay().runs) return;
  const Milliseconds time(Flags::toInt("FL_MEMORY_DECAY", flags().memoryDecay));
  if (time.count() == 0 || decay().runs.exchange(true)) return;
  // A child has no such thread.
  static const int registered = pthread_atfork(nullptr, nullptr, [] { decay().runs = false; });
  try {
    if (registered == 0) return std::thread(runDecay, time / 2).detach();
  } catch (const std::exception&) {  // there may be threads later
  }
  decay().runs = false;
}

}  // namespace

inline BlockCache& CachingMemoryManager::cache(int device) const {
  const auto i = static_cast<size_t>(device);
  if (i < caches_.size() && caches_[i]) return *caches_[i];
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
  for (int device = 0; device < numDevices; ++device)
    CachingMemoryManager::addMemoryManagement(device);
  Flags::toInt("FL_MEMORY_DECAY", flags().memoryDecay);  // may throw, as giving back may not
  const std::lock_guard lock(decay().mutex);
  decay().managers.push_back(this);
}

CachingMemoryManager::~CachingMemoryManager() {
  const std::lock_guard lock(decay().mutex);
  std::erase(decay().managers, this);
}

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
  {
    std::lock_guard lock(mutex_);
    BlockCache& cache = activeCache();
    Block& block = liveBlock(cache, "unlock", ptr);
    (userLock ? block.userLock : block.managerLock) = false;
    if (block.isLocked()) return;
    cache.giveBack(block);
    if (!cache.keepsMore()) return;
  }
  startDecay();
}

bool CachingMemoryManager::giveBackUnused() {
  std::lock_guard lock(mutex_);
  bool keepsMore = false;
  for (const auto& each : caches_)
    if (each) keepsMore |= each->giveBackUnused();
  return keepsMore;
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
  FL_USER_CHECK(device >= 0, "CachingMemoryManager: there is no device ", device);
  std::lock_guard lock(mutex_);
  if (device >= static_cast<int>(caches_.size())) caches_.resize(device + 1);
  if (caches_[device]) return;
  caches_[device] =
      std::make_unique<BlockCache>(deviceInterface, device, recyclingLimit_, splitLimit_);
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

}  // namespace fl
