#include "fl/runtime/MemoryManager.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <limits>
#include <mutex>
#include <new>
#include <unordered_set>
#include <utility>
#include <vector>

#include "fl/base/Error.h"
#include "fl/base/Flags.h"
#include "fl/base/ForkSafeMutex.h"

#if defined(__SANITIZE_ADDRESS__)
#define FL_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FL_ADDRESS_SANITIZER 1
#endif
#endif
#ifdef FL_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace fl::runtime {

namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kLargest = std::numeric_limits<size_t>::max() / 4;
constexpr size_t kHugePage = size_t{1} << 21;
// From here on, the part of the last huge page that nobody uses is small.
constexpr size_t kHugeFrom = 4 * kHugePage;
// More than a process can have.
constexpr size_t kAddressSpace = size_t{1} << 47;

size_t roundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// A block of the system, whole units of the alignment; null if there is none. Large ones ask for
// huge pages: with small ones, a walk across memory spends most of its time on finding pages.
void* systemAllocate(size_t bytes) {
  if (bytes >= kAddressSpace) {
    return nullptr;
  }
  if (bytes < kHugeFrom) {
    return std::aligned_alloc(kAlignment, bytes);
  }
  const size_t size = roundUp(bytes, kHugePage);
  void* block = std::aligned_alloc(kHugePage, size);
  if (block != nullptr) {
    madvise(block, size, MADV_HUGEPAGE);  // a hint: small pages will do
  }
  return block;
}

void poison([[maybe_unused]] void* block, [[maybe_unused]] size_t bytes) {
#ifdef FL_ADDRESS_SANITIZER
  __asan_poison_memory_region(block, bytes);
#endif
}

void unpoison([[maybe_unused]] void* block, [[maybe_unused]] size_t bytes) {
#ifdef FL_ADDRESS_SANITIZER
  __asan_unpoison_memory_region(block, bytes);
#endif
}

// Blocks of one size: four sizes between neighbouring powers of two, so that a block is at most a
// quarter larger than asked for (below 256 bytes: one more unit of 64).
struct SizeClass {
  size_t bytes;
  size_t index;
};

SizeClass sizeClass(size_t bytes) {
  const size_t wanted = std::max(bytes, kAlignment);
  const int power = std::bit_width(wanted - 1) - 1;  // 2^power < wanted <= 2^(power + 1)
  const size_t step = std::max<size_t>(kAlignment, size_t{1} << (power - 2));
  const size_t rounded = roundUp(wanted, step);
  return {rounded, static_cast<size_t>(power) * 4 + (rounded - (size_t{1} << power)) / step};
}

// Keeps the books of a manager; not thread-safe.
class Accounts {
 public:
  void take(size_t bytes) {
    ++stats_.allocations;
    stats_.liveBytes += bytes;
    stats_.peakBytes = std::max(stats_.peakBytes, stats_.liveBytes + stats_.cachedBytes);
  }
  void giveBack(size_t bytes) { stats_.liveBytes -= bytes; }
  void cache(size_t bytes) { stats_.cachedBytes += bytes; }
  void uncache(size_t bytes) { stats_.cachedBytes -= bytes; }
  const MemoryStats& stats() const { return stats_; }

 private:
  MemoryStats stats_;
};

class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::string message = "no memory") : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  const std::string message_;
};

class CachingMemoryManager final : public MemoryManager {
 public:
  ~CachingMemoryManager() override { release(); }

  void* allocate(size_t bytes) override {
    if (bytes > kLargest) {
      throw OutOfMemory();
    }
    const SizeClass size = sizeClass(bytes);
    std::lock_guard lock(mutex_);
    void* block = takeCached(size);
    if (block == nullptr) {
      block = takeFromSystem(size);
    }
    accounts_.take(size.bytes);
    unpoison(block, bytes);
    return block;
  }

  void deallocate(void* pointer, size_t bytes) override {
    const SizeClass size = sizeClass(bytes);
    poison(pointer, size.bytes);
    std::lock_guard lock(mutex_);
    free_[size.index].push_back({pointer, size.bytes});
    accounts_.giveBack(size.bytes);
    accounts_.cache(size.bytes);
  }

