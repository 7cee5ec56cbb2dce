#include "fl/runtime/MemoryManager.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "fl/base/Error.h"
#include "fl/base/Flags.h"
#include "fl/base/ForkSafeMutex.h"
#include "fl/runtime/AdaptedMemoryManager.h"
#include "fl/runtime/CachingMemoryManager.h"
#include "fl/runtime/DefaultMemoryManager.h"
#include "fl/runtime/SystemMemory.h"

namespace fl::runtime {

namespace {

// Blocks with pages of their own, as a device interface hands them out.
class GuardedBlocks {
 public:
  explicit GuardedBlocks(Guard guard) : guard_(guard) {}

  void* allocate(size_t bytes) {
    if (bytes > systemMemory()) throw OutOfMemory();
    std::lock_guard lock(mutex_);
    blocks_.reserve(blocks_.size() + 1);  // so that no block is lost if it cannot be noted
    void* block = guarded_ < kMostGuardedBlocks ? map(bytes) : nullptr;
    const bool isGuarded = block != nullptr;
    if (!isGuarded && (block = systemAllocate(roundUp(bytes, kPage))) == nullptr)
      throw OutOfMemory();
    blocks_[block] = {bytes, isGuarded};
    guarded_ += isGuarded;
    return block;
  }

  void free(void* pointer) {
    std::lock_guard lock(mutex_);
    const Block block = blocks_.extract(pointer).mapped();
    guarded_ -= block.isGuarded;
    if (!block.isGuarded) return systemFree(pointer);
    const size_t pages = roundUp(block.bytes, kPage);
    const size_t before = guard_ == Guard::End ? pages - block.bytes : kPage;
    munmap(static_cast<char*>(pointer) - before, pages + kPage);
  }

 private:
  struct Block {
    size_t bytes;
    bool isGuarded;
  };

  // A guarded block; null if there is none. The pages count as used before they are touched, so
  // that the system refuses what it does not have, rather than killing who writes to it.
  void* map(size_t bytes) const {
    const size_t pages = roundUp(bytes, kPage);
    void* mapped = mmap(nullptr, pages + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    char* usable = static_cast<char*>(mapped) + (guard_ == Guard::Begin ? kPage : 0);
    if (mprotect(usable, pages, PROT_READ | PROT_WRITE) != 0) {
      munmap(mapped, pages + kPage);
      return nullptr;
    }
    return usable + (guard_ == Guard::End ? pages - bytes : 0);
  }

  const Guard guard_;
  ForkSafeMutex mutex_;
  absl::flat_hash_map<void*, Block> blocks_;
  size_t guarded_ = 0;  // blocks
};

std::unique_ptr<MemoryManager> adapted(std::shared_ptr<MemoryManagerAdapter> adapter,
                                       size_t alignment = kAlignment) {
  setDeviceFunctions(adapter);
  return std::make_unique<AdaptedMemoryManager>(std::move(adapter), alignment);
}

// The manager that FL_CHECK asks for.
std::shared_ptr<MemoryManager> makeHostMemoryManager() {
  const std::string& check = flags().check;
  if (!check.starts_with("guard")) return makeCachingMemoryManager();
  return makeGuardMemoryManager(check == "guard" ? Guard::End : Guard::Begin);
}

// Never destroyed: buffers in static objects may outlive it.
struct Host {
  ForkSafeMutex mutex;
  const std::shared_ptr<MemoryManager> first = makeHostMemoryManager();
  std::shared_ptr<MemoryManager> manager = first;
  // Of which some may have been replaced, and still have blocks.
  std::set<std::weak_ptr<MemoryManager>, std::owner_less<>> known = {first};
};

Host& host() {
  static auto* instance = new Host;
  return *instance;
}

std::atomic<size_t>& memoryBudget() {
  static std::atomic<size_t> bytes =
      static_cast<size_t>(Flags::toInt("FL_MEMORY_BUDGET", flags().memoryBudget));
  return bytes;
}

template <typename Value>
void withLog(void (MemoryManagerAdapter::*change)(Value), Value value) {
  const auto manager = hostMemoryManager();
  if (MemoryManagerAdapter* adapter = manager->adapter()) (adapter->*change)(value);
}

}  // namespace

std::unique_ptr<MemoryManager> makeCachingMemoryManager(
    std::shared_ptr<MemoryManagerDeviceInterface> functions) {
  return adapted(std::make_shared<CachingMemoryManager>(/*numDevices=*/1, std::move(functions)));
}

bool poisons() { return flags().poison == "1"; }

void MemoryManager::fill(void* memory, unsigned char byte, size_t bytes) {
  std::memset(memory, byte, bytes);
}

size_t MemoryManager::freeBytes() const { return freeSystemMemory(); }

std::unique_ptr<MemoryManager> makeGuardMemoryManager(Guard guard) {
  const auto blocks = std::make_shared<GuardedBlocks>(guard);
  auto functions = std::make_shared<MemoryManagerDeviceInterface>();
  functions->nativeAlloc = [blocks](size_t bytes) { return blocks->allocate(bytes); };
  functions->nativeFree = [blocks](void* block) { blocks->free(block); };
  return adapted(std::make_shared<DefaultMemoryManager>(/*numDevices=*/1, /*maxBuffers=*/~0U,
                                                        /*debug=*/false, std::move(functions)),
                 /*alignment=*/1);
}

std::shared_ptr<MemoryManager> hostMemoryManager() {
  std::lock_guard lock(host().mutex);
  return host().manager;
}

void setMemoryBudget(size_t bytes) { memoryBudget() = bytes; }
size_t getMemoryBudget() { return memoryBudget(); }

std::string describe(const MemoryStats& stats) {
  return detail::concat(stats.liveBytes, " B in use, ", stats.cachedBytes, " B kept for reuse, ",
                        stats.peakBytes, " B at most, ", stats.allocations, " allocations");
}

void printHostMemory(const char* message, int device, std::ostream* stream) {
  const auto manager = hostMemoryManager();
  if (auto* adapter = manager->adapter()) return adapter->printInfo(message, device, stream);
  *stream << message << "\ndevice " << device << ": " << describe(manager->stats()) << std::endl;
}

void setMemoryLogStream(std::ostream* stream) {
  withLog(&MemoryManagerAdapter::setLogStream, stream);
}
void setMemoryLogging(bool enabled) { withLog(&MemoryManagerAdapter::setLoggingEnabled, enabled); }
void setMemoryLogInterval(size_t interval) {
  withLog(&MemoryManagerAdapter::setLogFlushInterval, interval);
}

// All buffers, for those who run out of memory.
class LiveBuffers {
 public:
  struct Live {
    size_t bytes;
    BufferOrigin origin;
    bool isOfAnother;  // manager of host memory
  };

