#include "fl/tile/TileRun.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "fl/base/Error.h"
#include "fl/tile/StreamingCopy.h"
#include "fl/tile/TileCopy.h"

namespace fl::tile {
namespace {

using ir::BadIndex;

constexpr int64_t kAlignment = 64;
constexpr TileWalk kNoAxes;

// What is left of a row or its part in tiles that end with it or with a group, so that all but its
// last elements are read and written where they lie.
int64_t tileLength(int64_t left) {
  return left >= kTile ? kTile : left < kTileGroup ? left : left - left % kTileGroup;
}

int64_t wholeGroups(int64_t count) { return (count + kTileGroup - 1) & ~(kTileGroup - 1); }

// Memory of this thread, kept for its next runs. What runs when it is gone, from destructors and at
// exit, has it made anew.
char* scratch(int64_t bytes) {
  thread_local char* data = nullptr;
  thread_local int64_t size = 0;
  const auto release = [](void*) {
    size = 0;
    ::operator delete(std::exchange(data, nullptr), std::align_val_t(kAlignment));
  };
  thread_local const std::shared_ptr<void> owner(nullptr, release);
  if (bytes > size) {
    release(nullptr);
    data = static_cast<char*>(::operator new(bytes, std::align_val_t(kAlignment)));
    size = bytes;
  }
  return data;
}

// Hands out parts of a scratch memory.
class Arena {
 public:
  explicit Arena(char* data) : data_(data) {}
  template <class T>
  T* take(size_t count) {
    T* const result = reinterpret_cast<T*>(data_);
    data_ += (count * sizeof(T) + kAlignment - 1) & ~(kAlignment - 1);
    return result;
  }
  template <class T>
  static int64_t bytes(size_t count) {
    return static_cast<int64_t>(count * sizeof(T)) + kAlignment;
  }

 private:
  char* data_;
};

// An operand in this run: how its elements lie along the walk of the view's level.
struct ViewState {
  char* base;
  const TileWalk* walk;
  int width;
  bool dense;  // element i of the walk is element i of the memory
  bool isInput;
  bool isShared;  // the memory of an input and of an output
  int64_t strides[ir::kMaxRank];
};

// Some consecutive elements of a walk.
struct Tile {
  const TileWalk* walk;
  int64_t start;
  int64_t count;
  // Tiles that a reader leaves at other elements than the first of a group are not read in place.
  bool inPlace = true;
  mutable bool located = false;
  mutable int64_t index[ir::kMaxRank] = {};

  const int64_t* at() const {
    if (!located) {
      walk->locate(start, index);
      located = true;
    }
    return index;
  }
};

class TileRun {
 public:
  TileRun(const TilePlan& plan, const ir::KernelArgs& args, bool streams, int64_t runLength)
      : plan_(plan),
        kernel_(plan.kernel),
        args_(args),
        streams_(streams),
        runLength_(runLength),
        sweepSize_(sweepSize(kernel_, args)) {
    rowSize_ = wholeGroups(std::max(kTile, sweepSize_)) + kTileGroup;
    const int64_t rowBytes = plan.rowBytes * rowSize_;
    Arena arena(scratch(plan.scratchBytes + Arena::bytes<char>(rowBytes) +
                        Arena::bytes<void*>(plan.locations.size()) +
                        Arena::bytes<ViewState>(plan.views.size())));
    memory_ = arena.take<char>(plan.scratchBytes);
    rows_ = arena.take<char>(rowBytes);
    places_ = arena.take<void*>(plan.locations.size());
    views_ = arena.take<ViewState>(plan.views.size());
  }

  int64_t run(int64_t begin, int64_t end) {
    walk();
    // A scalar value fills a tile, but not more of it than is used.
    lanes_ = sweepSize_ == 0 ? kTile : wholeGroups(std::min(kTile, (end - begin) * sweepSize_));
    for (size_t i = 0; i < plan_.locations.size(); ++i) places_[i] = own(i, 0);
    for (size_t i = 0; i < plan_.views.size(); ++i) prepare(plan_.views[i], &views_[i]);
    execute(plan_.uniform, Tile{&kNoAxes, 0, lanes_});
    // Rows fill a tile together if they are short.
    const bool tiled = kernel_.rows() && sweepSize_ > 0 &&
                       std::ranges::any_of(plan_.stages, [&](const TileStage& stage) {
                         return stage.sweep && !rowsAreInMemory(stage);
                       });
    const int64_t step = tiled ? std::max<int64_t>(1, kTile / sweepSize_) : kTile;
    for (int64_t kept = begin; kept < end; kept += step) runKept(kept, std::min(step, end - kept));
    finishCopies(streams_);
    return badGather_;
  }

