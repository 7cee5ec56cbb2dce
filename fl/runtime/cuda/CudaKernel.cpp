#include "fl/runtime/cuda/CudaKernel.h"

#include <stdexcept>

#include "fl/base/Log.h"
#include "fl/kernel/cuda/SharedRows.h"
#include "fl/runtime/StepLabel.h"

namespace fl::runtime::cuda {

CudaKernel::CudaKernel(Context& context, const ir::Kernel& kernel, int launches)
    : context_(context),
      kernel_(kernel),
      launches_(launches),
      label_(std::make_shared<const std::string>(kernelLabel(kernel))) {}

// Launches of it may still be in the stream.
CudaKernel::~CudaKernel() {
  if (module_ == nullptr) return;
  try {
    context_.finish();
    context_.use().cuModuleUnload(module_);
  } catch (const std::runtime_error& error) {
    logWarning(error.what());
  }
}

void CudaKernel::setArtifact(const ir::Artifact& artifact) {
  const Driver& driver = context_.use();
  CUfunction function = nullptr;
  CUresult result = driver.cuModuleLoadData(&module_, artifact.bytes.c_str());
  if (result == CUDA_SUCCESS) {
    result = driver.cuModuleGetFunction(&function, module_, artifact.entry.c_str());
  }
  const auto set = [&](CUfunction_attribute attribute, int value) {
    if (result == CUDA_SUCCESS) result = driver.cuFuncSetAttribute(function, attribute, value);
  };
  if (ir::cuda::sharedRows(kernel_).bytesEach > 0) {
    set(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, context_.sharedBytes());
    set(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, CU_SHAREDMEM_CARVEOUT_MAX_SHARED);
  }
  FL_INTERNAL_CHECK(result == CUDA_SUCCESS, "the code of ", *label_,
                    " cannot be loaded: ", describe(driver, result));
  function_.store(function, std::memory_order_release);
}

const tile::TileProgram& CudaKernel::interpreted() const {
  std::call_once(once_, [&] { program_.emplace(kernel_); });
  return *program_;
}

}  // namespace fl::runtime::cuda
