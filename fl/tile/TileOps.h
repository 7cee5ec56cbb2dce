// The precompiled tile functions: for each op and dtype, a loop over a tile in L1.
//
// Relies on the op table. TileOps.cpp defines them once a variant; TileVariant.cpp chooses one at
// start; the tile interpreter (TileInterpreter.h) strings them together.
#pragma once

#include <cstdint>

#include "fl/ir/Op.h"

namespace fl::tile {

// Elements of one tile.
inline constexpr int64_t kTile = 1024;
// Functions work on whole groups of this many elements; what lies behind a tile's last element is
// read and overwritten with anything.
inline constexpr int64_t kTileGroup = 64;

// out[i] = f(x[i], y[i], z[i]) for i < count, a multiple of kTileGroup. `out` may be x, y or z if
// its elements are as wide as theirs; otherwise it overlaps none. Operands that f lacks may be
// null.
using TileFunction = void (*)(void* out, const void* x, const void* y, const void* z,
                              int64_t count);

// The trees of fl/kernel/Kernel.h. `lanes` are the row tree's, a[0..31] and t[0..15] of the
// element's type; a `total` has the type ir::totalType and is not rounded yet.
inline constexpr int kRowLanes = 48;
struct TileReduction {
  // Adds `turns` runs of `length` elements, which lie one behind the other. Every run starts at a
  // multiple of 32 of its chunk and all but a chunk's last have a length that is one.
  void (*accumulate)(void* lanes, const void* x, int64_t turns, int64_t length);
  // total = op(total, the tree over the lanes)
  void (*finish)(void* total, const void* lanes);
  // results[r] = the rounded total of turns * length elements of row r, for rows of one chunk.
  void (*rows)(void* results, const void* x, int64_t rows, int64_t turns, int64_t length,
               const void* init);
  // partial[i] = op(partial[i], x[i] of one row after another) for i < count, a multiple of
  // kTileGroup. Rows lie `stride` bytes apart.
  void (*columns)(void* partial, const void* x, int64_t rows, int64_t stride, int64_t count);
  // result = the rounded total of the parts x.
  void (*fold)(void* result, const void* x, int64_t parts, const void* init);
};

// Two functions as one: second(first(x, y), z), or second(z, first(x, y)) if `place`, the operand
// of the second that the first makes, is 1.
struct TilePair {
  TileFunction first, second;
  int place;
  TileFunction both;
};
inline constexpr int kTilePairs = 18;

// totals[i] += x[i] and out[i] = totals[i], rounded, for i < count, a multiple of kTileGroup, of
// one row after another. Rows of x and of out lie `stride` bytes apart. Totals of 16-bit floats are
// f32, others have the type of x. With `streams` no line of out, which begin at its multiples of 64
// bytes, stays in the caches.
using SumFunction = void (*)(void* out, const void* x, void* totals, int64_t rows, int64_t stride,
                             int64_t count, bool streams);

// Null where the op has no meaning for the dtype.
struct TileOps {
  // By the type of the operands (Where: of y). A reduction's entry combines two values. Of 16-bit
  // floats there are Add and Where, and the short formulas, of f32, stand at f16.
  TileFunction apply[ir::kOpCount][kDtypeCount];
  TileFunction uniform[kDtypeCount];  // of a seed, an offset and an index
  TileFunction normal[kDtypeCount];   // of two uniform numbers
  SumFunction sum[kDtypeCount];
  TileFunction cast[kDtypeCount][kDtypeCount];  // [from][to]
  TileReduction reductions[ir::kOpCount][kDtypeCount];
  TilePair pairs[kTilePairs];
};

enum class TileVariant : uint8_t { V3, V4 };

namespace v3 {
const TileOps& tileOps();
}
namespace v4 {
const TileOps& tileOps();
}

// What the processor and the flag `cpu` allow. Throws std::invalid_argument if that is not even
// x86-64-v3.
TileVariant bestTileVariant();
const TileOps& tileOps(TileVariant variant);

}  // namespace fl::tile