 private:
  // Kept axes alone, and all axes: those that vary fastest from tile to tile last.
  void walk() {
    const auto add = [&](TileWalk* walk, bool reduced) {
      for (int axis = 0; axis < kernel_.rank; ++axis) {
        if (kernel_.isReduced(axis) == reduced) walk->add(axis, args_.extents[axis]);
      }
    };
    add(&keptWalk_, false);
    add(&sweepWalk_, kernel_.rows());
    add(&sweepWalk_, !kernel_.rows());
    for (int axis = kernel_.rank - 1; axis >= 0; --axis) {
      if (kernel_.isReduced(axis)) length_ = args_.extents[axis];
    }
    turns_ = length_ == 0 ? 0 : sweepSize_ / length_;
  }

  void prepare(const TileView& view, ViewState* state) const {
    const ir::KernelOperand& operand = kernel_.operands[view.operand];
    state->base = static_cast<char*>(args_.data[view.operand]);
    state->width = static_cast<int>(getTypeSize(operand.type));
    state->walk = view.level == Level::Swept  ? &sweepWalk_
                  : view.level == Level::Kept ? &keptWalk_
                                              : &kNoAxes;
    state->dense = operand.role != ir::KernelOperand::Role::Index;
    int64_t size = 1;
    for (int i = 0; i < state->walk->rank; ++i) {
      const int axis = state->walk->axes[i];
      state->strides[i] = args_.strides[view.operand * kernel_.rank + axis];
      state->dense = state->dense && state->strides[i] == size;
      size *= state->walk->extents[i];
    }
    state->dense = state->dense && view.level != Level::Uniform;
    state->isInput = operand.role == ir::KernelOperand::Role::Input;
    state->isShared = false;
    for (size_t i = 0; i < kernel_.operands.size(); ++i) {
      state->isShared |= kernel_.operands[i].role != operand.role && args_.data[i] == state->base;
    }
  }

  // ---- steps ----

  void execute(const std::vector<TileStep>& steps, const Tile& tile) {
    const int64_t count = wholeGroups(tile.count);
    for (const TileStep& step : steps) {
      switch (step.kind) {
        case TileStep::Kind::Apply: {
          const bool direct =
              step.direct >= 0 && !streams_ && (step.isLastToRead || !views_[step.direct].isShared);
          void* const out = direct ? contiguous(views_[step.direct], tile) : nullptr;
          places_[step.target] = out ? out : own(step.target, tile.start);
          step.function(places_[step.target], place(step.args[0]), place(step.args[1]),
                        place(step.args[2]), count);
          break;
        }
        case TileStep::Kind::Load:
          load(step, tile);
          break;
        case TileStep::Kind::Index: {
          const ViewState& view = views_[step.source];
          indexTile(static_cast<int64_t*>(place(step.target)), reinterpret_cast<int64_t>(view.base),
                    region(view, tile));
          break;
        }
        case TileStep::Kind::Scalar:
          fillTile(place(step.target), args_.scalars + step.source, tile.count,
                   plan_.locations[step.target].width);
          break;
        case TileStep::Kind::Gather:
          gather(step, tile);
          break;
        case TileStep::Kind::Expand:
          expand(step, tile.count);
          break;
        case TileStep::Kind::Row:
          places_[step.target] = own(step.target, tile.start);
          break;
      }
    }
  }

  // The scratch memory of a location, for a tile that starts at `start` of its walk.
  void* own(int location, int64_t start = 0) const {
    const TileLocation& it = plan_.locations[location];
    return it.row ? rows_ + it.offset * rowSize_ + (start - firstOfRows_) * it.width
                  : memory_ + it.offset;
  }
  void* place(int location) const { return location < 0 ? nullptr : places_[location]; }

  static TileRegion region(const ViewState& view, const Tile& tile) {
    return {tile.walk, view.strides, tile.at(), tile.count};
  }

