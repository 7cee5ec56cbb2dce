// 128-bit hashes (XXH3). A hash finds a bucket; equality always decides.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fl {

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const Hash128&) const = default;
};

Hash128 hashBytes(const void* data, size_t bytes);

}  // namespace fl
