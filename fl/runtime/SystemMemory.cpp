#include "fl/runtime/SystemMemory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>

#include "fl/host/ControlGroups.h"

namespace fl::runtime {
namespace {

constexpr size_t kAddressSpace = size_t{1} << 47;  // more than a process can have
constexpr size_t kMappedFrom = size_t{1} << 20;
constexpr size_t kHugePage = size_t{1} << 21;
// From here on, what lies beyond the last whole huge page is a small part.
constexpr size_t kHugeFrom = 4 * kHugePage;
// Blocks that are not mapped begin at an odd multiple of their alignment, where no page begins.
constexpr size_t kHeapAlignment = 2 * kAlignment;

bool isMapped(const void* block) { return reinterpret_cast<uintptr_t>(block) % kPage == 0; }

// The page before a mapped block holds its size.
size_t& mappedSize(char* block) { return *reinterpret_cast<size_t*>(block - kPage); }

void* map(size_t bytes) {
  const size_t alignment = bytes < kHugeFrom ? kPage : kHugePage;
  const size_t size = roundUp(bytes, kPage), reserved = size + alignment;
  void* mapped =
      mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(mapped);
  char* const block =
      reinterpret_cast<char*>(roundUp(reinterpret_cast<uintptr_t>(begin) + kPage, alignment));
  if (alignment == kHugePage) {
    const auto before = static_cast<size_t>(block - kPage - begin);
    if (before > 0) munmap(begin, before);
    if (const size_t after = alignment - kPage - before; after > 0) munmap(block + size, after);
    // With small pages, a walk across memory spends most of its time on finding them. A hint.
    madvise(block, size, MADV_HUGEPAGE);
  }
  mappedSize(block) = size;
  return block;
}

}  // namespace

void* systemAllocate(size_t bytes) {
  if (bytes >= kAddressSpace) return nullptr;
  if (bytes >= kMappedFrom) return map(bytes);
  void* heap = std::aligned_alloc(kHeapAlignment, roundUp(bytes + kAlignment, kHeapAlignment));
  return heap ? static_cast<char*>(heap) + kAlignment : nullptr;
}

void systemFree(void* block) {
  auto* begin = static_cast<char*>(block);
  if (begin == nullptr) return;
  if (!isMapped(begin)) return std::free(begin - kAlignment);
  munmap(begin - kPage, mappedSize(begin) + kPage);
}

void systemDiscard(void* begin, size_t bytes) {
  const auto first = roundUp(reinterpret_cast<uintptr_t>(begin), kPage);
  const auto last = (reinterpret_cast<uintptr_t>(begin) + bytes) / kPage * kPage;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

size_t systemUntouched(const void* begin, size_t bytes) {
  constexpr size_t kLooks = 16;
  const uintptr_t first = reinterpret_cast<uintptr_t>(begin) / kPage * kPage;
  const size_t step = roundUp(bytes / kLooks + 1, kPage);
  size_t untouched = 0;
  for (size_t at = 0; at < bytes; at += step) {
    unsigned char isResident = 1;
    mincore(reinterpret_cast<void*>(first + at), kPage, &isResident);
    if ((isResident & 1) == 0) untouched += std::min(step, bytes - at);
  }
  return untouched;
}

size_t systemMemory() {
  static const double machine = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * kPage;
  static const double bytes = std::min(machine, host::memoryLimit("/").value_or(machine));
  return static_cast<size_t>(bytes);
}

size_t freeSystemMemory() {
  return static_cast<size_t>(host::freeMemory("/").value_or(kAddressSpace));
}

size_t mappableMemory() {
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kAddressSpace;
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return limit.rlim_cur - std::min<size_t>(limit.rlim_cur, pages * kPage);
}

size_t allocationBytes(unsigned ndims, const Dim* dims, unsigned elSize) {
  size_t bytes = elSize;
  for (unsigned i = 0; i < ndims; ++i)
    if (dims[i] < 0 || __builtin_mul_overflow(bytes, static_cast<size_t>(dims[i]), &bytes))
      return std::numeric_limits<size_t>::max();
  return bytes;
}

}  // namespace fl::runtime
