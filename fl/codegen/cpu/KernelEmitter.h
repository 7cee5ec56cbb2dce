// The loop nest of one kernel in LLVM IR.
//
// The function decomposes `begin` once by division and then walks its part of the domain with an
// odometer over the kept axes. Maps and column kernels step along axis 0 in blocks of full vectors
// and finish each run with one masked vector at a time; maps take whole axes 1 and 2 in plain loops
// and ask for what later runs read; column kernels sweep a tile of such blocks together, whose sums
// lie in memory. Row kernels handle one kept element at a time and vectorise along axis 0 inside,
// or, where rows are short, treat them as columns whose elements they add up as the row tree says.
// Maps that cross memory walk tiles of axes 0 and 1 (Tiles.cpp).
// Reductions follow the trees of fl/kernel/Kernel.h exactly.
// Relies on ValueScopes.h for everything inside the loops; Emitter.h makes objects of the result.
#pragma once

#include <optional>

#include "fl/codegen/cpu/ValueScopes.h"
#include "fl/kernel/Artifact.h"

namespace fl::codegen::cpu {

class KernelEmitter {
 public:
  // Fills `function`, an empty KernelFunction (fl/kernel/Kernel.h).
  KernelEmitter(const ir::Kernel& kernel, const ir::Target& target, ir::Stores stores,
                bool findsNan, llvm::Function* function);
  void emit();

 private:
  using Reduce = ir::KernelStage::Reduce;
  using Reduces = std::vector<Reduce>;
  using TakeReduced = llvm::function_ref<void(int vector, int reduction, LlvmValue value)>;

  // Where the walk over the domain stands.
  struct Position {
    llvm::Value* number = nullptr;  // in the domain
    llvm::Value* along = nullptr;   // index of axis 0, if that is kept
    // Of axis 0 that lie ahead, if the walk takes several at a time.
    llvm::Value* wholeRuns = nullptr;
    Values indices;  // of the walked axes
  };
  // How many indices of axis 1 and, where that is whole, of axis 2 a step of the walk takes.
  struct Runs {
    llvm::Value* lines;
    llvm::Value* planes;
  };

  KernelArguments loadArguments(llvm::Function* function, bool findsNan);
  Position beginOfWalk();
  // The position `count` elements on, behind `runs`.
  Position advanced(const Position& now, llvm::Value* count, const Runs& runs);
  Values carriedOf(const Position& position) const;
  Position positionOf(const Values& carried) const;
  void walkDomain();
  Position walkStep(const Position& now);
  // As many whole runs of axis 0 as there are, at most a tile's; one if a part of a run is next.
  Runs runsAhead(const Position& now);
  // Indices [now.along, end) of axis 0 for each of `runs`.
  void emitNest(const Position& now, llvm::Value* end, const Runs& runs);
  // How far, in bytes, the runs of each operand lie ahead that are asked for; null where none are.
  Values distancesAhead();
  // Asks for what lies so many bytes on, of each operand that has a distance: the first line of it,
  // or those of the vectors at `index`.
  void fetchAhead(const Values& distances, llvm::Value* index = nullptr, bool isNear = false);
  // Asks for the lines that gathers look up kLinesAhead indices of axis 1 after `line`.
  void fetchLines(const Position& now, llvm::Value* line, llvm::Value* plane);
  // Into the cache of level 2, unless it is near: lines that lie a power of two apart would drive
  // one another out of level 1 before they are used.
  void fetch(llvm::Value* address, int64_t bytes = 1, bool toWrite = false, bool isNear = false);

  // Maps: indices [begin, end) of axis 0.
  void emitMap(llvm::Value* begin, llvm::Value* end);
  // Runs `body` with the lanes of each block of [begin, end): full vectors, then masked ones.
  void forBlocks(llvm::Value* begin, llvm::Value* end, llvm::function_ref<void()> body);
  // The first index from `index` on where a cache line of the one output begins; asks for the line
  // where the run ends.
  llvm::Value* alignedIndex(llvm::Value* index, llvm::Value* end);

  // Tiled maps: indices [begin, end) of axis 0 for `runs` indices of axis 1 from `first` on.
  void emitTiles(llvm::Value* begin, llvm::Value* end, llvm::Value* first, llvm::Value* runs);
  void emitTile(llvm::Value* begin, llvm::Value* end, llvm::Value* first, llvm::Value* runs);
  // Memory for a group of indices of axis 1 of a crossing input.
  struct TileCopy {
    int operand;
    dtype type;
    llvm::Value* rows;     // along axis 1, of parts of tiles: [plan_.tileLength][group]
    llvm::Value* columns;  // along axis 0: [group][plan_.tileLength]
  };
  std::vector<TileCopy> makeTileCopies();
  void fetchRows(const TileCopy& copy, llvm::Value* begin, llvm::Value* first, llvm::Value* part);
  // `count` elements of each of `rows` rows, the first of which is at `from`.
  void copyRows(const TileCopy& copy, llvm::Value* from, llvm::Value* rows, llvm::Value* count);
  // Elements along both sides of a square that is transposed in registers.
  int64_t sideOf(dtype type) const;
  // The columns of the square at `at`, whose rows lie `stride` bytes apart.
  Values columnsOf(dtype type, llvm::Value* at, llvm::Value* stride);
  // Whether a part of a tile with so many indices of axes 0 and 1 is of whole squares whose columns
  // are aligned in the results.
  llvm::Value* isMoved(llvm::Value* length, llvm::Value* count);
  // The body for plan_.movedRows indices of axis 0 from `row` on, which the columns of squares next
  // to one another have, and `side` of axis 1 from `line` on.
  void moveSquares(const std::vector<Values>& squares, int64_t side, llvm::Value* row,
                   llvm::Value* line);
  // Of indices [begin, end) of axis 0 and `count` of axis 1 from `line` on; if `moved` is not null
  // and holds, with the body.
  void transposeRows(const TileCopy& copy, llvm::Value* begin, llvm::Value* end, llvm::Value* line,
                     llvm::Value* count, llvm::Value* moved);
  // Row kernels: one kept element.
  void emitElement();
  // For each vector of the current lanes: a stage's values, its stores, its values to reduce.
  void emitBody(int stage, TakeReduced takeReduced);
  void computeScalarsOfAllStages();

