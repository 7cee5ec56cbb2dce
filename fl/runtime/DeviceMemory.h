// Memory that the plans of a device run in: the host's, or the device's own, which the host cannot
// read (MemoryBlock::onHost()).
//
// What a device does with its memory may be put off. It happens in the order of these calls and of
// the runs of plans, whichever threads make them; finish() waits for it. All may be called from any
// thread.
#pragma once

#include <span>
#include <string>

#include "fl/runtime/MemoryManager.h"

namespace fl::runtime {

// Of a buffer.
struct Bytes {
  int64_t begin;
  int64_t end;
};
constexpr int64_t kCopyBytes = 1 << 18;  // worth a thread

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  // Throws std::bad_alloc as Buffer does.
  virtual MemoryBlockPtr allocate(size_t bytes, const BufferOrigin& origin = {}) = 0;
  // On the host, for what the device moves there and back: nobody else uses it.
  virtual MemoryBlockPtr allocateOnHost(size_t bytes);
  // Whether plans may use the block where it lies.
  virtual bool has(const MemoryBlock& block) const { return block.memory() == this; }
  // Copies runs of one block to the same places of another; there is at least one.
  virtual void copy(void* to, const void* from, std::span<const Bytes> runs) = 0;
  virtual void fill(void* memory, unsigned char byte, size_t bytes) = 0;
  virtual void finish() = 0;
  virtual std::string name() const = 0;

  // A block with a copy of elements that lie on the host; uninitialised if `data` is null.
  MemoryBlockPtr make(const void* data, size_t bytes);
  // A copy of a block of other memory. It is kept with the block when it is asked for again.
  virtual MemoryBlockPtr bring(const MemoryBlockPtr& block);
};

DeviceMemory& hostMemory();

}  // namespace fl::runtime
