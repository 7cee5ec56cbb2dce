#include "fl/runtime/BlockCache.h"

#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <bit>

#include "fl/runtime/SystemMemory.h"

namespace fl::runtime {
namespace {

constexpr size_t kMost = std::numeric_limits<size_t>::max() / 4;
constexpr size_t kMostSmall = size_t{1} << 20;
constexpr int kAlignmentPower = std::countr_zero(kAlignment);

// What is left over is a block of its own then, also where it is of no use but to its neighbour.
bool isWorthSplitting(const Block& block, size_t wanted) {
  const size_t rest = block.bytes - wanted;
  return block.pool == kLarge ? rest >= std::min(kMostSmall, wanted / 4) : rest > 0;
}

}  // namespace

BlockCache::Size BlockCache::sizeOf(size_t bytes) {
  if (bytes > kMostSmall) return {roundUp(bytes, kPage), kLarge, kLarge};
  const size_t wanted = std::max(bytes, kAlignment);
  const int power = std::bit_width(wanted - 1) - 1;       // 2^power < wanted <= 2^(power + 1)
  const int step = std::max(power - 2, kAlignmentPower);  // 2^step
  const size_t steps = ((wanted - 1) >> step) + 1, size = steps << step;
  const size_t index = static_cast<size_t>(power) * 4 + steps - ((size_t{1} << power) >> step);
  return {size, size % kPage == 0 ? kPages : kFine, static_cast<uint16_t>(kPools + index)};
}

Block& BlockCache::take(size_t bytes) {
  if (bytes > kMost) throw OutOfMemory();
  const Size size = sizeOf(bytes);
  Block* block = size.pool == kLarge ? nullptr : takeNewest(size.sizeClass);
  if (block == nullptr) block = takePiece(size);
  if (block == nullptr) block = &takeFromSystem(size);
  ++stats_.allocations;
  stats_.liveBytes += block->bytes;
  stats_.peakBytes = std::max(stats_.peakBytes, stats_.liveBytes + stats_.cachedBytes);
  limit_.allocated(block->bytes, stats_.liveBytes, stats_.cachedBytes);
  ASAN_UNPOISON_MEMORY_REGION(block->pointer, bytes);
  return *block;
}

void BlockCache::giveBack(Block& freed) {
  ASAN_POISON_MEMORY_REGION(freed.pointer, freed.bytes);
  stats_.liveBytes -= freed.bytes;
  freed.kept = freed.bytes;
  freed.freedAt = freed_++;
  Block& block = freed.growsTogether() ? growTogether(freed) : freed;
  keep(block);
  limit_.freed(stats_.liveBytes, stats_.cachedBytes);
  const bool canGo = !block.isPiece() || functions_->nativeDiscard;
  if (block.bytes > recyclingLimit_ && canGo) letGo(block);
  if (stats_.cachedBytes > CacheLimit::kLeast) trim(limit_.mostCached(stats_.liveBytes));
}

Block* BlockCache::find(const void* pointer) const {
  const auto found = blocks_.find(pointer);
  return found != blocks_.end() && found->second->isLocked() ? found->second.get() : nullptr;
}

Block* BlockCache::takeNewest(uint16_t sizeClass) {
  Block* const newest = unused_[sizeClass].older;
  if (newest == &unused_[sizeClass]) return nullptr;
  unkeep(*newest);
  return newest;
}

Block* BlockCache::takePiece(const Size& size) {
  const auto found = pools_[size.pool].lower_bound({size.bytes, nullptr});
  if (found == pools_[size.pool].end()) return nullptr;
  Block* block = found->second;
  const bool splits = isWorthSplitting(*block, size.bytes);
  if (splits && size.pool == kLarge && block->bytes > splitLimit_) return nullptr;
  std::unique_ptr<Block> rest = splits ? makeBlock(size.pool) : nullptr;
  unkeep(*block);
  if (block->kept < size.bytes) limit_.took(size.bytes - block->kept);
  if (splits) split(*block, size.bytes, std::move(rest));
  block->sizeClass = size.sizeClass;
  return block;
}

Block& BlockCache::takeFromSystem(const Size& size) {
  const bool isWhole = size.pool == kLarge || !functions_->nativeDiscard;
  const size_t bytes = isWhole ? size.bytes : kChunk;
  const size_t held = stats_.liveBytes + stats_.cachedBytes;
  const double most = static_cast<double>(functions_->getMemoryPressureThreshold()) *
                      static_cast<double>(functions_->getMaxMemorySize(device_));
  const bool isShort = static_cast<double>(held + bytes) > most;
  trim(isShort ? 0 : limit_.mostCached(stats_.liveBytes + size.bytes));
  std::unique_ptr<Block> made = makeBlock(size.pool);
  std::unique_ptr<Block> rest = isWhole ? nullptr : makeBlock(size.pool);
  auto* pointer = static_cast<char*>(functions_->nativeAlloc(bytes));
  if (pointer == nullptr) throw OutOfMemory();
  limit_.took(size.bytes);
  ASAN_POISON_MEMORY_REGION(pointer, bytes);
  Block& block = add(std::move(made), pointer, bytes);
  if (rest) split(block, size.bytes, std::move(rest));
  block.sizeClass = size.sizeClass;
  return block;
}

// With all that it will need of the heap, so that nothing is lost where there is none.
std::unique_ptr<Block> BlockCache::makeBlock(Pool pool) {
  auto made = std::make_unique<Block>();
  made->sizeClass = made->pool = pool;
  made->node = pools_[pool].extract(pools_[pool].emplace().first);
  blocks_.reserve(blocks_.size() + 2);
  return made;
}

Block& BlockCache::add(std::unique_ptr<Block> made, char* pointer, size_t bytes) {
  made->pointer = pointer;
  made->bytes = bytes;
  return *(blocks_[pointer] = std::move(made));
}

void BlockCache::split(Block& block, size_t bytes, std::unique_ptr<Block> made) {
  Block& rest = add(std::move(made), block.pointer + bytes, block.bytes - bytes);
  rest.kept = std::min(rest.bytes, block.kept);
  rest.freedAt = block.freedAt;
  block.bytes = bytes;
  rest.before = &block;
  rest.after = block.after;
  if (rest.after) rest.after->before = &rest;
  block.after = &rest;
  keep(rest);
}

Block& BlockCache::merge(Block& first, Block& second) {
  if (second.bytes > first.bytes) first.freedAt = second.freedAt;
  first.bytes += second.bytes;
  first.kept += second.kept;
  first.after = second.after;
  if (first.after) first.after->before = &first;
  blocks_.erase(second.pointer);
  return first;
}

// A block of the pool, with the unused pieces beside it.
Block& BlockCache::growTogether(Block& grown) {
  Block* block = &grown;
  if (block->after && block->after->growsTogether()) {
    unkeep(*block->after);
    block = &merge(*block, *block->after);
  }
  if (block->before && block->before->growsTogether()) {
    unkeep(*block->before);
    block = &merge(*block->before, *block);
  }
  return *block;
}

void BlockCache::trim(size_t mostCached, uint64_t freedBefore) {
  while (stats_.cachedBytes > mostCached) {
    Block* block = oldest();
    if (block == nullptr || block->freedAt >= freedBefore) return;
    letGo(*block);
  }
}

bool BlockCache::giveBackUnused() {
  const size_t before = stats_.cachedBytes;
  trim(CacheLimit::kLeast, std::exchange(freedAtLastCall_, freed_));
  if (stats_.cachedBytes < before) limit_.wasUnused();
  return keepsMore();
}

// Of the kept blocks that can be let go; null if there are none.
Block* BlockCache::oldest() {
  Block* found = nullptr;
  for (Block& ends : unused_) {
    Block* block = ends.newer;
    while (block != &ends && block->isPiece() && !functions_->nativeDiscard) block = block->newer;
    if (block != &ends && (found == nullptr || block->freedAt < found->freedAt)) found = block;
  }
  return found;
}

// To the system where it is whole then; otherwise its pages, with those that it shares with what
// else is unused.
void BlockCache::letGo(Block& block) {
  unkeep(block);
  block.sizeClass = block.pool;
  limit_.gaveBack(std::exchange(block.kept, 0));
  char* const page = block.pointer - reinterpret_cast<uintptr_t>(block.pointer) % kPage;
  char* const end = page + roundUp(block.pointer + block.bytes - page, kPage);
  Block& whole = growTogether(block);
  if (!whole.isPiece()) {
    limit_.gaveBack(whole.kept);
    ASAN_UNPOISON_MEMORY_REGION(whole.pointer, whole.bytes);
    const auto node = blocks_.extract(whole.pointer);
    functions_->nativeFree(whole.pointer);
    return;
  }
  char* const from = std::max(page, whole.pointer);
  functions_->nativeDiscard(from, std::min(end, whole.pointer + whole.bytes) - from);
  keep(whole);
}

void BlockCache::keep(Block& block) {
  stats_.cachedBytes += block.kept;
  if (block.growsTogether()) {
    block.node.key() = {block.bytes, block.pointer};
    block.node.mapped() = &block;
    pools_[block.pool].insert(std::move(block.node));
  }
  if (block.kept == 0) return;
  Block* const ends = &unused_[block.sizeClass];
  Block* newer = ends;
  while (newer->older != ends && newer->older->freedAt > block.freedAt) newer = newer->older;
  block.newer = newer;
  block.older = std::exchange(newer->older, &block);
  block.older->newer = &block;
}

void BlockCache::unkeep(Block& block) {
  stats_.cachedBytes -= block.kept;
  if (block.growsTogether()) block.node = pools_[block.pool].extract({block.bytes, block.pointer});
  block.older->newer = block.newer;
  block.newer->older = block.older;
  block.older = block.newer = &block;
}

}  // namespace fl::runtime
