// Memory that holds a value's elements, shared by the values that use it. It is how values pass
// between backends and devices; fl/runtime/MemoryManager.h makes blocks.
#pragma once

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace fl {

class MemoryBlock;
using MemoryBlockPtr = std::shared_ptr<MemoryBlock>;

class MemoryBlock : public std::enable_shared_from_this<MemoryBlock> {
 public:
  // Whoever makes a block says in a subclass how its memory is given back.
  virtual ~MemoryBlock() = default;
  MemoryBlock(const MemoryBlock&) = delete;
  MemoryBlock& operator=(const MemoryBlock&) = delete;

  // 64-byte aligned, but under FL_CHECK=guard as its elements are. Memory of a device that the host
  // cannot read has addresses of the device's: onHost() is for the host.
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

  // Tells the memories of devices apart; null is the host's.
  virtual const void* memory() const { return nullptr; }
  // The block itself where the host can read it, else a copy there, made now: what writes the
  // elements is waited for.
  virtual MemoryBlockPtr onHost() { return shared_from_this(); }
  // Takes elements that lie on the host, as many bytes as it has.
  virtual void assign(const void* elements) { std::memcpy(data_, elements, bytes_); }

  // The elements in another form, kept for all reads that want it until the elements change. It is
  // made at the second request, so that none is kept of elements that are read once; null at the
  // first, and while another thread asks.
  MemoryBlockPtr inForm(const std::string& form, const std::function<MemoryBlockPtr()>& make) const;
  // Called before the elements change, by the only one who reads or writes them then.
  void willChange();

 protected:
  MemoryBlock(void* data, size_t bytes) : data_(data), bytes_(bytes) {}

 private:
  struct Form {
    std::string name;
    MemoryBlockPtr elements;  // null until the second request
  };

  void* data_;
  size_t bytes_;
  mutable std::mutex mutex_;
  mutable std::vector<Form> forms_;
  mutable std::atomic<bool> hasForms_ = false;
};

// True if `holders`, whom the caller knows, are all that hold it. What others did with it before
// they let go has happened then, which the count alone would not make sure of.
template <typename T>
bool isHeldBy(long holders, const std::shared_ptr<T>& pointer) {
  if (pointer.use_count() != holders) return false;
#ifdef __SANITIZE_THREAD__  // knows no fences; a copy does the same
  return std::shared_ptr<T>(pointer) != nullptr;
#else
  std::atomic_thread_fence(std::memory_order_acquire);
  return true;
#endif
}

}  // namespace fl
