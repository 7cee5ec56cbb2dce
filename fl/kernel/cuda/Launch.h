// How a CUDA kernel is launched: what fl/codegen/cuda, which writes it, and fl/runtime/cuda, which
// runs it, agree on. Relies on the kernel form alone, no CUDA header.
//
// A kernel's code is one __global__ function with one parameter, a struct of 64-bit words.
#pragma once

#include <cstdint>
#include <vector>

#include "fl/kernel/Artifact.h"
#include "fl/kernel/Kernel.h"

namespace fl::ir::cuda {

// Target::triple of GPUs; features is the architecture ("sm_90"). An Artifact's bytes are what
// cuModuleLoadData() takes, and its entry is the function.
inline constexpr char kTriple[] = "nvptx64-nvidia-cuda";
inline bool isGpu(const Target& target) { return target.triple == kTriple; }

// What a launch takes since CUDA 12.1.
inline constexpr int kParameterBytes = 32764;

inline constexpr int kWarp = 32, kBlockWarps = 8, kBlockThreads = kWarp * kBlockWarps;

// Elements of a map that a thread takes at once.
int packLength(const Kernel& kernel);

// A launch of the whole domain. No blocks: there is nothing to do, and CUDA would refuse.
struct Launch {
  int64_t blocks;
  int threads[3];
};
Launch launchOf(const Kernel& kernel, const int64_t* extents);

// Where the kernels of a launch report an index out of bounds; see Lookups in
// fl/codegen/cuda/Prelude.cpp.
struct GatherReport {
  int64_t gather = -1;  // its number among the kernel's values; -1: all were good
  BadIndex bad = {};
};

// The words of the kernel's parameter. Pointers in `args` and `report` are the device's; args
// has no bad index or scratch of its own. At most kParameterBytes.
std::vector<uint64_t> packArguments(const Kernel& kernel, const KernelArgs& args,
                                    GatherReport* report);

}  // namespace fl::ir::cuda