  void add(Buffer* buffer) {
    std::lock_guard lock(mutex_);
    buffer->next_ = first_;
    if (first_) first_->previous_ = buffer;
    first_ = buffer;
    bytes_.store(bytes_ + buffer->bytes(), std::memory_order_relaxed);
  }

  void remove(Buffer* buffer) {
    std::lock_guard lock(mutex_);
    (buffer->previous_ ? buffer->previous_->next_ : first_) = buffer->next_;
    if (buffer->next_) buffer->next_->previous_ = buffer->previous_;
    bytes_.store(bytes_ - buffer->bytes(), std::memory_order_relaxed);
  }

  // Those of a manager, of all of host memory if it is one of these, the largest first.
  std::vector<Live> sorted(const MemoryManager& manager) const {
    std::vector<Live> all;
    std::lock_guard lock(mutex_);
    for (const Buffer* buffer = first_; buffer; buffer = buffer->next_) {
      const bool isOfAnother = buffer->manager_.get() != &manager;
      if (!isOfAnother || (manager.isHost() && buffer->manager_->isHost()))
        all.push_back({buffer->bytes(), buffer->origin_, isOfAnother});
    }
    std::ranges::stable_sort(all, std::greater(), &Live::bytes);
    return all;
  }

  // Whether a new block of host memory can be touched, with all that was not touched yet. What is
  // free is looked at when more buffers live than a part of it sufficed for, and from time to time.
  bool canTouch(const MemoryManager& manager, const void* block, size_t bytes) {
    using Clock = std::chrono::steady_clock;
    const size_t live = bytes_ + bytes;
    const bool isLate =
        bytes >= kLarge && Clock::now() - looked_.load() > std::chrono::milliseconds(100);
    if (live <= suffices_ && !isLate) return true;
    size_t untouched = systemUntouched(block, bytes);
    if (untouched > 0) untouched += untouchedBefore();
    // Of the system's tables of pages and of the program's own.
    const size_t needed = untouched + std::min(untouched / 8, untouched / 256 + (size_t{4} << 20));
    const size_t free = manager.freeBytes();
    if (needed > free) return false;
    suffices_ = live + std::max(kLarge, (free - needed) / 4);
    looked_ = Clock::now();
    return true;
  }
  void lookAgain() { suffices_ = 0; }

 private:
  static constexpr size_t kLarge = size_t{1} << 20;

  // Of the newest, before a few that were touched.
  size_t untouchedBefore() const {
    std::lock_guard lock(mutex_);
    int looks = 512, touched = 0;
    size_t untouched = 0;
    for (const Buffer* each = first_; each && looks-- > 0 && touched < 16; each = each->next_) {
      if (!each->manager_->isHost() || each->bytes() < kPage) continue;
      const size_t bytes = systemUntouched(each->data(), each->bytes());
      untouched += bytes;
      touched += bytes == 0;
    }
    return untouched;
  }

