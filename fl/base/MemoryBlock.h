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

// True if `holders`, whom the caller knows, are all that hold it. What others did with it before
// they let go has happened then: the copy makes sure of that, which the count alone would not.
template <typename T>
bool isHeldBy(long holders, const std::shared_ptr<T>& pointer) {
  return pointer.use_count() == holders && std::shared_ptr<T>(pointer) != nullptr;
}

}  // namespace fl
