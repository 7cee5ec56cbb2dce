// When computation happens, and on which device.
#pragma once

#include <iostream>
#include <unordered_set>
#include <vector>

#include "fl/tensor/Device.h"
#include "fl/tensor/DeviceType.h"
#include "fl/tensor/Stream.h"
#include "fl/tensor/TensorBase.h"

namespace fl {

// Waits until all recorded work of all threads is done.
void sync();
// The same for a device, given by its number among those of the default type, for the active
// devices of some types, or for devices. Throws std::runtime_error if there is none.
void sync(const int deviceId);
void sync(const std::unordered_set<DeviceType>& types);
void sync(const std::unordered_set<const Device*>& devices);

// What comes next on the first starts after what is now on the second: evaluates the tensors whose
// streams are waited on, then orders the streams.
void relativeSync(const Stream& wait, const std::vector<const Tensor*>& waitOns);
void relativeSync(const Stream& wait, const std::vector<Tensor>& waitOns);
void relativeSync(const std::vector<Tensor>& waits, const Stream& waitOn);

// Ends the pending segment; does not block.
void eval(Tensor& tensor);

// The active device of the default type, by number. Throws std::runtime_error if there is none.
int getDevice();
void setDevice(const int deviceId);
int getDeviceCount();

namespace detail {

// The default backend's memory manager: prints what it holds; writes a line for each block that it
// hands out and gets back to a stream (standard error until it is set), `interval` lines at a time,
// while logging is on. The interval must not be 0.
void getMemMgrInfo(const char* msg, const int deviceId, std::ostream* ostream = &std::cout);
void setMemMgrLogStream(std::ostream* stream);
void setMemMgrLoggingEnabled(const bool enabled);
void setMemMgrFlushInterval(const size_t interval);

}  // namespace detail
}  // namespace fl