  mutable ForkSafeMutex mutex_;
  Buffer* first_ = nullptr;
  std::atomic<size_t> bytes_ = 0, suffices_ = 0;  // the first is written under the mutex
  std::atomic<std::chrono::steady_clock::time_point> looked_;
};

namespace {

// Never destroyed, as buffers in static objects may outlive it.
LiveBuffers& liveBuffers() {
  static auto* buffers = new LiveBuffers;
  return *buffers;
}

// A manager, and of host memory all that there are.
std::set<std::shared_ptr<MemoryManager>> managersWith(std::shared_ptr<MemoryManager> manager) {
  const bool isHost = manager->isHost();
  std::set managers = {std::move(manager)};
  std::lock_guard lock(host().mutex);
  for (const auto& known : host().known)
    if (auto other = isHost ? known.lock() : nullptr) managers.insert(std::move(other));
  return managers;
}

std::string describe(const BufferOrigin& origin) {
  const std::string where = origin.site.toString();
  return detail::concat(origin.what, where.empty() ? "" : " at ", where);
}

std::string describeLack(const MemoryManager& manager, size_t bytes, const BufferOrigin& origin) {
  constexpr size_t kTold = 10;
  std::vector<LiveBuffers::Live> live = liveBuffers().sorted(manager);
  size_t inUse = 0;
  for (const LiveBuffers::Live& each : live) inUse += each.bytes;
  live.resize(std::min(live.size(), kTold));
  std::string text = detail::concat(
      detail::withCallSite(detail::concat(manager.name(), ": ", bytes, " bytes cannot be had")),
      "\nThey are for ", describe(origin), "; ", inUse, " are in use, ",
      manager.stats().cachedBytes, " kept for reuse, ",
      std::min(manager.freeBytes(), mappableMemory()), " free in the system. The largest in use:");
  for (const LiveBuffers::Live& each : live)
    text += detail::concat("\n  ", each.bytes, " bytes of ", describe(each.origin),
                           each.isOfAnother ? ", of another manager" : "");
  return text;
}

// Null if there is no memory.
void* tryToAllocate(MemoryManager& manager, size_t bytes) {
  try {
    void* block = manager.allocate(bytes);
    if (!manager.isHost() || liveBuffers().canTouch(manager, block, bytes)) return block;
    manager.deallocate(block, bytes);
    manager.release();
  } catch (const std::bad_alloc&) {
  }
  return nullptr;
}

void* allocateFor(const std::shared_ptr<MemoryManager>& manager, size_t bytes,
                  const BufferOrigin& origin) {
  if (void* block = tryToAllocate(*manager, bytes)) return block;
  for (const auto& each : managersWith(manager)) each->release();
  if (void* block = tryToAllocate(*manager, bytes)) return block;
  throw OutOfMemory(describeLack(*manager, bytes, origin));
}

}  // namespace

size_t makeCode(size_t bytes, absl::FunctionRef<size_t()> make) {
  const std::shared_ptr<MemoryManager> manager = hostMemoryManager();
  for (bool again = false;; again = true) {
    try {
      return make();
    } catch (const OutOfMemory&) {
      if (again) throw OutOfMemory(describeLack(*manager, bytes, {"code of a library"}));
    }
    for (const auto& each : managersWith(manager)) each->release();
  }
}

void addHostMemoryManager(const std::shared_ptr<MemoryManager>& manager) {
  std::lock_guard lock(host().mutex);
  host().known.insert(manager);
}

void setHostMemoryManager(std::shared_ptr<MemoryManager> manager) {
  FL_USER_CHECK(manager != nullptr, "setHostMemoryManager: the manager must not be null");
  Host& all = host();
  {
    std::lock_guard lock(all.mutex);
    std::erase_if(all.known, [](const auto& each) { return each.expired(); });
    all.known.insert(manager);
    all.manager.swap(manager);
  }
  manager->release();
  liveBuffers().lookAgain();
}

void resetHostMemoryManager() { setHostMemoryManager(host().first); }

Buffer::Buffer(std::shared_ptr<MemoryManager> manager, size_t bytes, const BufferOrigin& origin)
    : MemoryBlock(allocateFor(manager, bytes, origin), bytes),
      manager_(std::move(manager)),
      origin_(origin) {
  if (poisons()) manager_->fill(data(), kPoison, bytes);
  liveBuffers().add(this);  // last: what throws before it leaves no trace
}

Buffer::~Buffer() {
  liveBuffers().remove(this);
  if (poisons()) manager_->fill(data(), kPoison, bytes());
  manager_->deallocate(data(), bytes());
}

MemoryBlockPtr makeBlock(const void* data, size_t bytes) {
  auto block = std::make_shared<Buffer>(bytes);
  if (data && bytes > 0) std::memcpy(block->data(), data, bytes);
  return block;
}

}  // namespace fl::runtime
