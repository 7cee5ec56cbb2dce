#include "fl/codegen/cuda/Emitter.h"

#include "fl/codegen/cuda/Functions.h"
#include "fl/codegen/cuda/KernelWriter.h"
#include "fl/codegen/cuda/Prelude.h"

namespace fl::codegen::cuda {

std::string emitCuda(const std::vector<NamedKernel>& kernels) {
  Functions functions;
  std::string text;
  for (const NamedKernel& each : kernels) {
    ir::verify(*each.kernel);
    text += "\n" + KernelWriter(*each.kernel, each.name, each.launches, functions).write();
  }
  return kPrelude + ("\n" + functions.text()) + text;
}

}  // namespace fl::codegen::cuda
