#include "fl/device/Device.h"

#include <ostream>
#include <stdexcept>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/device/DeviceManager.h"
#include "fl/device/SynchronousStream.h"

namespace fl {
namespace {

void (*finishCpuWork)() = nullptr;

}  // namespace

void detail::setFinishCpuWork(void (*finish)()) { finishCpuWork = finish; }

void Stream::relativeSync(const std::unordered_set<const Stream*>& waitOns) const {
  for (const Stream* waitOn : waitOns) relativeSync(*waitOn);
}

SynchronousStream::SynchronousStream()
    : SynchronousStream(
          DeviceManager::getInstance().getActiveDevice(DeviceType::x64).impl<X64Device>()) {}
void SynchronousStream::sync() const {
  if (finishCpuWork) finishCpuWork();
}
// Computations follow one another already.
void SynchronousStream::relativeSync(const SynchronousStream&) const {}

std::string deviceTypeToString(const DeviceType type) {
  return type == DeviceType::x64 ? "x64" : "CUDA";
}

std::ostream& operator<<(std::ostream& os, const DeviceType& type) {
  return os << deviceTypeToString(type);
}

const std::unordered_set<DeviceType>& getDeviceTypes() {
  static const auto& types = *new std::unordered_set<DeviceType>{DeviceType::x64, DeviceType::CUDA};
  return types;
}

void Device::addStream(std::shared_ptr<Stream> stream) {
  FL_API_ENTRY();
  FL_USER_CHECK(stream, "Device::addStream: a null stream");
  if (&stream->device() != this)
    throwUser<std::runtime_error>("Device::addStream: the stream is another device's");
  streams_.insert(std::move(stream));
}

void Device::sync() const {
  for (const auto& stream : streams_) stream->sync();
}

void Device::setActive() const {
  setActiveImpl();
  for (const auto& callback : callbacks_) callback(nativeId());
}

void Device::addSetActiveCallback(std::function<void(int)> callback) {
  callbacks_.push_back(std::move(callback));
}

void deviceImplTypeCheck(DeviceType expect, DeviceType actual) {
  FL_API_ENTRY();
  FL_USER_CHECK(expect == actual, "Device::impl: a device of ", deviceTypeToString(actual),
                " is no ", deviceTypeToString(expect));
}

X64Device::X64Device() { addStream(std::make_shared<SynchronousStream>(*this)); }

int X64Device::nativeId() const { return kX64DeviceId; }

DeviceManager::DeviceManager() {
  devices_[DeviceType::x64].push_back(std::make_unique<X64Device>());
}

DeviceManager& DeviceManager::getInstance() {
  static auto& instance = *new DeviceManager();
  return instance;
}

bool DeviceManager::isDeviceTypeAvailable(const DeviceType type) const {
  return devices_.contains(type);
}

const std::vector<std::unique_ptr<Device>>& DeviceManager::devices(const DeviceType type) const {
  const auto found = devices_.find(type);
  if (found == devices_.end())
    throwUser<std::runtime_error>("DeviceManager: no device of type ", type);
  return found->second;
}

unsigned DeviceManager::getDeviceCount(const DeviceType type) const {
  FL_API_ENTRY();
  return static_cast<unsigned>(devices(type).size());
}

std::vector<Device*> DeviceManager::getDevicesOfType(const DeviceType type) {
  FL_API_ENTRY();
  std::vector<Device*> all;
  for (const auto& device : devices(type)) all.push_back(device.get());
  return all;
}

std::vector<const Device*> DeviceManager::getDevicesOfType(const DeviceType type) const {
  FL_API_ENTRY();
  const auto all = const_cast<DeviceManager*>(this)->getDevicesOfType(type);
  return {all.begin(), all.end()};
}

Device& DeviceManager::getDevice(const DeviceType type, int id) const {
  FL_API_ENTRY();
  const auto& all = devices(type);
  if (id < 0 || id >= static_cast<int>(all.size())) {
    throwUser<std::runtime_error>("DeviceManager: no device ", id, " of type ", type,
                                  ", which has ", all.size());
  }
  return *all[id];
}

// The CPU is the only device so far, and always active.
Device& DeviceManager::getActiveDevice(const DeviceType type) const {
  FL_API_ENTRY();
  return getDevice(type, 0);
}

}  // namespace fl
