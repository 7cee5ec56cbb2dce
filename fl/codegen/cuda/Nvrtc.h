// CUDA C++ to machine code, by NVRTC, which needs no GPU, driver or headers.
//
// The library is opened at the first call (fl/base/CudaLibrary.h). All functions may be called from
// any thread; NVRTC compiles several programs at once.
#pragma once

#include <string>

namespace fl::codegen::cuda {

// "" if NVRTC can be used, for an architecture ("sm_90") if one is given; else why not, in one
// sentence.
std::string nvrtcProblem(const std::string& architecture = "");

// What changes code but is not in the text: version and options.
std::string nvrtcIdentity();

struct CompiledModule {
  std::string cubin, ptx;
  std::string log;  // of the assembler too
};

// Code for an architecture ("sm_90") and no other; `name` stands for the module in messages. Takes
// 20 ms and about as much a kernel. Throws std::runtime_error with nvrtcProblem(), and
// InternalError with the log for text that does not compile.
CompiledModule compileCuda(const std::string& source, const std::string& name,
                           const std::string& architecture);

}  // namespace fl::codegen::cuda
