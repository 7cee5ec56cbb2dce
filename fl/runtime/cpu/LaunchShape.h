// How the CPU runs a launch: in which parts, in which order, and how results are written. Decided
// once, when a schedule is loaded.
#pragma once

#include <cstdint>
#include <vector>

#include "fl/kernel/Artifact.h"
#include "fl/kernel/Schedule.h"

namespace fl::runtime::cpu {

// Elements below which a kernel is not worth a second thread, and the least a thread should get.
inline constexpr int64_t kSequentialElements = 1 << 14;
inline constexpr int64_t kChunkElements = 1 << 13;

// Items of the domain that a thread takes at a time; the domain if one thread does it. A launch
// that runs alone is cut finer where an element takes long; others beside it give threads enough.
int64_t chooseGrain(const ir::Kernel& kernel, const std::vector<int64_t>& extents, int64_t domain,
                    int64_t elements, bool alone);

// A map that reads the same memory at every index of its last axis, and more than caches hold,
// takes a piece of it for each of these indices in turn; 1 for all others.
int64_t turnsOf(const ir::Kernel& kernel, const ir::LaunchStep& step, int64_t domain);
inline constexpr int64_t kTurnElements = 1 << 16;

// How a step's results are best written: around the caches by large maps, and kernels that keep
// rows, that write along memory; by rows shorter than a vector, many of them side by side.
ir::Stores chooseStores(const ir::Schedule& schedule, const ir::LaunchStep& step);
// Where streamed stores may begin, in elements.
inline constexpr Dim kStreamAlignment = 64;

}  // namespace fl::runtime::cpu