  // The operand's own memory where it is the tile, in whole groups; else null. What is only read
  // may end within a group that the memory has.
  static void* contiguous(const ViewState& view, const Tile& tile) {
    const int64_t end = tile.start + wholeGroups(tile.count);
    const bool isWhole = view.isInput && !view.isShared && view.dense && end <= tile.walk->size();
    if (!tile.inPlace || (tile.count % kTileGroup != 0 && !isWhole)) return nullptr;
    if (view.dense) return view.base + tile.start * view.width;
    const TileWalk& walk = *tile.walk;
    if (walk.rank > 0 && view.strides[0] == 1 && tile.at()[0] + tile.count <= walk.extents[0]) {
      return view.base + region(view, tile).offset() * view.width;
    }
    return nullptr;
  }

  void load(const TileStep& step, const Tile& tile) {
    const ViewState& view = views_[step.source];
    void* const memory = step.inPlace ? contiguous(view, tile) : nullptr;
    places_[step.target] = memory ? memory : own(step.target);
    if (!memory && view.dense) {
      std::copy_n(view.base + tile.start * view.width, tile.count * view.width,
                  static_cast<char*>(own(step.target)));
    } else if (!memory) {
      gatherTile(own(step.target), view.base, region(view, tile), view.width);
    }
  }

  void gather(const TileStep& step, const Tile& tile) {
    places_[step.target] = own(step.target);
    const auto numbers = [&](int i) { return static_cast<int64_t*>(place(step.args[i])); };
    const void* const base = args_.data[step.source];
    const int width = plan_.locations[step.target].width;
    BadIndex bad;
    if (runLength_ > 1) {
      const ViewState& view = views_[plan_.stages[0].stores[0].view];
      int64_t targets[kTile];
      indexTile(targets, 0, region(view, tile));
      bad = lookUpRuns(view.base, targets, base, numbers(0), numbers(1), numbers(2), tile.count,
                       width, runLength_ * width);
    } else {
      bad =
          lookUpTile(own(step.target), base, numbers(0), numbers(1), numbers(2), tile.count, width);
    }
    if (bad.bound > 0 && badGather_ < 0) {
      badGather_ = step.number;
      *args_.badIndex = bad;
    }
  }

  void store(const TileStore& store, const Tile& tile) {
    const ViewState& view = views_[store.view];
    const char* const source = static_cast<const char*>(place(store.location));
    if (view.dense) {
      char* const target = view.base + tile.start * view.width;
      if (source != target) copyRun(target, source, tile.count * view.width, streams_);
    } else if (source != contiguous(view, tile)) {
      scatterTile(view.base, source, region(view, tile), view.width);
    }
  }

  // The copy of a kept value in the layout of a sweep's tiles.
  void expand(const TileStep& step, int64_t count) {
    const int width = plan_.locations[step.target].width;
    void* const out = own(step.target);
    places_[step.target] = out;
    if (kernel_.rows()) {
      repeatEach(out, place(step.source), count, std::min(sweepSize_, kTile), width);
    } else if (groups_ == 1) {
      places_[step.target] = place(step.source);
    } else {
      repeatAll(out, place(step.source), count, groups_, width);
    }
  }

  // ---- stages ----

  void runKept(int64_t kept, int64_t count) {
    const Tile tile{&keptWalk_, kept, count};
    // A short block that is the whole kept domain is swept several reduced elements at a time.
    const bool all = count == keptWalk_.size();
    firstOfRows_ = kept * sweepSize_;
    groups_ = all ? std::clamp<int64_t>(kTile / count, 1, ir::kColumnChunk) : 1;
    for (const TileStage& stage : plan_.stages) {
      execute(stage.kept, tile);
      if (runLength_ > 1) continue;  // they are where they belong
      if (!stage.sweep) {
        for (const TileStore& store : stage.stores) this->store(store, tile);
      } else if (kernel_.rows()) {
        sweepRows(stage, kept, count);
      } else {
        sweepColumns(stage, kept, count);
      }
    }
  }