  // A group of turns and a chunk of the lowest reduced axis.
  struct SweepPart {
    llvm::Value* turn;  // null if no other axis is reduced
    llvm::Value* lastTurn;
    llvm::Value* begin;
    llvm::Value* end;
  };
  Values sweepParts(int64_t chunk, const Values& totals,
                    llvm::function_ref<Values(const SweepPart&, const Values&)> body);
  Values sweepTurns(int stage, const SweepPart& part, const Values& carried,
                    llvm::function_ref<Values(const Values&)> body);
  void sweepRow(int stage);
  // total = op(total, part), in the type of the total.
  llvm::Value* addToTotal(const Reduce& reduce, llvm::Value* total, llvm::Value* part);
  // Of each operand, the bytes to what is read `steps` on along `axis`, or twice as many of few
  // bytes, which come too soon; 0 unless a row is of more bytes than `beyond` and at most
  // `mostBytes`, null of what is no row.
  Values distancesOfRows(int axis, int64_t steps, int64_t beyond, int64_t mostBytes);
  // Whether a sweep asks for what the first one reads of the next kept element: the second, which
  // finds in the caches what the first has left there, or a first one that takes long.
  bool asksForNextRow(int stage) const;
  // Puts back in order what are every second element.
  void inOrder(llvm::Value*& even, llvm::Value*& odd);
  Values sweepRowTurn(int stage, llvm::Value* begin, llvm::Value* end, const Values& lanes);
  Values sweepFullVectors(int stage, llvm::Value* begin, llvm::Value* end, const Values& pairs);
  Values sweepTail(int stage, llvm::Value* begin, llvm::Value* end, const Values& tails);

  // Of a reduction, for each element of a tile of columns.
  struct TileSums {
    ElementRow parts;  // of the first slot
    ElementRow totals;
  };
  // How many columns are swept together: long pieces of memory, or, where a later sweep reads them
  // again, what the cache keeps for it.
  llvm::Value* columnTile();
  // Column kernels: indices [begin, end) of axis 0.
  void emitColumns(llvm::Value* begin, llvm::Value* end);
  // Gives the sums of a tile memory, which is addressed by the index of axis 0.
  void placeSums(llvm::Value* tileBegin);
  // Makes the totals known, for the current lanes, that the stage needs of earlier sweeps.
  void setTotals(int stage);
  void sweepColumns(int stage, llvm::Value* begin, llvm::Value* end);
  // Indices of the lowest reduced axis, and ValueScopes::placesAt() them.
  using Rows = std::vector<std::pair<llvm::Value*, std::vector<llvm::Value*>>>;
  // Adds these rows to the parts of the current lanes, or, if there are none, [first, last).
  void sweepBlock(int stage, const Rows& rows, llvm::Value* first, llvm::Value* last);
  // Adds the elements [begin, end) to sums of each reduction.
  using SweepElements =
      llvm::function_ref<Values(llvm::Value* begin, llvm::Value* end, const Values& sums)>;
  Values sweepShortRows(int stage, llvm::Value* end, const Values& initials, SweepElements sweep);

  int lowestReducedAxis() const { return __builtin_ctz(kernel_.reduced); }
  std::vector<int> turningAxes() const;
  const Reduces& reduces(int stage) const { return kernel_.stages[stage].reduces; }
  dtype typeOf(const Reduce& reduce) const { return kernel_.values[reduce.value].type; }
  dtype totalTypeOf(const Reduce& reduce) const { return ir::totalType(reduce.op, typeOf(reduce)); }
  LlvmValue initial(ir::Op op, dtype type, bool vector);
  LlvmValue foldLanes(ir::Op op, LlvmValue first, LlvmValue second, LlvmValue tail);

  llvm::Value* number(int64_t value) { return builder_.getInt64(value); }
  llvm::Value* smaller(llvm::Value* x, llvm::Value* y) {
    return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, y);
  }
  llvm::Value* larger(llvm::Value* x, llvm::Value* y) {
    return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, x, y);
  }
  // begin plus the whole multiples of `step`, a power of two, below end.
  llvm::Value* endOfWhole(llvm::Value* begin, llvm::Value* end, int64_t step);
  std::vector<Lanes> fullLanes(llvm::Value* index, int vectors);
  Lanes maskedLanes(llvm::Value* index, llvm::Value* end);

  const ir::Kernel kernel_;  // of the code: with rows as columns, if `stores_` is Across
  const ir::Stores stores_;
  const KernelPlan plan_;
  std::vector<int> walkedAxes_;  // kept axes but axis 0, which is walked in runs
  llvm::IRBuilder<> builder_;
  LlvmBuilder math_;
  MemoryAccess memory_;
  std::optional<TableLookup> lookup_;  // of kernels with a Gather
  KernelArguments arguments_;
  llvm::Value* begin_;
  llvm::Value* end_;
  ValueScopes values_;
  const KernelPlan linePlan_;
  ValueScopes lines_;  // where gathers of lines begin
  const Values ahead_;
  const int vectorBits_;
  const std::vector<TileCopy> copies_;  // of tiled maps
  std::vector<TileSums> sums_;          // of column kernels, by reduction
};

}  // namespace fl::codegen::cpu
