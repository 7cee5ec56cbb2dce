// The blocks that a caching memory manager has of one device: those that are in use and those that
// are kept for reuse.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "fl/runtime/CacheLimit.h"
#include "fl/runtime/MemoryManagerAdapter.h"

namespace fl::runtime {

struct Block;

using BlocksBySize = std::map<std::pair<size_t, char*>, Block*>;

// Where blocks are pieces of, and grow together: of multiples of 64 bytes, of whole pages, of more
// than a megabyte.
enum Pool : uint16_t { kFine, kPages, kLarge, kPools };

// A block of the system, or a piece of one.
struct Block {
  bool isLocked() const { return managerLock || userLock; }
  bool isPiece() const { return before || after; }
  bool growsTogether() const { return !isLocked() && sizeClass < kPools; }

  char* pointer = nullptr;
  size_t bytes = 0;
  size_t kept = 0;  // of an unused one: bytes that may have memory, the others' pages went back
  Pool pool = kLarge;
  uint16_t sizeClass = 0;  // of small ones; that of its pool otherwise
  bool managerLock = false, userLock = false;
  // The number of blocks that were freed before it, or before its largest part.
  uint64_t freedAt = 0;
  Block *older = this, *newer = this;  // of the kept ones of its class, by when they were freed
  BlocksBySize::node_type node;  // while it is not in its pool, to which it comes back with it
  Block *before = nullptr, *after = nullptr;  // neighbouring pieces
};

// Not thread-safe.
//
// Small blocks have sizes of four steps between neighbouring powers of two, and a list a size, and
// are pieces of blocks of kChunk bytes, but where pages cannot go back, as all of a chunk would
// have to be kept for one of them; those of whole pages share no page with others. Larger ones
// are whole pages. Of what is unused in a pool the smallest that suffices is taken, and split; of
// large ones if a good part would be left over. Unused pieces grow together again, small ones once
// they are no longer kept for their size. A piece cannot go back to the system alone, but its pages
// can, where the device knows how: it stays as addresses that count no bytes.
class BlockCache {
 public:
  // Blocks that are larger than the limits at any time are not kept, or not split.
  BlockCache(std::shared_ptr<MemoryManagerDeviceInterface> functions, int device,
             const size_t& recyclingLimit, const size_t& splitLimit)
      : functions_(std::move(functions)),
        device_(device),
        recyclingLimit_(recyclingLimit),
        splitLimit_(splitLimit) {}
  ~BlockCache() { release(); }

  // A block of at least so many bytes, locked by nobody: the caller locks it. From the cache in
  // constant time for small ones, logarithmic for large ones. Throws std::bad_alloc.
  Block& take(size_t bytes);
  // Of a block that nobody locks any more. Asks for no memory.
  void giveBack(Block& block);
  // The live block that begins there, or null.
  Block* find(const void* pointer) const;
  // Of what is kept since before the last call nothing stays beyond what may be kept unused;
  // whether something else does.
  bool giveBackUnused();
  bool keepsMore() const { return stats_.cachedBytes > CacheLimit::kLeast; }
  // Gives all back to the system, and forgets what was taken again.
  void release() {
    trim(0);
    limit_ = CacheLimit();
  }

  const MemoryStats& stats() const { return stats_; }
  size_t deviceBytes() const { return functions_->getMaxMemorySize(device_); }

 private:
  // Addresses are multiples of 64; a map looks at the lowest bits of a hash.
  struct AddressHash {
    size_t operator()(const void* pointer) const {
      return __builtin_bswap64(reinterpret_cast<uintptr_t>(pointer) * 0x9e3779b97f4a7c15);
    }
  };

  static constexpr size_t kChunk = size_t{2} << 20;
  // Small blocks, of up to 2^20 bytes, have four classes a power of two, after those of the pools.
  static constexpr size_t kClasses = kPools + 20 * 4 + 1;
  struct Size {
    size_t bytes;
    Pool pool;
    uint16_t sizeClass;
  };

  static Size sizeOf(size_t bytes);
  Block* takeNewest(uint16_t sizeClass);
  Block* takePiece(const Size& size);
  Block& takeFromSystem(const Size& size);
  std::unique_ptr<Block> makeBlock(Pool pool);
  Block& add(std::unique_ptr<Block> made, char* pointer, size_t bytes);
  void split(Block& block, size_t bytes, std::unique_ptr<Block> made);
  Block& merge(Block& first, Block& second);
  Block& growTogether(Block& block);
  void trim(size_t mostCached, uint64_t freedBefore = std::numeric_limits<uint64_t>::max());
  Block* oldest();
  void letGo(Block& block);
  void keep(Block& block);
  void unkeep(Block& block);

  const std::shared_ptr<MemoryManagerDeviceInterface> functions_;
  const int device_;
  const size_t &recyclingLimit_, &splitLimit_;
  absl::flat_hash_map<const void*, std::unique_ptr<Block>, AddressHash> blocks_;
  std::array<Block, kClasses> unused_;  // by class: between the newest and the oldest kept one
  std::array<BlocksBySize, kPools> pools_;
  uint64_t freed_ = 0, freedAtLastCall_ = 0;  // blocks
  MemoryStats stats_;
  CacheLimit limit_;
};

}  // namespace fl::runtime