  void setTotals(const TileStage& stage, int64_t count) {
    for (const TileReduce& reduce : stage.reduces) {
      fillTile(place(reduce.total), &reduce.totalInit, wholeGroups(count),
               plan_.locations[reduce.total].width);
    }
  }
  void roundTotals(const TileStage& stage, int64_t count) {
    for (const TileReduce& reduce : stage.reduces) {
      if (reduce.round) {
        reduce.round(place(reduce.result), place(reduce.total), nullptr, nullptr,
                     wholeGroups(count));
      }
    }
  }
  int width(const TileReduce& reduce) const { return plan_.locations[reduce.result].width; }

  // One tile of a sweep. `reduce` comes before the stores, which may overwrite what it reads.
  template <class F>
  void sweepTile(const TileStage& stage, const Tile& tile, F&& reduce) {
    execute(stage.swept, tile);
    for (const TileReduce& reduction : stage.reduces) reduce(reduction);
    for (const TileStore& store : stage.stores) this->store(store, tile);
  }

  void sweepRows(const TileStage& stage, int64_t kept, int64_t count) {
    const int64_t first = kept * sweepSize_;
    if (sweepSize_ == 0) {
      setTotals(stage, count);
      roundTotals(stage, count);
    } else if (rowsAreInMemory(stage)) {
      const ViewState& view = views_[stage.swept[0].source];
      for (const TileReduce& reduce : stage.reduces) {
        reduce.functions.rows(place(reduce.result), view.base + first * view.width, count, turns_,
                              length_, &reduce.init);
      }
    } else if (sweepSize_ <= kTile) {
      sweepTile(stage, {&sweepWalk_, first, count * sweepSize_}, [&](const TileReduce& reduce) {
        reduce.functions.rows(place(reduce.result), place(reduce.location), count, turns_, length_,
                              &reduce.init);
      });
    } else if (stage.reduces.empty()) {
      for (int64_t i = 0, count; i < sweepSize_; i += count) {
        count = tileLength(sweepSize_ - i);
        sweepTile(stage, {&sweepWalk_, first + i, count}, [](const TileReduce&) {});
      }
    } else {
      setTotals(stage, count);
      sweepParts(ir::kRowChunk, [&](int64_t start, int64_t turns, int64_t length) {
        sweepRowPart(stage, first + start, turns, length);
      });
      roundTotals(stage, count);
    }
  }

  // Calls f(first, turns, length) for the parts of the tree: `length` elements of the lowest
  // reduced axis for each of `turns`, from the reduced element `first` on. They are whole axes,
  // one behind the other, where there are several turns.
  template <class F>
  void sweepParts(int64_t chunk, F&& f) {
    const int64_t together = ir::turnsTogether(length_, chunk);
    for (int64_t turn = 0; turn < turns_; turn += together) {
      for (int64_t begin = 0; begin < length_; begin += chunk) {
        f(turn * length_ + begin, std::min(together, turns_ - turn),
          std::min(chunk, length_ - begin));
      }
    }
  }

  void sweepRowPart(const TileStage& stage, int64_t first, int64_t turns, int64_t length) {
    for (const TileReduce& reduce : stage.reduces) {
      fillTile(place(reduce.partial), &reduce.init, kRowLanes, width(reduce));
    }
    // A tile takes several short turns.
    const int64_t group = std::max<int64_t>(1, kTile / length);
    for (int64_t turn = 0; turn < turns; turn += group) {
      const int64_t runs = std::min(group, turns - turn);
      for (int64_t i = 0, part; i < length; i += part) {
        part = runs > 1 ? length : tileLength(length - i);
        const Tile tile{&sweepWalk_, first + turn * length + i, runs * part};
        sweepTile(stage, tile, [&](const TileReduce& reduce) {
          reduce.functions.accumulate(place(reduce.partial), place(reduce.location), runs, part);
        });
      }
    }
    for (const TileReduce& reduce : stage.reduces) {
      reduce.functions.finish(place(reduce.total), place(reduce.partial));
    }
  }

  void sweepColumns(const TileStage& stage, int64_t kept, int64_t count) {
    setTotals(stage, count);
    sweepParts(ir::kColumnChunk, [&](int64_t first, int64_t turns, int64_t length) {
      sweepColumnPart(stage, kept, count, first, turns * length);
    });
    roundTotals(stage, count);
  }