  void release() override {
    std::lock_guard lock(mutex_);
    for (std::vector<Block>& blocks : free_) {
      for (const Block& block : blocks) {
        unpoison(block.pointer, block.bytes);
        std::free(block.pointer);
        accounts_.uncache(block.bytes);
      }
      blocks.clear();
    }
  }

  MemoryStats stats() const override {
    std::lock_guard lock(mutex_);
    return accounts_.stats();
  }

 private:
  struct Block {
    void* pointer;
    size_t bytes;
  };

  void* takeCached(SizeClass size) {
    std::vector<Block>& blocks = free_[size.index];
    if (blocks.empty()) {
      return nullptr;
    }
    void* block = blocks.back().pointer;
    blocks.pop_back();
    accounts_.uncache(size.bytes);
    return block;
  }

  void* takeFromSystem(SizeClass size) {
    void* block = systemAllocate(size.bytes);
    if (block == nullptr) {
      throw OutOfMemory();
    }
    poison(block, size.bytes);
    return block;
  }

  mutable ForkSafeMutex mutex_;
  std::array<std::vector<Block>, 64 * 4> free_;
  Accounts accounts_;
};

class DefaultMemoryManager final : public MemoryManager {
 public:
  void* allocate(size_t bytes) override {
    void* block = bytes > kLargest ? nullptr : systemAllocate(blockBytes(bytes));
    if (block == nullptr) {
      throw OutOfMemory();
    }
    std::lock_guard lock(mutex_);
    accounts_.take(blockBytes(bytes));
    return block;
  }

  void deallocate(void* pointer, size_t bytes) override {
    std::free(pointer);
    std::lock_guard lock(mutex_);
    accounts_.giveBack(blockBytes(bytes));
  }

  void release() override {}

  MemoryStats stats() const override {
    std::lock_guard lock(mutex_);
    return accounts_.stats();
  }

 private:
  static size_t blockBytes(size_t bytes) { return roundUp(std::max<size_t>(bytes, 1), kAlignment); }

  mutable ForkSafeMutex mutex_;
  Accounts accounts_;
};

class GuardMemoryManager final : public MemoryManager {
 public:
  explicit GuardMemoryManager(Guard guard) : guard_(guard) {}

  void* allocate(size_t bytes) override {
    std::lock_guard lock(mutex_);
    const size_t pages = pageBytes(bytes), live = accounts_.stats().liveBytes;
    if (bytes > kLargest || live + pages > memory_) {
      throw OutOfMemory();
    }
    void* block = guarded_ < kMostGuardedBlocks ? map(bytes) : nullptr;
    if (block != nullptr) {
      ++guarded_;
    } else if ((block = systemAllocate(pages)) != nullptr) {
      unguarded_.insert(block);
    } else {
      throw OutOfMemory();
    }
    accounts_.take(pages);
    return block;
  }

  void deallocate(void* pointer, size_t bytes) override {
    const size_t pages = pageBytes(bytes);
    std::lock_guard lock(mutex_);
    accounts_.giveBack(pages);
    if (unguarded_.erase(pointer) > 0) {
      std::free(pointer);
      return;
    }
    const size_t before = guard_ == Guard::End ? pages - bytes : page_;
    munmap(static_cast<char*>(pointer) - before, pages + page_);
    --guarded_;
  }

  void release() override {}

  MemoryStats stats() const override {
    std::lock_guard lock(mutex_);
    return accounts_.stats();
  }

 private:
  size_t pageBytes(size_t bytes) const { return roundUp(std::max<size_t>(bytes, 1), page_); }

  // A guarded block; null if there is none. The pages count as used before they are touched, so
  // that the system refuses what it does not have, rather than killing who writes to it.
  void* map(size_t bytes) const {
    const size_t pages = pageBytes(bytes);
    void* mapped = mmap(nullptr, pages + page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
      return nullptr;
    }
    char* usable = static_cast<char*>(mapped) + (guard_ == Guard::Begin ? page_ : 0);
    if (mprotect(usable, pages, PROT_READ | PROT_WRITE) != 0) {
      munmap(mapped, pages + page_);
      return nullptr;
    }
    return usable + (guard_ == Guard::End ? pages - bytes : 0);
  }

