#include "fl/tensor/Compute.h"

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/device/DeviceManager.h"
#include "fl/device/SynchronousStream.h"

namespace fl {

void sync() {
  FL_API_ENTRY();
  syncBackends();
}

namespace {
// Streams wait as sync() does.
const bool streamsWait = (detail::setFinishCpuWork([] { sync(); }), true);
}  // namespace

void sync(const int deviceId) {
  FL_API_ENTRY();
  DeviceManager::getInstance().getDevice(kDefaultDeviceType, deviceId).sync();
}

void sync(const std::unordered_set<DeviceType>& types) {
  FL_API_ENTRY();
  for (DeviceType type : types) DeviceManager::getInstance().getActiveDevice(type).sync();
}

void sync(const std::unordered_set<const Device*>& devices) {
  FL_API_ENTRY();
  for (const Device* device : devices) {
    FL_USER_CHECK(device, "sync: a null device");
    device->sync();
  }
}

void relativeSync(const Stream& wait, const std::vector<const Tensor*>& waitOns) {
  FL_API_ENTRY();
  for (const Tensor* tensor : waitOns) {
    FL_USER_CHECK(tensor, "relativeSync: a null tensor");
    tensor->backend().eval(tensor->value());
    wait.relativeSync(tensor->stream());
  }
}

void relativeSync(const Stream& wait, const std::vector<Tensor>& waitOns) {
  FL_API_ENTRY();
  std::vector<const Tensor*> tensors;
  for (const Tensor& tensor : waitOns) tensors.push_back(&tensor);
  relativeSync(wait, tensors);
}

void relativeSync(const std::vector<Tensor>& waits, const Stream& waitOn) {
  FL_API_ENTRY();
  for (const Tensor& tensor : waits) tensor.stream().relativeSync(waitOn);
}

void eval(Tensor& tensor) {
  FL_API_ENTRY();
  tensor.backend().eval(tensor.value());
}

int getDevice() {
  return DeviceManager::getInstance().getActiveDevice(kDefaultDeviceType).nativeId();
}

void setDevice(const int deviceId) {
  FL_API_ENTRY();
  DeviceManager::getInstance().getDevice(kDefaultDeviceType, deviceId).setActive();
}

int getDeviceCount() {
  return static_cast<int>(DeviceManager::getInstance().getDeviceCount(kDefaultDeviceType));
}

namespace detail {

void getMemMgrInfo(const char* msg, const int deviceId, std::ostream* ostream) {
  FL_API_ENTRY();
  DeviceManager::getInstance().getDevice(kDefaultDeviceType, deviceId);
  defaultTensorBackend().getMemMgrInfo(msg, deviceId, ostream);
}

void setMemMgrLogStream(std::ostream* stream) { defaultTensorBackend().setMemMgrLogStream(stream); }

void setMemMgrLoggingEnabled(const bool enabled) {
  defaultTensorBackend().setMemMgrLoggingEnabled(enabled);
}

void setMemMgrFlushInterval(const size_t interval) {
  FL_API_ENTRY();
  FL_USER_CHECK(interval > 0, "setMemMgrFlushInterval: the interval must not be 0");
  defaultTensorBackend().setMemMgrFlushInterval(interval);
}

}  // namespace detail
}  // namespace fl
