#include "fl/runtime/AdaptedMemoryManager.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <utility>

#include "fl/base/Error.h"

namespace fl::runtime {
namespace {

uintptr_t address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

template <typename Function>
void setIfUnset(Function* function, std::type_identity_t<Function> value) {
  if (*function == nullptr) *function = std::move(value);
}

}  // namespace

AdaptedMemoryManager::AdaptedMemoryManager(std::shared_ptr<MemoryManagerAdapter> adapter,
                                           size_t alignment)
    : adapter_(std::move(adapter)),
      lowBits_(alignment - 1),
      turn_((adapter_->turns_.acquire(), nullptr), [this](void*) { adapter_->turns_.release(); }) {
  adapter_->log("initialize");
  adapter_->initialize();
}

AdaptedMemoryManager::~AdaptedMemoryManager() {
  adapter_->log("shutdown");
  adapter_->shutdown();
}

void* AdaptedMemoryManager::allocate(size_t bytes) {
  if (bytes > static_cast<size_t>(std::numeric_limits<Dim>::max())) throw OutOfMemory();
  Dim dims = static_cast<Dim>(std::max<size_t>(bytes, 1));  // nothing is asked for by null
  void* block = adapter_->alloc(/*userLock=*/false, /*ndims=*/1, &dims, /*elSize=*/1);
  if (block == nullptr) throw OutOfMemory();
  // Not even the name costs anything otherwise.
  if (adapter_->isLogging()) adapter_->log("alloc", bytes, 0, address(block));
  if ((address(block) & lowBits_) == 0) return block;
  deallocate(block, bytes);
  throwUser<std::runtime_error>("MemoryManagerAdapter::alloc: the manager gave a block at ", block,
                                ", which is not aligned to ", lowBits_ + 1, " bytes");
}

void AdaptedMemoryManager::deallocate(void* pointer, size_t bytes) {
  if (adapter_->isLogging()) adapter_->log("unlock", address(pointer), 0, bytes);
  adapter_->unlock(pointer, /*userLock=*/false);
}

void AdaptedMemoryManager::release() {
  adapter_->log("signalMemoryCleanup");
  adapter_->signalMemoryCleanup();
}

void setDeviceFunctions(const std::shared_ptr<MemoryManagerAdapter>& adapter) {
  // The functions may outlive the adapter, whose log they write to. Who calls them for it keeps it
  // alive: it must not be destroyed in here, where it is locked.
  const auto log = [known = std::weak_ptr(adapter), raw = adapter.get()](auto... values) {
    if (!known.expired()) raw->log(values...);
  };
  MemoryManagerDeviceInterface& functions = *adapter->deviceInterface;
  setIfUnset(&functions.getActiveDeviceId, [] { return 0; });
  setIfUnset(&functions.getMaxMemorySize, [](int) { return systemMemory(); });
  if (!functions.nativeAlloc) {
    setIfUnset(&functions.nativeDiscard, [log](void* block, size_t bytes) {
      log("nativeDiscard", address(block), bytes);
      systemDiscard(block, bytes);
    });
  }
  setIfUnset(&functions.nativeAlloc, [log](size_t bytes) {
    void* block = systemAllocate(bytes);
    if (block == nullptr) throw OutOfMemory();
    log("nativeAlloc", bytes, address(block));
    return block;
  });
  setIfUnset(&functions.nativeFree, [log](void* block) {
    log("nativeFree", address(block));
    systemFree(block);
  });
  const auto threshold = std::make_shared<std::atomic<float>>(1.0F);
  setIfUnset(&functions.getMemoryPressureThreshold, [threshold] { return threshold->load(); });
  setIfUnset(&functions.setMemoryPressureThreshold,
             [threshold](float value) { *threshold = value; });
}

}  // namespace fl::runtime