  const Guard guard_;
  const size_t page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t memory_ = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * page_;
  mutable ForkSafeMutex mutex_;
  size_t guarded_ = 0;                   // live blocks
  std::unordered_set<void*> unguarded_;  // the others
  Accounts accounts_;
};

class PoisonMemoryManager final : public MemoryManager {
 public:
  void* allocate(size_t bytes) override {
    return std::memset(inner_.allocate(bytes), kPoison, bytes);
  }
  void deallocate(void* pointer, size_t bytes) override {
    std::memset(pointer, kPoison, bytes);
    inner_.deallocate(pointer, bytes);
  }
  void release() override { inner_.release(); }
  MemoryStats stats() const override { return inner_.stats(); }

 private:
  CachingMemoryManager inner_;
};

// The manager that FL_CHECK asks for.
std::shared_ptr<MemoryManager> makeHostMemoryManager() {
  if (flags().check == "poison") {
    return makePoisonMemoryManager();
  }
  if (flags().check == "guard" || flags().check == "guard-begin") {
    return makeGuardMemoryManager(flags().check == "guard" ? Guard::End : Guard::Begin);
  }
  return makeCachingMemoryManager();
}

// Never destroyed: buffers in static objects may outlive it.
struct Host {
  ForkSafeMutex mutex;
  std::shared_ptr<MemoryManager> manager = makeHostMemoryManager();
};

Host& host() {
  static auto* instance = new Host;
  return *instance;
}

}  // namespace

std::unique_ptr<MemoryManager> makeCachingMemoryManager() {
  return std::make_unique<CachingMemoryManager>();
}

std::unique_ptr<MemoryManager> makeDefaultMemoryManager() {
  return std::make_unique<DefaultMemoryManager>();
}

std::unique_ptr<MemoryManager> makeGuardMemoryManager(Guard guard) {
  return std::make_unique<GuardMemoryManager>(guard);
}

std::unique_ptr<MemoryManager> makePoisonMemoryManager() {
  return std::make_unique<PoisonMemoryManager>();
}

std::shared_ptr<MemoryManager> hostMemoryManager() {
  Host& all = host();
  std::lock_guard lock(all.mutex);
  return all.manager;
}

namespace {
std::atomic<size_t>& memoryBudget() {
  static std::atomic<size_t> bytes =
      static_cast<size_t>(Flags::toInt("FL_MEMORY_BUDGET", flags().memoryBudget));
  return bytes;
}
}  // namespace

void setMemoryBudget(size_t bytes) { memoryBudget() = bytes; }
size_t getMemoryBudget() { return memoryBudget(); }

void setHostMemoryManager(std::shared_ptr<MemoryManager> manager) {
  FL_USER_CHECK(manager != nullptr, "setHostMemoryManager: the manager must not be null");
  Host& all = host();
  std::lock_guard lock(all.mutex);
  all.manager.swap(manager);
}

namespace {

class MemoryLog {
 public:
  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }

  void add(const char* event, const void* block, size_t bytes) {
    std::lock_guard lock(mutex_);
    pending_ += detail::concat(event, " ", block, " ", bytes, "\n");
    if (++lines_ >= interval_) {
      write();
    }
  }

  void setStream(std::ostream* stream) {
    std::lock_guard lock(mutex_);
    write();
    stream_ = stream ? stream : &std::cerr;
  }

  void setEnabled(bool enabled) {
    std::lock_guard lock(mutex_);
    write();
    enabled_ = enabled;
  }

  void setInterval(size_t interval) {
    std::lock_guard lock(mutex_);
    interval_ = interval;
  }

 private:
  void write() {
    *stream_ << pending_ << std::flush;
    pending_.clear();
    lines_ = 0;
  }

  std::mutex mutex_;
  std::atomic<bool> enabled_ = false;
  std::ostream* stream_ = &std::cerr;
  size_t interval_ = 50;
  size_t lines_ = 0;
  std::string pending_;
};

// Never destroyed, as buffers in static objects may outlive it.
MemoryLog& memoryLog() {
  static auto* log = new MemoryLog;
  return *log;
}

}  // namespace

