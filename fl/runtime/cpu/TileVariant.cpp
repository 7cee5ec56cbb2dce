#include "fl/base/Error.h"
#include "fl/runtime/cpu/HostTarget.h"
#include "fl/runtime/cpu/TileOps.h"

namespace fl::runtime::cpu {

TileVariant bestTileVariant() {
  const int bits = hostTarget().vectorBits;
  FL_USER_CHECK(bits >= 256, "this processor lacks x86-64-v3 (AVX2, FMA, F16C)");
  return bits >= 512 ? TileVariant::V4 : TileVariant::V3;
}

const TileOps& tileOps(TileVariant variant) {
  return variant == TileVariant::V4 ? v4::tileOps() : v3::tileOps();
}

}  // namespace fl::runtime::cpu
