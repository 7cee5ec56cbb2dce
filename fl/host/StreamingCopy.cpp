#include "fl/host/StreamingCopy.h"

#include <immintrin.h>

#include <cstring>

namespace fl::host {

void copyRun(void* to, const void* from, int64_t bytes, bool streams) {
  constexpr int64_t kVector = sizeof(__m128i);
  if (!streams || reinterpret_cast<uintptr_t>(to) % kVector != 0 || bytes % kVector != 0) {
    std::memcpy(to, from, bytes);
    return;
  }
  auto* target = static_cast<__m128i*>(to);
  const auto* source = static_cast<const __m128i*>(from);
  for (int64_t i = 0; i < bytes / kVector; ++i) {
    _mm_stream_si128(target + i, _mm_loadu_si128(source + i));
  }
}

void finishCopies(bool streams) {
  if (streams) {
    _mm_sfence();
  }
}

bool isStreamed(int64_t bytes) { return bytes >= int64_t{24} << 20; }

}  // namespace fl::host
