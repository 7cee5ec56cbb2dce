// How a CUDA kernel is launched: what fl/codegen/cuda, which writes it, and fl/runtime/cuda, which
// runs it, agree on. Relies on the kernel form alone, no CUDA header.
//
// A kernel's code is a __global__ function with one parameter, a struct of 64-bit words; of rows
// one for each variant.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fl/kernel/Artifact.h"
#include "fl/kernel/Kernel.h"

namespace fl::ir::cuda {

// Target::triple of GPUs; features is the architecture ("sm_90"). An Artifact's bytes are what
// cuModuleLoadData() takes.
inline constexpr char kTriple[] = "nvptx64-nvidia-cuda";
inline bool isGpu(const Target& target) { return target.triple == kTriple; }

// What a launch takes since CUDA 12.1.
inline constexpr int kParameterBytes = 32764;

inline constexpr int kWarp = 32, kBlockWarps = 8, kBlockThreads = kWarp * kBlockWarps;

// Launches ask for no more, which devices have (but the oldest, of 64 KiB).
inline constexpr int kMostSharedBytes = 96 << 10;

// Elements of a map that a thread takes at once.
int packLength(const Kernel& kernel);

// A launch of the whole domain, a grid of blocks x splits. No blocks: there is nothing to do, and
// CUDA would refuse.
struct Launch {
  int64_t blocks;
  int threads[3];
  // So many blocks share the first sweep of the same kept elements, at most kMostShared times: each
  // takes some parts of the tree and puts them into memory of partBytes; the last one adds them and
  // goes on.
  int splits = 1;
  size_t partBytes = 0;  // 0 if there is one split
  // For SharedRows. It may be taken away: sweeps then read all they need from global memory.
  int sharedBytes = 0;
};
Launch launchOf(const Kernel& kernel, const int64_t* extents);

// Whether rows are so short that a thread may take one alone: at most kLanes turns of kLanes
// elements, which are one part. Threads along x do in blocks of more than a warp there, whose
// launches have neither splits nor shared memory; others are right as well.
bool mayBeShort(const Kernel& kernel, const int64_t* extents);

// What the code of rows has a function for each of, so that none holds registers or shared memory
// for another: launches whose threads have a row each, those with shared memory, and all others.
enum class Variant { Usual, Shared, Short };
inline constexpr int kVariants = 3;
// Those that a kernel has; other kernels have the usual one alone.
std::vector<Variant> variantsOf(const Kernel& kernel);
Variant variantOf(const Kernel& kernel, const Launch& launch);
// The function's name in code with that entry.
std::string functionName(const std::string& entry, Variant variant);

// The stage that blocks may share, the first sweep where it reduces; or -1.
int sharedSweep(const Kernel& kernel);
// Whether there are extents for which launches have splits.
inline bool maySplit(const Kernel& kernel) { return sharedSweep(kernel) >= 0; }
inline constexpr int kManyBlocks = 1 << 10, kMostShared = kManyBlocks / 2;

// Where the kernels of a launch report an index out of bounds; see Lookups in
// fl/codegen/cuda/Prelude.cpp.
struct GatherReport {
  int64_t gather = -1;  // its number among the kernel's values; -1: all were good
  BadIndex bad = {};
};

// The device's memory that a launch works with beside its operands'.
struct LaunchMemory {
  GatherReport* report = nullptr;  // of kernels with a Gather
  void* parts = nullptr;           // of launches with splits
  // kMostShared zeros, of launches with splits. They are zeros again after it.
  uint32_t* counters = nullptr;
};

// The words of the kernel's parameter. Pointers in `args` are the device's, too; it has no bad
// index or scratch of its own. At most kParameterBytes.
std::vector<uint64_t> packArguments(const Kernel& kernel, const KernelArgs& args,
                                    const LaunchMemory& memory);

// Makes the code of a kernel that is written by hand: Scatter.h, Transpose.h. fl/codegen/cuda sets
// it, and the runtime asks; null where that is not linked. Throws as codegen::cuda::compileKernel()
// does.
using HandWrittenCompiler = Artifact (*)(Op op, dtype type, const Target& target);
inline HandWrittenCompiler handWrittenCompiler = nullptr;

}  // namespace fl::ir::cuda
