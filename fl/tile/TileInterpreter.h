// Tier 0 of the CPU: runs a kernel at once, without compiling, on tiles that stay in L1.
//
// A program is prepared once a kernel (some microseconds): every op is resolved to a precompiled
// loop over a tile (TileOps.h) and every value to a place in a scratch memory (TilePlan.h). A run
// then costs one call per op and tile. Values that depend on no operand that varies are computed
// once a run. Results are those of the kernel form (fl/kernel/Kernel.h), bit for bit, for any split
// of the domain and for both variants of the tile functions.
#pragma once

#include <cstdint>
#include <memory>

#include "fl/kernel/Kernel.h"
#include "fl/tile/TileOps.h"

namespace fl::tile {

struct TilePlan;

class TileProgram {
 public:
  // Throws InternalError for a kernel that verify() refuses. Tests choose the variant.
  explicit TileProgram(const ir::Kernel& kernel, TileVariant variant = bestTileVariant());

  // Runs kept elements [begin, end) as a KernelFunction (fl/kernel/Kernel.h). An output may be the
  // very memory of an input with the same strides and element size, if they agree element by
  // element; otherwise outputs overlap nothing. Any number of threads may run a program; each keeps
  // scratch memory for its life, as much as its largest program needs (about 4 KB for each f32
  // value alive at a time, and up to 256 KB for rows that several sweeps read). Where `streams`,
  // outputs that no cache holds are written around the caches.
  int64_t run(const ir::KernelArgs& args, int64_t begin, int64_t end, bool streams = false) const;

 private:
  const TilePlan& planFor(const ir::KernelArgs& args) const;

  std::shared_ptr<const TilePlan> plan_;
  std::shared_ptr<const TilePlan> keepingRows_;  // null if it would be the same
};

}  // namespace fl::tile
