// An allocator for small objects that are made and destroyed by the thousand, as the operators of a
// step are: the C library's lists per thread hold seven blocks of a size.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace fl {

// Freed blocks of one size, kept on the thread that freed them until it ends.
template <size_t kBytes>
class BlockPool {
 public:
  static void* take() {
    std::vector<void*>* const blocks = kept();
    if (!blocks || blocks->empty()) return ::operator new(kBytes);
    void* const block = blocks->back();
    blocks->pop_back();
    return block;
  }

  static void giveBack(void* block) {
    std::vector<void*>* const blocks = kept();
    if (blocks && blocks->size() < blocks->capacity()) return blocks->push_back(block);
    ::operator delete(block, kBytes);
  }

 private:
  static constexpr size_t kMostKept = 4096;

  // Null once the thread's pool is gone, and where a sanitizer has to see every free.
  static std::vector<void*>* kept() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return nullptr;
#else
    static thread_local bool gone = false;  // outlives the pool
    static thread_local BlockPool pool(&gone);
    return gone ? nullptr : &pool.blocks_;
#endif
  }

  explicit BlockPool(bool* gone) : gone_(gone) { blocks_.reserve(kMostKept); }
  ~BlockPool() {
    for (void* block : blocks_) ::operator delete(block, kBytes);
    *gone_ = true;
  }

  bool* const gone_;
  std::vector<void*> blocks_;
};

// For std::allocate_shared, which asks for one object at a time.
template <class T>
struct PooledAllocator {
  using value_type = T;
  PooledAllocator() = default;
  template <class Other>
  PooledAllocator(const PooledAllocator<Other>&) {}

  T* allocate(size_t) { return static_cast<T*>(BlockPool<sizeof(T)>::take()); }
  void deallocate(T* block, size_t) { BlockPool<sizeof(T)>::giveBack(block); }
  friend bool operator==(const PooledAllocator&, const PooledAllocator&) { return true; }
};

}  // namespace fl
