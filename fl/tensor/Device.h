// Devices as programs see them: their streams, and which of a type is active. What runs on them is
// the backends' matter (fl/runtime/Device.h).
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fl/tensor/Stream.h"

namespace fl {

enum class DeviceType { x64, CUDA };
inline constexpr DeviceType kDefaultDeviceType = DeviceType::x64;
// The one CPU.
inline constexpr int kX64DeviceId = 0;

std::string deviceTypeToString(const DeviceType type);
std::ostream& operator<<(std::ostream& os, const DeviceType& type);
const std::unordered_set<DeviceType>& getDeviceTypes();

class Device {
 public:
  Device() = default;
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual DeviceType type() const = 0;
  // Its number among the devices of its type.
  virtual int nativeId() const = 0;
  const std::unordered_set<std::shared_ptr<const Stream>>& getStreams() const { return streams_; }
  // Throws std::invalid_argument for another device's stream.
  void addStream(std::shared_ptr<const Stream> stream);
  // Waits until everything on its streams is done.
  void sync() const;
  // Makes it the active device of its type on this thread, then calls the callbacks with its id.
  void setActive() const;
  void addSetActiveCallback(std::function<void(int)> callback);

  // This device as a T; throws std::invalid_argument if it is none.
  template <typename T>
  const T& impl() const {
    checkType(T::type);
    return static_cast<const T&>(*this);
  }
  template <typename T>
  T& impl() {
    checkType(T::type);
    return static_cast<T&>(*this);
  }

 protected:
  virtual void setActiveImpl() const = 0;

 private:
  void checkType(DeviceType wanted) const;
  std::unordered_set<std::shared_ptr<const Stream>> streams_;
  std::vector<std::function<void(int)>> callbacks_;
};

// For a class that states its DeviceType as `type`.
template <typename Derived>
class DeviceTrait : public Device {
 public:
  DeviceType type() const override { return Derived::type; }
};

class X64Device : public DeviceTrait<X64Device> {
 public:
  static constexpr DeviceType type = DeviceType::x64;
  X64Device();
  int nativeId() const override { return kX64DeviceId; }

 protected:
  void setActiveImpl() const override {}
};

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
  const std::vector<std::unique_ptr<Device>>& devices(const DeviceType type) const;

  std::unordered_map<DeviceType, std::vector<std::unique_ptr<Device>>> devices_;
};

}  // namespace fl
