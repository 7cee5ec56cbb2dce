// The tile variants that this machine runs. Their results are the same bits, which tests check.
#pragma once

#include <vector>

#include "fl/tile/TileOps.h"

namespace fl::testing {

inline std::vector<tile::TileVariant> tileVariants() {
  using tile::TileVariant;
  std::vector<TileVariant> variants = {TileVariant::V3};
  if (tile::bestTileVariant() == TileVariant::V4) {
    variants.push_back(TileVariant::V4);
  }
  return variants;
}

}  // namespace fl::testing
