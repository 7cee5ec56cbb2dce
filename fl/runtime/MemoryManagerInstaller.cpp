#include "fl/runtime/MemoryManagerInstaller.h"

#include <atomic>
#include <utility>

#include "fl/base/Error.h"
#include "fl/runtime/AdaptedMemoryManager.h"
#include "fl/runtime/CachingMemoryManager.h"
#include "fl/runtime/MemoryManager.h"

namespace fl {
namespace {
std::atomic<bool> isUnset = false;
}  // namespace

MemoryManagerInstaller::MemoryManagerInstaller(std::shared_ptr<MemoryManagerAdapter> managerImpl)
    : impl_(std::move(managerImpl)) {
  FL_USER_CHECK(impl_ != nullptr, "MemoryManagerInstaller: the manager must not be null");
  runtime::setDeviceFunctions(impl_);
}

void MemoryManagerInstaller::setAsMemoryManager() {
  std::shared_ptr<runtime::MemoryManager> adapted = impl_->installed_.lock();
  if (adapted == nullptr) {
    adapted = std::make_shared<runtime::AdaptedMemoryManager>(impl_);
    impl_->installed_ = adapted;
  }
  runtime::setHostMemoryManager(std::move(adapted));
  isUnset = false;
}

MemoryManagerAdapter* MemoryManagerInstaller::currentlyInstalledMemoryManager() {
  return isUnset ? nullptr : runtime::hostMemoryManager()->adapter();
}

void MemoryManagerInstaller::installDefaultMemoryManager() {
  MemoryManagerInstaller(std::make_shared<CachingMemoryManager>(
                             /*numDevices=*/1, std::make_shared<MemoryManagerDeviceInterface>()))
      .setAsMemoryManager();
}

void MemoryManagerInstaller::unsetMemoryManager() {
  runtime::resetHostMemoryManager();
  isUnset = true;
}

}  // namespace fl
