#include "fl/runtime/cpu/LaunchShape.h"

#include <algorithm>
#include <cstdlib>

#include "fl/host/ThreadPool.h"

namespace fl::runtime::cpu {
namespace {

constexpr int64_t kMaxChunks = 32;
// A kernel that crosses memory wants few parts, of many whole runs of axis 0: what it crosses lies
// along axis 1, and of a part run it would use one element a row.
constexpr int64_t kCrossingRuns = 32;
// Along a kept axis 0 a reduction reads runs of memory, which short parts would make short.
constexpr int64_t kColumnItems = 1024;

// Bytes of a step from which it is for more than the caches hold: its results are written around
// them, as the next step would find little of it there.
constexpr size_t kStreamFrom = size_t{48} << 20;
// Bytes of a step from which maps, and reductions of short elements, of which a line lasts longer,
// so that fewer are under way, ask for lines ahead of time: a cache of level 3 may answer as late
// as memory does. From here on maps that cross memory are written around the caches: their rows
// drive one another out of them before whole lines of the result are written.
constexpr size_t kFarFrom = size_t{8} << 20;

// Every whole vector of the output is aligned, wherever its parts and runs begin.
bool isAligned(const ir::Schedule& schedule, const ir::LaunchStep& step,
               const ir::LaunchOperand& output) {
  const bool isPlaced = output.buffer->space != ir::BufferRef::Space::Temporary ||
                        schedule.temporaries[output.buffer->index].offset % 64 == 0;
  if (!isPlaced || !output.offset.terms.empty() || output.offset.constant % kStreamAlignment != 0)
    return false;
  // Whole vectors that follow one another may share cache lines.
  Dim dense = step.extents[0];
  bool isDense = true, isSpread = dense % kStreamAlignment == 0;
  for (size_t axis = 1; axis < step.extents.size(); ++axis) {
    isDense = isDense && output.strides[axis] == dense;
    isSpread = isSpread && output.strides[axis] % kStreamAlignment == 0;
    dense *= step.extents[axis];
  }
  return step.extents.size() == 1 || isSpread || (isDense && step.extents[0] % ir::kLanes == 0);
}

// Bytes of a run of axis 0 that does not mind the parts of cache lines at its ends.
constexpr size_t kLongRun = 2048;

// Elements of a row, at most kLanes, up to which every kernel gains by taking rows side by
// side, although their elements are loaded one by one.
constexpr int64_t kShortRow = 10;

// Several sweeps over rows that are short enough to be kept.
bool keepsRows(const ir::Kernel& kernel, const ir::LaunchStep& step) {
  return kernel.reduced == 1 && step.extents[0] <= ir::kMaxKeptRow &&
         std::ranges::count_if(kernel.stages, &ir::KernelStage::sweep) > 1;
}

// Rows that fill no vector, and more than one vector of them beside one another: where fusion, too,
// parts few rows from many. Of bad indices the first in the order of rows is reported, which is not
// the order side by side.
bool hasShortRows(const ir::Kernel& kernel, const ir::LaunchStep& step) {
  return kernel.reduced == 1 && kernel.rank > 1 && kernel.gatherCount() == 0 &&
         step.extents[0] <= kShortRow && step.extents[1] > ir::kLanes;
}

// A function that takes longer than memory; those of f32 that do are the less exact ones. What is
// written around the caches in between comes too rarely to fill their buffers in time (on Sapphire
// Rapids twice the time with 40 operations a vector, where a mere copy takes half).
bool isArithmeticLong(const ir::KernelValue& value) {
  const ir::OpInfo& info = ir::opInfo(value.op);
  return value.form == ir::KernelValue::Form::Apply && ir::isApproximated(info) &&
         (value.isShort || info.ulp > 1);
}

}  // namespace

int64_t chooseGrain(const ir::Kernel& kernel, const std::vector<int64_t>& extents, int64_t domain,
                    int64_t elements, bool alone) {
  const int64_t values = static_cast<int64_t>(kernel.values.size());
  const int64_t work = alone ? elements * (1 + values / 8) : elements;
  if (work <= kSequentialElements || domain <= 1) return std::max<int64_t>(domain, 1);
  if (crossesMemory(kernel)) {
    const int64_t runs = kCrossingRuns * extents[0], chunks = 2 * host::threadPool().threads();
    return std::min(domain, ((domain - 1) / chunks / runs + 1) * runs);
  }
  const int64_t perItem = std::max<int64_t>(work / domain, 1);
  int64_t grain =
      std::max((domain + kMaxChunks - 1) / kMaxChunks, (kChunkElements + perItem - 1) / perItem);
  if (kernel.rows()) return grain;
  if (kernel.columns())
    grain = std::max(grain, std::min(kColumnItems, domain / host::threadPool().threads()));
  // Items along a kept axis 0 are elements of vectors.
  const int64_t unit = kernel.columns() && grain >= kColumnItems ? kColumnItems : 64;
  return (grain + unit - 1) / unit * unit;
}

int64_t turnsOf(const ir::Kernel& kernel, const ir::LaunchStep& step, int64_t domain) {
  constexpr size_t kTooMuch = size_t{4} << 20;
  const int last = kernel.rank - 1;
  if (kernel.reduced != 0 || last == 0 || step.extents[last] < 2 || crossesMemory(kernel)) return 1;
  const auto repeats = [&](const ir::KernelOperand& operand) {
    return operand.role == ir::KernelOperand::Role::Input &&
           operand.strides[0] != ir::Stride::Zero && operand.strides[last] == ir::Stride::Zero &&
           domain / step.extents[last] * getTypeSize(operand.type) >= kTooMuch;
  };
  return std::ranges::any_of(kernel.operands, repeats) ? step.extents[last] : 1;
}

ir::Stores chooseStores(const ir::Schedule& schedule, const ir::LaunchStep& step) {
  const ir::Kernel& kernel = schedule.kernels[step.kernel];
  if (hasShortRows(kernel, step)) return ir::Stores::Across;
  const bool keeps = keepsRows(kernel, step), crosses = crossesMemory(kernel);
  const auto skips = [](const auto& operand) { return std::abs(operand.strides[0]) > 1; };
  // Of every second element all cache lines are moved.
  const bool isSparse = !crosses && std::ranges::any_of(step.operands, skips);
  const size_t bytes = stepBytes(schedule, step) * (isSparse ? 2 : 1);
  const auto isShort = [](const auto& operand) { return getTypeSize(operand.type) < 4; };
  const bool asksEarly = kernel.gatherCount() == 0 &&
                         (kernel.reduced == 0 || std::ranges::any_of(kernel.operands, isShort));
  const bool isFar = bytes >= (asksEarly ? kFarFrom : kStreamFrom);
  const ir::Stores cached = keeps   ? ir::Stores::Keeping
                            : isFar ? ir::Stores::Fetching
                                    : ir::Stores::Cached;
  if (bytes < (crosses ? kFarFrom : kStreamFrom) || (kernel.reduced != 0 && !keeps) ||
      std::ranges::any_of(kernel.values, isArithmeticLong)) {
    return cached;
  }
  int outputs = 0;
  bool aligned = true, isLong = true;
  for (size_t i = 0; i < kernel.operands.size(); ++i) {
    const ir::KernelOperand& operand = kernel.operands[i];
    if (operand.role != ir::KernelOperand::Role::Output) continue;
    if (operand.strides[0] != ir::Stride::One) return cached;
    const size_t run = step.extents[0] * getTypeSize(operand.type);
    ++outputs;
    // A mere transpose writes short runs, none of which may end within a cache line.
    const bool isSplit = crosses && kernel.values.size() == 1 && run % 64 != 0;
    aligned = aligned && !isSplit && isAligned(schedule, step, step.operands[i]);
    isLong = run >= kLongRun;
  }
  return aligned                                        ? ir::Stores::Streaming
         : outputs == 1 && isLong && !crosses && !keeps ? ir::Stores::Aligning
                                                        : cached;
}

}  // namespace fl::runtime::cpu
