// The CUDA emitter: kernels (fl/kernel/Kernel.h) to CUDA C++ that includes nothing.
// fl/kernel/cuda/Launch.h has what it takes to launch one.
//
// Relies on ir for meanings and on the kernel form alone; no CUDA header, library or GPU. Nvrtc.h
// compiles the text. Every function may be called from any thread and costs some microseconds, but
// emitCuda up to a millisecond for a kernel; it throws InternalError for a kernel that breaks a
// rule of the form.
//
// Results have the bits of the CPU's executors, sums included: the tree of Kernel.h is made of
// warps here. A warp takes a part of a row, lane l adding what index l modulo 32 has, and folds it
// by shuffles; of a column each lane takes a part of its own. Warps that share a kept element take
// its parts in turn and add them to the total in their order; where few elements are kept, so do
// blocks for the first sweep (ir::cuda::Launch::splits). The compiler must be told not to
// contract (--fmad=false), and divisions and roots must round correctly.
//
// Maps read and write as many neighbours along axis 0 at once as make 16 bytes, where memory is
// aligned for it, which each thread looks at. In-place launches are allowed as for the CPU: an
// output may be the very memory of an input with the same strides and element size.
#pragma once

#include <string>
#include <vector>

#include "fl/kernel/Kernel.h"

namespace fl::codegen::cuda {

struct NamedKernel {
  std::string name;
  const ir::Kernel* kernel;
  int launches = 1;  // that its code makes at once, at most; several: ir::cuda::mayGroup()
};

// One module of all kernels, each a __global__ function of its name for each variant, with one
// parameter, a struct of 64-bit words (ir::cuda::packArguments; for several launches packGroup).
std::string emitCuda(const std::vector<NamedKernel>& kernels);

// The kernel of fl/kernel/cuda/Scatter.h, for Scatter or ScatterAdd.
std::string emitScatter(ir::Op op, dtype type);
// That of fl/kernel/cuda/Transpose.h.
std::string emitTranspose();

}  // namespace fl::codegen::cuda
