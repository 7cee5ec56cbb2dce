#include "fl/base/Error.h"
#include "fl/tile/HostTarget.h"
#include "fl/tile/TileOps.h"

namespace fl::tile {

TileVariant bestTileVariant() {
  const int bits = hostTarget().vectorBits;
  FL_USER_CHECK(bits >= 256, "this processor lacks x86-64-v3 (AVX2, FMA, F16C)");
  return bits >= 512 ? TileVariant::V4 : TileVariant::V3;
}

const TileOps& tileOps(TileVariant variant) {
  return variant == TileVariant::V4 ? v4::tileOps() : v3::tileOps();
}

}  // namespace fl::tile
