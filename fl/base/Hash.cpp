#include "fl/base/Hash.h"

#include <xxhash.h>

namespace fl {

Hash128 hashBytes(const void* data, size_t bytes) {
  const XXH128_hash_t hash = XXH3_128bits(data, bytes);
  return {hash.low64, hash.high64};
}

}  // namespace fl
