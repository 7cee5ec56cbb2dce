#include "fl/runtime/cuda/CudaKernel.h"

#include <stdexcept>

#include "fl/base/Log.h"
#include "fl/runtime/StepLabel.h"

namespace fl::runtime::cuda {

using ir::cuda::Variant;

CudaKernel::CudaKernel(Context& context, const ir::Kernel& kernel, int launches)
    : context_(context),
      kernel_(kernel),
      launches_(launches),
      label_(std::make_shared<const std::string>(kernelLabel(kernel))) {}

// Launches of it may still be in the stream.
CudaKernel::~CudaKernel() {
  if (module_ == nullptr || context_.tryUse() == nullptr) return;
  try {
    context_.finish();
    context_.use().cuModuleUnload(module_);
  } catch (const std::runtime_error& error) {
    logWarning(error.what());
  }
}

void CudaKernel::setArtifact(const ir::Artifact& artifact) {
  const Driver& driver = context_.use();
  const auto check = [&](CUresult result) {
    FL_INTERNAL_CHECK(result == CUDA_SUCCESS, "the code of ", *label_,
                      " cannot be loaded: ", describe(driver, result));
  };
  check(driver.cuModuleLoadData(&module_, artifact.bytes.c_str()));
  for (const Variant variant : ir::cuda::variantsOf(kernel_)) {
    CUfunction& function = functions_[static_cast<int>(variant)];
    const std::string name = functionName(artifact.entry, variant);
    check(driver.cuModuleGetFunction(&function, module_, name.c_str()));
    if (variant != Variant::Shared) continue;
    const auto set = driver.cuFuncSetAttribute;
    check(set(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, context_.sharedBytes()));
    check(set(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
              CU_SHAREDMEM_CARVEOUT_MAX_SHARED));
  }
  compiled_.store(true, std::memory_order_release);
}

const tile::TileProgram& CudaKernel::interpreted() const {
  std::call_once(once_, [&] { program_.emplace(kernel_); });
  return *program_;
}

}  // namespace fl::runtime::cuda
