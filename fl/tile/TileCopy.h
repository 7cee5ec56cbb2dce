// Copies between strided memory and dense tiles, element by element of 1, 2, 4 or 8 bytes.
// Relies on nothing; the tile interpreter is the user.
#pragma once

#include <cstdint>

#include "fl/kernel/Kernel.h"

namespace fl::tile {

// Some axes of a kernel in the order in which tiles run over them; axes of extent 1 are left out.
struct TileWalk {
  int rank = 0;
  int axes[ir::kMaxRank] = {};
  int64_t extents[ir::kMaxRank] = {};

  void add(int axis, int64_t extent);
  // Number of elements.
  int64_t size() const;
  // The index of each axis at a linear position.
  void locate(int64_t position, int64_t* index) const;
};

// `count` elements of a walk from an index on, and the strides of one operand along its axes.
struct TileRegion {
  const TileWalk* walk;
  const int64_t* strides;
  const int64_t* index;
  int64_t count;

  // Offset of the first element, in elements.
  int64_t offset() const;
};

// Between memory at `base` (the operand's element 0) and a dense tile of elements `width` bytes
// wide.
void gatherTile(void* tile, const void* base, const TileRegion& region, int width);
void scatterTile(void* base, const void* tile, const TileRegion& region, int width);
// tile[i] = base + the offset of element i
void indexTile(int64_t* tile, int64_t base, const TileRegion& region);

// tile[i] = the element number elements[i] at `base`, where 0 <= indices[i] < bounds[i]. Returns
// the first pair for which that does not hold, or a bound of 0.
ir::BadIndex lookUpTile(void* tile, const void* base, const int64_t* elements,
                        const int64_t* indices, const int64_t* bounds, int64_t count, int width);

// The same for runs of elements, `bytes` in all, that begin with these elements: each goes to the
// element number targets[i] at `to`.
ir::BadIndex lookUpRuns(void* to, const int64_t* targets, const void* base, const int64_t* elements,
                        const int64_t* indices, const int64_t* bounds, int64_t count, int width,
                        int64_t bytes);

// Repeats one element; each of `count` elements `times` times in a row; or the whole sequence of
// `count` elements `times` times.
void fillTile(void* tile, const void* element, int64_t count, int width);
void repeatEach(void* tile, const void* elements, int64_t count, int64_t times, int width);
void repeatAll(void* tile, const void* elements, int64_t count, int64_t times, int width);

}  // namespace fl::tile
