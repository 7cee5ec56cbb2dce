// How a memory manager reaches the memory of its device.
#pragma once

#include <cstddef>
#include <functional>

namespace fl {

using GetActiveDeviceIdFn = std::function<int()>;
using GetMaxMemorySizeFn = std::function<size_t(int)>;
using NativeAllocFn = std::function<void*(size_t)>;
using NativeFreeFn = std::function<void(void*)>;
using NativeDiscardFn = std::function<void(void*, size_t)>;
using GetMemoryPressureThresholdFn = std::function<float()>;
using SetMemoryPressureThresholdFn = std::function<void(float)>;

// A MemoryManagerInstaller sets the functions that are not set when it is made: those of host
// memory, which are thread-safe, as those of a program's own must be.
struct MemoryManagerDeviceInterface {
  // 0 for the host.
  GetActiveDeviceIdFn getActiveDeviceId;
  // Bytes of the device: of the machine, or what a control group may have of it.
  GetMaxMemorySizeFn getMaxMemorySize;
  // A block of at least so many bytes, aligned to 64; microseconds, and as much again for its pages
  // when they are touched. Throws std::bad_alloc.
  NativeAllocFn nativeAlloc;
  // Of a block of nativeAlloc(); null is none.
  NativeFreeFn nativeFree;
  // Not in Flashlight, and not needed: the whole pages of so many bytes in a block go back to the
  // system, their contents are lost, their addresses stay. Set for host memory if nativeAlloc is
  // not.
  NativeDiscardFn nativeDiscard;
  // The part of getMaxMemorySize() beyond which a manager gives its cache back before it takes
  // more; 1 at first.
  GetMemoryPressureThresholdFn getMemoryPressureThreshold;
  SetMemoryPressureThresholdFn setMemoryPressureThreshold;
};

}  // namespace fl
