// Devices as programs see them: their streams, and which of a type is active. What runs on them is
// the backends' matter (fl/runtime/Device.h).
#pragma once

#include <functional>
#include <memory>
#include <unordered_set>
#include <vector>

#include "fl/base/CallSite.h"
#include "fl/device/DeviceType.h"
#include "fl/device/Stream.h"

namespace fl {

// Throws std::invalid_argument that names both if they differ.
void deviceImplTypeCheck(DeviceType expect, DeviceType actual);

class Device {
 public:
  Device() = default;
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual DeviceType type() const = 0;
  // Its number among the devices of its type.
  virtual int nativeId() const = 0;
  virtual const std::unordered_set<std::shared_ptr<Stream>>& getStreams() const { return streams_; }
  // Throws std::runtime_error for another device's stream, std::invalid_argument for none.
  virtual void addStream(std::shared_ptr<Stream> stream);
  // Waits until everything on its streams is done.
  virtual void sync() const;
  // Makes it the active device of its type on this thread, then calls the callbacks with its id.
  void setActive() const;
  void addSetActiveCallback(std::function<void(int)> callback);

  // This device as a T; throws std::invalid_argument if it is none.
  template <typename T>
  [[gnu::noinline]] const T& impl() const {
    FL_API_ENTRY();
    deviceImplTypeCheck(T::type, type());
    return static_cast<const T&>(*this);
  }
  template <typename T>
  [[gnu::noinline]] T& impl() {
    FL_API_ENTRY();
    deviceImplTypeCheck(T::type, type());
    return static_cast<T&>(*this);
  }

 protected:
  virtual void setActiveImpl() const = 0;

 private:
  std::unordered_set<std::shared_ptr<Stream>> streams_;
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
  int nativeId() const override;
  void setActiveImpl() const override {}
};

}  // namespace fl
