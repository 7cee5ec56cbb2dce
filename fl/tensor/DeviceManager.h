// The devices that there are, and which of a type is active.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "fl/tensor/Device.h"

namespace fl {

// The one CPU.
inline constexpr int kX64DeviceId = 0;

class DeviceManager {
 public:
  static DeviceManager& getInstance();

  bool isDeviceTypeAvailable(const DeviceType type) const;
  // These throw std::runtime_error for a type that is not available or an id that does not exist.
  unsigned getDeviceCount(const DeviceType type) const;
  std::vector<Device*> getDevicesOfType(const DeviceType type);
  std::vector<const Device*> getDevicesOfType(const DeviceType type) const;
  Device& getDevice(const DeviceType type, int id) const;
  Device& getActiveDevice(const DeviceType type) const;

 private:
  DeviceManager();
  DeviceManager(const DeviceManager&) = delete;
  DeviceManager& operator=(const DeviceManager&) = delete;
  const std::vector<std::unique_ptr<Device>>& devices(const DeviceType type) const;

  std::unordered_map<DeviceType, std::vector<std::unique_ptr<Device>>> devices_;
};

}  // namespace fl
