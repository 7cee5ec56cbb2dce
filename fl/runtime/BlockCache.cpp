#include "fl/runtime/BlockCache.h"

#include <algorithm>
#include <bit>
#include <new>

#include "fl/runtime/SystemMemory.h"

namespace fl::runtime {
namespace {

constexpr size_t kMost = std::numeric_limits<size_t>::max() / 4;
constexpr size_t kMostSmall = size_t{1} << 20;
constexpr int kAlignmentPower = 6;
static_assert(kAlignment == size_t{1} << kAlignmentPower);

// Four sizes between neighbouring powers of two, so that a block is at most a quarter larger than
// asked for (below 256 bytes: one more unit of 64).
struct SizeClass {
  size_t bytes;
  uint16_t index;
};

SizeClass smallSize(size_t bytes) {
  const size_t wanted = std::max(bytes, kAlignment);
  const int power = std::bit_width(wanted - 1) - 1;       // 2^power < wanted <= 2^(power + 1)
  const int step = std::max(power - 2, kAlignmentPower);  // 2^step
  const size_t steps = ((wanted - 1) >> step) + 1;
  const size_t index = static_cast<size_t>(power) * 4 + steps - ((size_t{1} << power) >> step);
  return {steps << step, static_cast<uint16_t>(index)};
}

// What is left over is a block of its own then, also where it is of no use but to its neighbour.
bool isWorthSplitting(size_t bytes, size_t wanted) {
  return bytes - wanted >= std::min(kMostSmall, wanted / 4);
}

}  // namespace

Block& BlockCache::take(size_t bytes) {
  if (bytes > kMost) throw OutOfMemory();
  const SizeClass size =
      bytes <= kMostSmall ? smallSize(bytes) : SizeClass{roundUp(bytes, kPage), kLarge};
  Block* block = size.index == kLarge ? takeLarge(size.bytes) : takeSmall(size.index);
  if (block == nullptr) block = &takeFromSystem(size.bytes, size.index);
  ++stats_.allocations;
  stats_.liveBytes += block->bytes;
  stats_.peakBytes = std::max(stats_.peakBytes, stats_.liveBytes + stats_.cachedBytes);
  limit_.allocated(block->bytes, stats_.liveBytes, stats_.cachedBytes);
  unpoison(block->pointer, bytes);
  return *block;
}

void BlockCache::giveBack(Block& freed) {
  poison(freed.pointer, freed.bytes);
  stats_.liveBytes -= freed.bytes;
  freed.kept = freed.bytes;
  Block* block = &freed;
  if (block->after && !block->after->isLocked()) {
    unkeep(*block->after);
    block = &merge(*block, *block->after);
  }
  if (block->before && !block->before->isLocked()) {
    unkeep(*block->before);
    block = &merge(*block->before, *block);
  }
  keep(*block);
  limit_.freed(stats_.cachedBytes);
  if (block->bytes > recyclingLimit && !block->isPiece()) giveToSystem(*block);
  if (stats_.cachedBytes > CacheLimit::kFloor) trim(limit_.mostCached(stats_.liveBytes));
}

Block* BlockCache::find(const void* pointer) const {
  const auto found = blocks_.find(pointer);
  return found != blocks_.end() && found->second->isLocked() ? found->second.get() : nullptr;
}

Block* BlockCache::takeSmall(uint16_t sizeClass) {
  Block* const newest = unused_[sizeClass].older;
  if (newest == &unused_[sizeClass]) return nullptr;
  unkeep(*newest);
  return newest;
}

Block* BlockCache::takeLarge(size_t bytes) {
  const auto found = large_.lower_bound(bytes);
  if (found == large_.end()) return nullptr;
  Block* block = *found;
  const bool splits = isWorthSplitting(block->bytes, bytes);
  if (splits && block->bytes > splitLimit) return nullptr;
  std::unique_ptr<Block> rest = splits ? makeBlock(kLarge) : nullptr;
  unkeep(*block);
  if (block->kept < bytes) limit_.took(bytes - block->kept);
  if (splits) split(*block, bytes, std::move(rest));
  return block;
}

Block& BlockCache::takeFromSystem(size_t bytes, uint16_t sizeClass) {
  const size_t held = stats_.liveBytes + stats_.cachedBytes;
  const double most = static_cast<double>(functions_->getMemoryPressureThreshold()) *
                      static_cast<double>(functions_->getMaxMemorySize(device_));
  const bool isShort = static_cast<double>(held + bytes) > most;
  trim(isShort ? 0 : limit_.mostCached(stats_.liveBytes + bytes));
  std::unique_ptr<Block> made = makeBlock(sizeClass);
  auto* pointer = static_cast<char*>(functions_->nativeAlloc(bytes));
  if (pointer == nullptr) throw OutOfMemory();
  limit_.took(bytes);
  poison(pointer, bytes);
  return add(std::move(made), pointer, bytes);
}

// With all that it will need of the heap, so that nothing is lost where there is none.
std::unique_ptr<Block> BlockCache::makeBlock(uint16_t sizeClass) {
  auto made = std::make_unique<Block>();
  made->sizeClass = sizeClass;
  if (sizeClass == kLarge) made->node = large_.extract(large_.insert(made.get()).first);
  blocks_.reserve(blocks_.size() + 1);
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
  block.bytes = bytes;
  rest.before = &block;
  rest.after = block.after;
  if (rest.after) rest.after->before = &rest;
  block.after = &rest;
  keep(rest);
}

Block& BlockCache::merge(Block& first, Block& second) {
  first.bytes += second.bytes;
  first.kept += second.kept;
  first.after = second.after;
  if (first.after) first.after->before = &first;
  blocks_.erase(second.pointer);
  return first;
}

void BlockCache::trim(size_t mostCached) {
  while (stats_.cachedBytes > mostCached) {
    Block* block = oldest();
    if (block == nullptr) return;
    block->isPiece() ? discard(*block) : giveToSystem(*block);
  }
}

// Of the kept blocks that can go back, whole or in pages; null if there are none.
Block* BlockCache::oldest() {
  Block* found = nullptr;
  for (Block& ends : unused_) {
    Block* block = ends.newer;
    while (block != &ends && block->isPiece() && !functions_->nativeDiscard) block = block->newer;
    if (block != &ends && (found == nullptr || block->freedAt < found->freedAt)) found = block;
  }
  return found;
}

void BlockCache::giveToSystem(Block& block) {
  unkeep(block);
  limit_.gaveBack(block.kept);
  unpoison(block.pointer, block.bytes);
  const auto node = blocks_.extract(block.pointer);
  functions_->nativeFree(block.pointer);
}

void BlockCache::discard(Block& block) {
  unkeep(block);
  limit_.gaveBack(std::exchange(block.kept, 0));
  functions_->nativeDiscard(block.pointer, block.bytes);
  keep(block);
}

void BlockCache::keep(Block& block) {
  stats_.cachedBytes += block.kept;
  block.freedAt = freed_++;
  if (block.sizeClass == kLarge) {
    block.node.value() = &block;
    large_.insert(std::move(block.node));
  }
  if (block.kept == 0) return;
  Block& ends = unused_[block.sizeClass];
  block.newer = &ends;
  block.older = std::exchange(ends.older, &block);
  block.older->newer = &block;
}

void BlockCache::unkeep(Block& block) {
  stats_.cachedBytes -= block.kept;
  if (block.sizeClass == kLarge) block.node = large_.extract(&block);
  block.older->newer = block.newer;
  block.newer->older = block.older;
  block.older = block.newer = &block;
}

}  // namespace fl::runtime
