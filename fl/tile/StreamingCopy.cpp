#include "fl/tile/StreamingCopy.h"

#include <immintrin.h>

#include <cstring>

#include "fl/base/Flags.h"

namespace fl::tile {

namespace {

// Whole lines are written at once where a vector is one.
__attribute__((target("avx512f"))) void streamLines(char* to, const char* from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += sizeof(__m512i))
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), _mm512_loadu_si512(from + i));
}

void streamVectors(char* to, const char* from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += sizeof(__m128i)) {
    const __m128i vector = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), vector);
  }
}

bool isMultiple(const void* to, int64_t bytes, size_t of) {
  return reinterpret_cast<uintptr_t>(to) % of == 0 && bytes % of == 0;
}

}  // namespace

void copyRun(void* to, const void* from, int64_t bytes, bool streams) {
  static const bool hasLines = __builtin_cpu_supports("avx512f");
  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  if (!streams || !isMultiple(to, bytes, sizeof(__m128i))) {
    std::memcpy(to, from, bytes);
  } else if (hasLines && flags().cpu.empty() && isMultiple(to, bytes, sizeof(__m512i))) {
    streamLines(target, source, bytes);
  } else {
    streamVectors(target, source, bytes);
  }
}

void finishCopies(bool streams) {
  if (streams) _mm_sfence();
}

bool isStreamed(int64_t bytes) { return bytes >= int64_t{24} << 20; }

}  // namespace fl::tile
