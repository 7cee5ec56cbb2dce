// The kinds of devices that programs see.
#pragma once

#include <ostream>
#include <string>
#include <unordered_set>

// What Flashlight's build defines, for programs that ask: 1 where that kind of device is supported.
#define FL_BACKEND_CPU 1
#define FL_BACKEND_CUDA 0

namespace fl {

enum class DeviceType { x64, CUDA };
inline constexpr DeviceType kDefaultDeviceType = DeviceType::x64;

std::string deviceTypeToString(const DeviceType type);
std::ostream& operator<<(std::ostream& os, const DeviceType& type);
const std::unordered_set<DeviceType>& getDeviceTypes();

}  // namespace fl
