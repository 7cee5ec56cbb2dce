// Copies to results that no cache holds, whose lines need not be read before they are written.
#pragma once

#include <cstdint>

namespace fl::tile {

// Copies a run; around the caches if `streams`, where it is aligned.
void copyRun(void* to, const void* from, int64_t bytes, bool streams);
// Before a thread hands over what it copied so.
void finishCopies(bool streams);
// Whether a result of so many bytes is better written around the caches.
bool isStreamed(int64_t bytes);

}  // namespace fl::tile
