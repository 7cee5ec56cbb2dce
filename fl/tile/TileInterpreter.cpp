#include "fl/tile/TileInterpreter.h"

#include <algorithm>
#include <numeric>

#include "fl/tile/TilePlan.h"
#include "fl/tile/TileRun.h"

namespace fl::tile {
namespace {

// Rows of more bytes than these are computed again rather than kept.
constexpr int64_t kMostRowBytes = 256 << 10;

// Elements of axis 0 in a strip of a kernel that crosses memory.
constexpr int64_t kStrip = 32;

// `runs` whole runs of axis 0 from a kept element on, in strips of each: a tile then takes several
// runs, and what crosses memory lies along these.
int64_t runStrips(const TilePlan& plan, const ir::KernelArgs& args, int64_t begin, int64_t runs) {
  const ir::Kernel& kernel = plan.kernel;
  int64_t index[ir::kMaxRank], extents[ir::kMaxRank];
  for (int axis = 0; axis < kernel.rank; ++axis) {
    index[axis] = begin % args.extents[axis];
    begin /= args.extents[axis];
    extents[axis] = axis == 1 ? runs : 1;
  }
  void* data[ir::kMaxOperands];
  for (; index[0] < args.extents[0]; index[0] += kStrip) {
    extents[0] = std::min(kStrip, args.extents[0] - index[0]);
    for (size_t i = 0; i < kernel.operands.size(); ++i) {
      const ir::KernelOperand& operand = kernel.operands[i];
      const bool isIndex = operand.role == ir::KernelOperand::Role::Index;
      const int64_t width = isIndex ? 1 : static_cast<int64_t>(getTypeSize(operand.type));
      const int64_t* const strides = args.strides + i * kernel.rank;
      const int64_t offset =
          width * std::inner_product(index, index + kernel.rank, strides, int64_t{0});
      // That of an index operand is a number.
      data[i] = reinterpret_cast<void*>(reinterpret_cast<intptr_t>(args.data[i]) + offset);
    }
    const ir::KernelArgs strip{data, extents, args.strides, args.scalars, args.badIndex};
    const int64_t badGather = runTiles(plan, strip, 0, extents[0] * runs, false);
    if (badGather >= 0) return badGather;
  }
  return -1;
}

// Calls whole(first, runs) for the whole runs of axis 0; what is left of one at either end is run
// as it is.
template <class F>
int64_t splitRuns(const TilePlan& plan, const ir::KernelArgs& args, int64_t begin, int64_t end,
                  F&& whole) {
  const int64_t length = args.extents[0];
  int64_t badGather = -1;
  while (begin < end && badGather < 0) {
    const int64_t along = begin % length, runs = along == 0 ? (end - begin) / length : 0;
    const int64_t stop = runs > 0 ? begin + runs * length : std::min(begin - along + length, end);
    badGather = runs > 0 ? whole(begin, runs) : runTiles(plan, args, begin, stop, false);
    begin = stop;
  }
  return badGather;
}

int64_t runCrossing(const TilePlan& plan, const ir::KernelArgs& args, int64_t begin, int64_t end) {
  return splitRuns(plan, args, begin, end, [&](int64_t first, int64_t runs) {
    int64_t badGather = -1;
    for (int64_t taken; runs > 0 && badGather < 0; runs -= taken) {
      const int64_t along = first / args.extents[0] % args.extents[1];
      taken = std::min(runs, args.extents[1] - along);
      badGather = runStrips(plan, args, first, taken);
      first += taken * args.extents[0];
    }
    return badGather;
  });
}

// Shorter runs are looked up element by element.
constexpr int64_t kShortestRun = 8;

// Whole runs are copied as they are.
int64_t findRuns(const TilePlan& plan, const ir::KernelArgs& args, int64_t begin, int64_t end) {
  const int64_t length = args.extents[0];
  int64_t extents[ir::kMaxRank] = {1};
  std::copy_n(args.extents + 1, plan.kernel.rank - 1, extents + 1);
  const ir::KernelArgs firsts{args.data, extents, args.strides, args.scalars, args.badIndex};
  return splitRuns(plan, args, begin, end, [&](int64_t first, int64_t runs) {
    return runTiles(plan, firsts, first / length, first / length + runs, false, length);
  });
}

}  // namespace

TileProgram::TileProgram(const ir::Kernel& kernel, TileVariant variant)
    : plan_(std::make_shared<TilePlan>(planTiles(kernel, tileOps(variant), false))) {
  auto keeping = std::make_shared<TilePlan>(planTiles(kernel, tileOps(variant), true));
  if (keeping->rowBytes > 0) keepingRows_ = std::move(keeping);
}

const TilePlan& TileProgram::planFor(const ir::KernelArgs& args) const {
  const bool keeps =
      keepingRows_ && keepingRows_->rowBytes * sweepSize(plan_->kernel, args) <= kMostRowBytes;
  return keeps ? *keepingRows_ : *plan_;
}

int64_t TileProgram::run(const ir::KernelArgs& args, int64_t begin, int64_t end,
                         bool streams) const {
  if (begin >= end) return -1;
  const TilePlan& plan = planFor(args);
  if (crossesMemory(plan.kernel)) return runCrossing(plan, args, begin, end);
  if (plan.findsRuns && args.extents[0] >= kShortestRun) return findRuns(plan, args, begin, end);
  return runTiles(plan, args, begin, end, streams);
}

}  // namespace fl::tile
