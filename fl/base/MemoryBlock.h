// Memory that holds a value's elements, shared by the values that use it. It is how values pass
// between backends and devices; fl/runtime/MemoryManager.h makes blocks.
#pragma once

#include <cstddef>
#include <memory>

namespace fl {

class MemoryBlock {
 public:
  // Whoever makes a block says in a subclass how its memory is given back.
  virtual ~MemoryBlock() = default;
  MemoryBlock(const MemoryBlock&) = delete;
  MemoryBlock& operator=(const MemoryBlock&) = delete;

  // 64-byte aligned, but under FL_CHECK=guard as its elements are.
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 protected:
  MemoryBlock(void* data, size_t bytes) : data_(data), bytes_(bytes) {}

 private:
  void* data_;
  size_t bytes_;
};
using MemoryBlockPtr = std::shared_ptr<MemoryBlock>;

// True if its `holders` are all that the caller knows of. What others did with it is over then: the
// copy waits for what they did before they let go, which the count alone does not.
template <typename T>
bool isHeldBy(long holders, const std::shared_ptr<T>& pointer) {
  return pointer.use_count() == holders && std::shared_ptr<T>(pointer) != nullptr;
}

}  // namespace fl