  // `length` reduced elements from `first` on: total = op(total, their partial).
  void sweepColumnPart(const TileStage& stage, int64_t kept, int64_t count, int64_t first,
                       int64_t length) {
    const int64_t lanes = wholeGroups(count), all = keptWalk_.size();
    for (const TileReduce& reduce : stage.reduces) {
      fillTile(place(reduce.partial), &reduce.init, lanes, width(reduce));
    }
    if (const void* rows = rowsInMemory(stage, {&sweepWalk_, first * all + kept, count})) {
      const ViewState& view = views_[stage.swept[0].source];
      for (const TileReduce& reduce : stage.reduces) {
        reduce.functions.columns(place(reduce.partial), rows, length,
                                 view.strides[keptWalk_.rank] * view.width, lanes);
      }
    } else {
      sweepColumnTiles(stage, kept, count, first, length);
    }
    for (const TileReduce& reduce : stage.reduces) {
      void *const total = place(reduce.total), *const partial = place(reduce.partial);
      if (reduce.widen) {
        reduce.widen(place(reduce.widened), partial, nullptr, nullptr, lanes);
        reduce.add(total, total, place(reduce.widened), nullptr, lanes);
      } else {
        reduce.combine(total, total, partial, nullptr, lanes);
      }
    }
  }

  // True if a sweep does nothing but reduce what it loads in place.
  bool onlyReducesMemory(const TileStage& stage) const {
    if (stage.swept.size() != 1 || !stage.stores.empty()) return false;
    const TileStep& load = stage.swept[0];
    return load.kind == TileStep::Kind::Load && load.inPlace &&
           views_[load.source].walk == &sweepWalk_ &&
           std::ranges::all_of(stage.reduces, [&](const TileReduce& reduce) {
             return reduce.location == load.target;
           });
  }

  // True if the rows of such a sweep lie one behind the other, each a chunk of the tree.
  bool rowsAreInMemory(const TileStage& stage) const {
    return length_ <= ir::kRowChunk && onlyReducesMemory(stage) &&
           views_[stage.swept[0].source].dense;
  }

  // The first row of such a sweep over columns, if its rows can be read whole; else null.
  const void* rowsInMemory(const TileStage& stage, const Tile& row) const {
    return row.count % kTileGroup == 0 && sweepWalk_.rank == keptWalk_.rank + 1 &&
                   onlyReducesMemory(stage)
               ? contiguous(views_[stage.swept[0].source], row)
               : nullptr;
  }

  void sweepColumnTiles(const TileStage& stage, int64_t kept, int64_t count, int64_t first,
                        int64_t length) {
    for (int64_t i = 0; i < length; i += groups_) {
      const int64_t groups = std::min(groups_, length - i);
      const Tile tile{&sweepWalk_, (first + i) * keptWalk_.size() + kept, groups * count,
                      groups == 1 || count % kTileGroup == 0};
      sweepTile(stage, tile, [&](const TileReduce& reduce) {
        reduce.functions.columns(place(reduce.partial), place(reduce.location), groups,
                                 count * width(reduce), wholeGroups(count));
      });
    }
  }

  const TilePlan& plan_;
  const ir::Kernel& kernel_;
  const ir::KernelArgs& args_;
  const bool streams_;
  const int64_t runLength_;
  char* memory_;
  char* rows_;
  void** places_;  // where each location's tile is now
  ViewState* views_;
  TileWalk keptWalk_;
  TileWalk sweepWalk_;
  const int64_t sweepSize_;  // reduced elements of a kept element
  int64_t rowSize_;          // elements that a row's location holds
  int64_t firstOfRows_ = 0;  // the element of the sweep that it begins with
  int64_t length_ = 1;       // of the lowest reduced axis
  int64_t turns_ = 1;        // combinations of the other reduced axes
  int64_t groups_ = 1;       // reduced elements of one tile of a column kernel
  int64_t lanes_ = kTile;
  int64_t badGather_ = -1;
};

}  // namespace

int64_t sweepSize(const ir::Kernel& kernel, const ir::KernelArgs& args) {
  int64_t size = 1;
  for (int axis = 0; axis < kernel.rank; ++axis) {
    size *= kernel.isReduced(axis) ? args.extents[axis] : 1;
  }
  return size;
}

int64_t runTiles(const TilePlan& plan, const ir::KernelArgs& args, int64_t begin, int64_t end,
                 bool streams, int64_t runLength) {
  return TileRun(plan, args, streams, runLength).run(begin, end);
}

}  // namespace fl::tile
