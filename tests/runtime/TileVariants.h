// The tile variants that this machine runs. Their results are the same bits, which tests check.
#pragma once

#include <vector>

#include "fl/runtime/cpu/TileOps.h"

namespace fl::testing {

inline std::vector<runtime::cpu::TileVariant> tileVariants() {
  using runtime::cpu::TileVariant;
  std::vector<TileVariant> variants = {TileVariant::V3};
  if (runtime::cpu::bestTileVariant() == TileVariant::V4) {
    variants.push_back(TileVariant::V4);
  }
  return variants;
}

}  // namespace fl::testing
