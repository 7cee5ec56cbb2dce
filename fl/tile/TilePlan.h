// What TileProgram prepares: the steps of each stage and the scratch memory they work in.
//
// Every value has a level, which says how often it changes: Uniform values are the same for a whole
// run, Kept values belong to a kept element, Swept values to an element of a sweep. A value is
// computed at its own level; a sweep reads a kept value through an expanded copy, which repeats it
// for the elements of the tile. TileRun.cpp executes the plan.
#pragma once

#include <cstdint>
#include <vector>

#include "fl/kernel/Kernel.h"
#include "fl/tile/TileOps.h"

namespace fl::tile {

enum class Level : uint8_t { Uniform, Kept, Swept };

// One operand as it is read or written at a level.
struct TileView {
  int operand;
  Level level;
};

struct TileStep {
  // Row: what an earlier sweep left for this tile.
  enum class Kind : uint8_t { Load, Index, Scalar, Apply, Gather, Expand, Row };
  Kind kind;
  int target;       // location
  int source = -1;  // Load, Index: view; Scalar: number; Gather: operand; Expand: location
  TileFunction function = {};  // Apply
  int args[3] = {-1, -1, -1};  // Apply, Gather: locations
  int number = -1;             // Gather: counted over the kernel
  // Load: the operand's memory may stand for the tile where it is contiguous.
  bool inPlace = true;
  // Apply: view of the output that is written at once where it is contiguous, or -1. Unless no step
  // reads loaded memory after this one, it must not be the memory of an input.
  int direct = -1;
  bool isLastToRead = false;
};

struct TileStore {
  int view;
  int location;
};

struct TileReduce {
  TileFunction combine;
  TileReduction functions;
  int location;  // of the value
  int result;    // location
  int partial;   // location: lanes of the row tree, or the column tree's p
  uint64_t init;
  // Location of the total in its own type (ir::totalType); it is the result's if that is its type.
  int total;
  uint64_t totalInit;
  // Otherwise: the location of a column kernel's partials in the type of the total, and the
  // functions that make these, add them and round the total.
  int widened = -1;
  TileFunction widen = {}, add = {}, round = {};
};

struct TileStage {
  bool sweep;
  std::vector<TileStep> kept;   // first computed in this stage, expanded copies among them
  std::vector<TileStep> swept;  // once a tile of the sweep
  std::vector<TileReduce> reduces;
  std::vector<TileStore> stores;
};

// A place for kTile elements in the scratch memory; several values may use it in turn. That of a
// row has a place for each element of the rows that are swept together, which later sweeps read.
struct TileLocation {
  int width;            // bytes of an element
  int64_t offset = -1;  // of a row, for each of its elements
  bool row = false;
};

struct TilePlan {
  ir::Kernel kernel;
  std::vector<TileView> views;
  std::vector<TileStep> uniform;
  std::vector<TileStage> stages;
  std::vector<TileLocation> locations;
  int64_t scratchBytes = 0;
  int64_t rowBytes = 0;  // for each element of the rows, of all locations together
  // Of a kernel that only looks up elements which lie along axis 0 as those of its output do.
  bool findsRuns = false;
};

// With `keepsRows`, a value that is slow to compute and read by several sweeps of a row kernel is
// computed once.
TilePlan planTiles(const ir::Kernel& kernel, const TileOps& ops, bool keepsRows);

}  // namespace fl::tile
