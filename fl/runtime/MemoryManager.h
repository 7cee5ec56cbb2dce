// Device memory behind a replaceable interface. Buffers return to the manager that made them.
//
// Under AddressSanitizer, what a manager keeps for reuse is poisoned: reading a freed buffer is
// caught though its memory was not given back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace fl::runtime {

// Bytes count whole blocks, rounded up as the manager does.
struct MemoryStats {
  size_t liveBytes = 0;    // handed out
  size_t cachedBytes = 0;  // kept for reuse
  size_t peakBytes = 0;    // highest live + cached
  uint64_t allocations = 0;
};

class MemoryManager {
 public:
  virtual ~MemoryManager() = default;
  // At least `bytes` bytes, 64-byte aligned and readable 64 bytes past the end; never null.
  // Throws std::bad_alloc. Thread-safe.
  virtual void* allocate(size_t bytes) = 0;
  // `bytes` is what allocate() was asked for.
  virtual void deallocate(void* pointer, size_t bytes) = 0;
  // Gives cached memory back to the system.
  virtual void release() = 0;
  virtual MemoryStats stats() const = 0;
};

// Keeps freed blocks by size class (powers of two in four steps) and gives them out again; when the
// system has no more it releases the cache and tries once more.
std::unique_ptr<MemoryManager> makeCachingMemoryManager();
// Every allocation goes to the system.
std::unique_ptr<MemoryManager> makeDefaultMemoryManager();

// The manager of host memory, caching unless replaced. Live buffers keep theirs.
std::shared_ptr<MemoryManager> hostMemoryManager();
// Throws std::invalid_argument for a null pointer.
void setHostMemoryManager(std::shared_ptr<MemoryManager> manager);

// One allocation; shared by the values that use it.
class Buffer {
 public:
  explicit Buffer(size_t bytes);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<MemoryManager> manager_;
  size_t bytes_;
  void* data_;
};
using BufferPtr = std::shared_ptr<Buffer>;

}  // namespace fl::runtime
