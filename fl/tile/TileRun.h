// One pass over a part of a kernel's domain, tile by tile, by the steps of a plan.
// TileInterpreter.cpp divides the domain into such parts.
#pragma once

#include "fl/kernel/Kernel.h"
#include "fl/tile/TilePlan.h"

namespace fl::tile {

// Reduced elements of a kept element.
int64_t sweepSize(const ir::Kernel& kernel, const ir::KernelArgs& args);

// Kept elements [begin, end), with results past the caches if `streams`. With a runLength of more
// than one, of a plan that findsRuns, each element stands for so many along axis 0, whose extent is
// 1 then. Returns the number of a gather that met a bad index, or -1.
int64_t runTiles(const TilePlan& plan, const ir::KernelArgs& args, int64_t begin, int64_t end,
                 bool streams, int64_t runLength = 1);

}  // namespace fl::tile
