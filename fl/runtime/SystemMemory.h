// Memory of the machine, as memory managers take it.
#pragma once

#include <cstddef>

#include "fl/base/Error.h"
#include "fl/base/Types.h"

namespace fl::runtime {

constexpr size_t kAlignment = 64;
constexpr size_t kPage = 4096;

constexpr size_t roundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// At least `bytes` bytes aligned to 64, null if there are none. Blocks of a megabyte and more are
// mapped, so that none of them stays with the process once it is freed; large ones ask for huge
// pages and are aligned to them. Smaller ones are the heap's. Thread-safe.
void* systemAllocate(size_t bytes);
// Null is no block.
void systemFree(void* block);
// Gives the whole pages of so many bytes back, whose addresses stay; they read as zeros then.
void systemDiscard(void* begin, size_t bytes);

// Bytes of so many that have no pages yet, which they get once they are touched: by a few pages
// that lie as far from each other.
size_t systemUntouched(const void* begin, size_t bytes);

// Bytes of the machine, or what the process's control groups may have of it; and how many more may
// be touched before the system kills for lack of them, which takes it a tenth of a millisecond to
// tell.
size_t systemMemory();
size_t freeSystemMemory();
// Bytes that the process may still map, as `ulimit -v` limits it.
size_t mappableMemory();

// The product, or the largest number if it is no size.
size_t allocationBytes(unsigned ndims, const Dim* dims, unsigned elSize);

}  // namespace fl::runtime
