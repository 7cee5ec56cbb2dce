// The blocks that a caching memory manager has of one device: those that are in use and those that
// are kept for reuse.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "fl/runtime/CacheLimit.h"
#include "fl/runtime/MemoryManagerAdapter.h"

namespace fl::runtime {

struct Block;

struct SmallerBlock {
  using is_transparent = void;
  bool operator()(const Block* a, const Block* b) const;
  bool operator()(const Block* a, size_t bytes) const;
};
using BlocksBySize = std::set<Block*, SmallerBlock>;

// A block of the system, or a piece of one.
struct Block {
  bool isLocked() const { return managerLock || userLock; }
  bool isPiece() const { return before || after; }

  char* pointer = nullptr;
  size_t bytes = 0;
  size_t kept = 0;  // of an unused one: bytes that may have memory, the others' pages went back
  uint16_t sizeClass = 0;
  bool managerLock = false, userLock = false;
  uint64_t freedAt = 0;                // the number of blocks that were freed before it
  Block *older = this, *newer = this;  // of the kept ones of its class, by when they were freed
  BlocksBySize::node_type node;        // of a large one while it is used, which it comes back with
  Block *before = nullptr, *after = nullptr;  // neighbouring pieces
};

inline bool SmallerBlock::operator()(const Block* a, const Block* b) const {
  return a->bytes != b->bytes ? a->bytes < b->bytes : a->pointer < b->pointer;
}
inline bool SmallerBlock::operator()(const Block* a, size_t bytes) const {
  return a->bytes < bytes;
}

// Not thread-safe.
//
// Small blocks have sizes of four steps between neighbouring powers of two, and a list a size.
// Larger ones are whole pages; of those that are unused the smallest that suffices is taken, and
// split if a good part of it would be left over. Pieces that are unused grow together again. A
// piece cannot go back to the system alone, but its pages can, where the device knows how: it stays
// as addresses that count no bytes.
class BlockCache {
 public:
  BlockCache(std::shared_ptr<MemoryManagerDeviceInterface> functions, int device)
      : functions_(std::move(functions)), device_(device) {}
  ~BlockCache() { release(); }

  // A block of at least so many bytes, locked by nobody: the caller locks it. From the cache in
  // constant time for small ones, logarithmic for large ones. Throws std::bad_alloc.
  Block& take(size_t bytes);
  // Of a block that nobody locks any more. Asks for no memory.
  void giveBack(Block& block);
  // The live block that begins there, or null.
  Block* find(const void* pointer) const;
  // Gives all back to the system.
  void release() { trim(0); }

  const MemoryStats& stats() const { return stats_; }

  // Blocks of the system that are larger than this are not kept, or not split.
  size_t recyclingLimit = std::numeric_limits<size_t>::max();
  size_t splitLimit = std::numeric_limits<size_t>::max();

 private:
  // Addresses are multiples of 64; a map looks at the lowest bits of a hash.
  struct AddressHash {
    size_t operator()(const void* pointer) const {
      return __builtin_bswap64(reinterpret_cast<uintptr_t>(pointer) * 0x9e3779b97f4a7c15);
    }
  };

  // Small blocks, of up to 2^20 bytes, have four classes a power of two, below this one, which is
  // that of large ones and of pieces.
  static constexpr uint16_t kLarge = 20 * 4 + 1;

  Block* takeSmall(uint16_t sizeClass);
  Block* takeLarge(size_t bytes);
  Block& takeFromSystem(size_t bytes, uint16_t sizeClass);
  std::unique_ptr<Block> makeBlock(uint16_t sizeClass);
  Block& add(std::unique_ptr<Block> made, char* pointer, size_t bytes);
  void split(Block& block, size_t bytes, std::unique_ptr<Block> made);
  Block& merge(Block& first, Block& second);
  void trim(size_t mostCached);
  Block* oldest();
  void giveToSystem(Block& block);
  void discard(Block& block);
  void keep(Block& block);
  void unkeep(Block& block);

  const std::shared_ptr<MemoryManagerDeviceInterface> functions_;
  const int device_;
  absl::flat_hash_map<const void*, std::unique_ptr<Block>, AddressHash> blocks_;
  std::array<Block, kLarge + 1> unused_;  // by class: between the newest and the oldest kept one
  BlocksBySize large_;                    // unused ones
  uint64_t freed_ = 0;                    // blocks
  MemoryStats stats_;
  CacheLimit limit_;
};

}  // namespace fl::runtime
