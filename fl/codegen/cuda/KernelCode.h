// Kernels to what a GPU's driver loads: fl/codegen/cuda/Emitter.h and NVRTC in one step.
#pragma once

#include <string>

#include "fl/kernel/Artifact.h"
#include "fl/kernel/Kernel.h"

namespace fl::codegen::cuda {

// What code for a target depends on beside the kernel. Throws std::runtime_error, in one
// sentence, where kernels cannot be compiled.
std::string codeVersion(const ir::Target& target);

// A cubin for target.features. Takes some 25 ms; throws as codeVersion() does, and InternalError
// for what NVRTC refuses. `launches` is NamedKernel's.
ir::Artifact compileKernel(const ir::Kernel& kernel, int launches, const ir::Target& target,
                           const std::string& entry);

// The same as text: PTX, which NVRTC assembles; "" where kernels cannot be compiled.
std::string ptxOf(const ir::Kernel& kernel, const ir::Target& target, const std::string& entry);

}  // namespace fl::codegen::cuda
