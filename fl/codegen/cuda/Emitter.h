// The CUDA emitter: kernels (fl/kernel/Kernel.h) to CUDA C++ that includes nothing, and what it
// takes to launch one.
//
// Relies on ir for meanings and on the kernel form alone; no CUDA header, library or GPU. Nvrtc.h
// compiles the text. Every function may be called from any thread and costs some microseconds, but
// emitCuda up to a millisecond for a kernel; it throws InternalError for a kernel that breaks a
// rule of the form.
//
// Results have the bits of the CPU's executors, sums included: the tree of Kernel.h is made of
// warps here. A warp takes a part of a row, lane l adding what index l modulo 32 has, and folds it
// by shuffles; of a column each lane takes a part of its own. Warps that share a kept element take
// its parts in turn and add them to the total in their order. The compiler must be told not to
// contract (--fmad=false), and divisions and roots must round correctly.
//
// Maps read and write as many neighbours along axis 0 at once as make 16 bytes, where memory is
// aligned for it, which each thread looks at. In-place launches are allowed as for the CPU: an
// output may be the very memory of an input with the same strides and element size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fl/kernel/Kernel.h"

namespace fl::codegen::cuda {

struct NamedKernel {
  std::string name;
  const ir::Kernel* kernel;
};

// One module of all kernels, each a __global__ function of its name with one parameter, a struct
// of 64-bit words (packArguments).
std::string emitCuda(const std::vector<NamedKernel>& kernels);

// A launch of the whole domain. No blocks: there is nothing to do, and CUDA would refuse.
struct Launch {
  int64_t blocks;
  int threads[3];
};
Launch launchOf(const ir::Kernel& kernel, const int64_t* extents);

// Where the kernels of a launch report an index out of bounds; see Lookups in Prelude.cpp.
struct GatherReport {
  int64_t gather = -1;  // its number among the kernel's values; -1: all were good
  ir::BadIndex bad = {};
};

// The words of the kernel's parameter. Pointers in `args` and `report` are the device's; args
// has no bad index or scratch of its own. At most 32764 bytes, which a launch takes since CUDA
// 12.1.
std::vector<uint64_t> packArguments(const ir::Kernel& kernel, const ir::KernelArgs& args,
                                    GatherReport* report);

}  // namespace fl::codegen::cuda