void setMemoryLogStream(std::ostream* stream) { memoryLog().setStream(stream); }
void setMemoryLogging(bool enabled) { memoryLog().setEnabled(enabled); }
void setMemoryLogInterval(size_t interval) { memoryLog().setInterval(interval); }

// All buffers, for those who run out of memory.
class LiveBuffers {
 public:
  struct Live {
    size_t bytes;
    BufferOrigin origin;
  };

  void add(Buffer* buffer) {
    std::lock_guard lock(mutex_);
    buffer->next_ = first_;
    if (first_) {
      first_->previous_ = buffer;
    }
    first_ = buffer;
  }

  void remove(Buffer* buffer) {
    std::lock_guard lock(mutex_);
    (buffer->previous_ ? buffer->previous_->next_ : first_) = buffer->next_;
    if (buffer->next_) {
      buffer->next_->previous_ = buffer->previous_;
    }
  }

  std::vector<Live> largest(size_t count) const {
    std::vector<Live> all;
    {
      std::lock_guard lock(mutex_);
      for (const Buffer* buffer = first_; buffer; buffer = buffer->next_) {
        all.push_back({buffer->bytes(), buffer->origin_});
      }
    }
    std::ranges::stable_sort(all, std::greater(), &Live::bytes);
    all.resize(std::min(all.size(), count));
    return all;
  }

 private:
  mutable ForkSafeMutex mutex_;
  Buffer* first_ = nullptr;
};

namespace {

// Never destroyed, as buffers in static objects may outlive it.
LiveBuffers& liveBuffers() {
  static auto* buffers = new LiveBuffers;
  return *buffers;
}

std::string describe(const char* what, const CallSite& site) {
  const std::string where = site.toString();
  return detail::concat(what, where.empty() ? "" : " at ", where);
}

std::string describeLack(const MemoryManager& manager, size_t bytes, const BufferOrigin& origin) {
  constexpr size_t kTold = 10;
  const MemoryStats stats = manager.stats();
  const auto free =
      static_cast<size_t>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::string text = detail::concat(
      detail::withCallSite(detail::concat("host memory: ", bytes, " bytes cannot be had")),
      "\nThey are for ", describe(origin.what, origin.site), "; ", stats.liveBytes, " are in use, ",
      stats.cachedBytes, " kept for reuse, ", free, " free in the system. The largest in use:");
  for (const LiveBuffers::Live& live : liveBuffers().largest(kTold)) {
    text += detail::concat("\n  ", live.bytes, " bytes of ",
                           describe(live.origin.what, live.origin.site));
  }
  return text;
}

void* allocateFor(MemoryManager& manager, size_t bytes, const BufferOrigin& origin) {
  try {
    return manager.allocate(bytes);
  } catch (const std::bad_alloc&) {
    manager.release();
  }
  try {
    return manager.allocate(bytes);
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(describeLack(manager, bytes, origin));
  }
}

}  // namespace

Buffer::Buffer(std::shared_ptr<MemoryManager> manager, size_t bytes, const BufferOrigin& origin)
    : MemoryBlock(allocateFor(*manager, bytes, origin), bytes),
      manager_(std::move(manager)),
      origin_(origin) {
  if (memoryLog().enabled()) {
    memoryLog().add("alloc", data(), bytes);
  }
  liveBuffers().add(this);  // last: what throws before it leaves no trace
}

Buffer::~Buffer() {
  liveBuffers().remove(this);
  if (memoryLog().enabled()) {
    memoryLog().add("free", data(), bytes());
  }
  manager_->deallocate(data(), bytes());
}

std::string describeHostMemory() {
  const MemoryStats stats = hostMemoryManager()->stats();
  return detail::concat("host memory: ", stats.liveBytes, " B in use, ", stats.cachedBytes,
                        " B kept for reuse, ", stats.peakBytes, " B at most, ", stats.allocations,
                        " allocations");
}

MemoryBlockPtr makeBlock(const void* data, size_t bytes) {
  auto block = std::make_shared<Buffer>(bytes);
  if (data && bytes > 0) {
    std::memcpy(block->data(), data, bytes);
  }
  return block;
}

}  // namespace fl::runtime
