#include "fl/kernel/cuda/Launch.h"

#include <algorithm>
#include <bit>

#include "fl/kernel/cuda/SharedRows.h"

namespace fl::ir::cuda {
namespace {

// More do not run at once anywhere; threads take several items then.
constexpr int64_t kMostBlocks = 1 << 20;

int64_t divideUp(int64_t x, int64_t y) { return (x + y - 1) / y; }

// Of the reduced axes from that one on.
int64_t sweptElements(const Kernel& kernel, const int64_t* extents, int from) {
  int64_t elements = 1;
  for (int axis = from; axis < kernel.rank; ++axis)
    elements *= kernel.isReduced(axis) ? extents[axis] : 1;
  return elements;
}

// Parts of a sweep, as Parts in Prelude.cpp counts them.
int64_t partsOf(const Kernel& kernel, const int64_t* extents) {
  const int lowest = std::countr_zero(kernel.reduced);
  const int64_t chunk = kernel.rows() ? kRowChunk : kColumnChunk;
  const int64_t turns = sweptElements(kernel, extents, lowest + 1);
  return divideUp(turns, turnsTogether(extents[lowest], chunk)) * divideUp(extents[lowest], chunk);
}

// Reductions with few kept elements would leave most of a GPU idle. So many blocks are some for
// each multiprocessor of the largest; no figure depends on the one at hand. Where there is no later
// sweep, which would be the last block's alone, blocks of fewer warps are on more multiprocessors.
void split(const Kernel& kernel, int64_t domain, int64_t parts, Launch* launch) {
  constexpr int64_t kSomeBlocks = kManyBlocks / 4;
  if (!maySplit(kernel) || parts <= kBlockWarps) return;
  const bool isOnly = std::ranges::count(kernel.stages, true, &KernelStage::sweep) == 1;
  if (!isOnly && parts < 2 * kBlockWarps) return;
  int warps = launch->threads[1];
  const int64_t blocks = divideUp(domain, kernel.rows() ? 1 : kWarp);
  while (isOnly && warps > 2 && blocks * divideUp(parts, warps) < kSomeBlocks) warps /= 2;
  const int64_t splits = std::min(kManyBlocks / blocks, divideUp(parts, warps));
  if (splits < 2) return;
  *launch = {blocks, {kWarp, warps, 1}, static_cast<int>(splits)};
  const size_t reduces = kernel.stages[sharedSweep(kernel)].reduces.size();
  launch->partBytes = reduces * domain * parts * sizeof(uint64_t);
}

// Rows are kept where a multiprocessor of 227 KiB still has seven warps.
constexpr int64_t kWarpSharedBytes = 32 << 10;
// Blocks of more than that share a multiprocessor badly.
constexpr int64_t kBlockSharedBytes = 32 << 10;

// Of the rows that a team keeps; 0 if they are too long.
int64_t sharedBytesOf(const Kernel& kernel, const int64_t* extents, int warps) {
  const int64_t length = sweptElements(kernel, extents, 0);
  if (length > kMostSharedBytes) return 0;
  const int64_t places = divideUp(length, kRowPlaces) * kRowPlaces;
  const int64_t bytes = places * sharedRows(kernel).bytesEach;
  return bytes <= std::min<int64_t>(kMostSharedBytes, warps * kWarpSharedBytes) ? bytes : 0;
}

// Fewer rows all have their warps at work at once.
constexpr int64_t kManyRows = 2 * kManyBlocks * kBlockWarps;

}  // namespace

bool mayBeShort(const Kernel& kernel, const int64_t* extents) {
  return kernel.rows() && extents[0] <= kLanes && sweptElements(kernel, extents, 1) <= kLanes;
}

std::vector<Variant> variantsOf(const Kernel& kernel) {
  if (!kernel.rows()) return {Variant::Usual};
  if (sharedRows(kernel).bytesEach == 0) return {Variant::Usual, Variant::Short};
  return {Variant::Usual, Variant::Shared, Variant::Short};
}

Variant variantOf(const Kernel& kernel, const Launch& launch) {
  return launch.sharedBytes > 0                       ? Variant::Shared
         : kernel.rows() && launch.threads[0] > kWarp ? Variant::Short
                                                      : Variant::Usual;
}

std::string functionName(const std::string& entry, Variant variant) {
  constexpr const char* kEnds[kVariants] = {"", "_shared", "_short"};
  return entry + kEnds[static_cast<int>(variant)];
}

int sharedSweep(const Kernel& kernel) {
  const auto sweep = std::ranges::find(kernel.stages, true, &KernelStage::sweep);
  const bool mayBe = sweep != kernel.stages.end() && !sweep->reduces.empty();
  return mayBe ? static_cast<int>(sweep - kernel.stages.begin()) : -1;
}

int packLength(const Kernel& kernel) {
  // Bytes of one access, and of what a thread may hold in registers of the elements of all.
  constexpr int kAccess = 16, kHeld = 256;
  int widest = kAccess, held = 0;
  bool contiguous = false;
  for (const KernelOperand& operand : kernel.operands) {
    if (operand.role == KernelOperand::Role::Index || operand.strides[0] == Stride::Zero) continue;
    const int size = static_cast<int>(getTypeSize(operand.type));
    held += std::max<int>(size, sizeof(uint32_t));
    if (operand.strides[0] == Stride::Any) continue;
    widest = contiguous ? std::max(widest, size) : size;
    contiguous = true;
  }
  int length = kAccess / widest;
  while (length > 1 && length * held > kHeld) length /= 2;
  return length;
}

Launch launchOf(const Kernel& kernel, const int64_t* extents) {
  const int64_t domain = kernelDomain(kernel, extents);
  if (domain == 0) return {0, {1, 1, 1}};
  const auto blocksFor = [](int64_t items, int64_t each) {
    return std::min(divideUp(items, each), kMostBlocks);
  };
  if (kernel.reduced == 0) {
    // Where blocks are plenty, threads take several packs, which saves what comes before the first.
    constexpr int64_t kPlenty = 4 * kManyBlocks, kPacksEach = 4;
    const int64_t packs = divideUp(extents[0], packLength(kernel));
    const int64_t blocks = blocksFor(domain / extents[0] * packs, kBlockThreads);
    return {std::max(std::min(blocks, kPlenty), blocks / kPacksEach), {kBlockThreads, 1, 1}};
  }
  if (domain >= kManyRows && mayBeShort(kernel, extents)) {
    return {blocksFor(domain, kBlockThreads), {kBlockThreads, 1, 1}};
  }
  const int64_t parts = partsOf(kernel, extents);
  const uint64_t atOnce = std::clamp<int64_t>(parts, 1, kBlockWarps);
  const int warps = static_cast<int>(std::bit_ceil(atOnce));
  // Teams of one warp share a block.
  int teams = kernel.rows() && warps == 1 ? kBlockWarps : 1;
  const int64_t shared = kernel.rows() ? sharedBytesOf(kernel, extents, warps) : 0;
  while (teams > 1 && teams * shared > kBlockSharedBytes) teams /= 2;
  Launch launch{blocksFor(domain, kernel.rows() ? teams : kWarp), {kWarp, warps, teams}};
  split(kernel, domain, parts, &launch);
  if (launch.splits == 1) launch.sharedBytes = static_cast<int>(teams * shared);
  return launch;
}

std::vector<uint64_t> packArguments(const Kernel& kernel, const KernelArgs& args,
                                    const LaunchMemory& memory) {
  std::vector<uint64_t> words(args.extents, args.extents + kernel.rank);
  words.insert(words.end(), args.scalars, args.scalars + kernel.scalars.size());
  for (size_t i = 0; i < kernel.operands.size(); ++i) {
    words.push_back(reinterpret_cast<uint64_t>(args.data[i]));
    for (int axis = 0; axis < kernel.rank; ++axis) {
      if (kernel.operands[i].strides[axis] == Stride::Any) {
        words.push_back(static_cast<uint64_t>(args.strides[i * kernel.rank + axis]));
      }
    }
  }
  const auto add = [&](const void* pointer) {
    words.push_back(reinterpret_cast<uint64_t>(pointer));
  };
  if (kernel.gatherCount() > 0) add(memory.report);
  if (maySplit(kernel)) {
    add(memory.parts);
    add(memory.counters);
  }
  return words;
}

}  // namespace fl::ir::cuda
