#include "fl/codegen/cuda/KernelCode.h"

#include <stdexcept>

#include "fl/base/Error.h"
#ifdef FL_HAS_CUDA
#include "fl/codegen/cuda/Emitter.h"
#include "fl/codegen/cuda/Nvrtc.h"
#include "fl/codegen/cuda/SourceHash.h"
#include "fl/kernel/cuda/Scatter.h"
#include "fl/kernel/cuda/Transpose.h"
#endif

namespace fl::codegen::cuda {

#ifdef FL_HAS_CUDA

std::string codeVersion(const ir::Target& target) {
  const std::string problem = nvrtcProblem(target.features);
  if (!problem.empty()) throw std::runtime_error(problem);
  return detail::concat(kSourceHash, " ", nvrtcIdentity());
}

ir::Artifact compileKernel(const ir::Kernel& kernel, int launches, const ir::Target& target,
                           const std::string& entry) {
  const std::string source = emitCuda({{entry, &kernel, launches}});
  return {entry, compileCuda(source, entry, target.features).cubin};
}

std::string ptxOf(const ir::Kernel& kernel, const ir::Target& target, const std::string& entry) {
  if (!nvrtcProblem().empty()) return "";
  return compileCuda(emitCuda({{entry, &kernel}}), entry, target.features).ptx.c_str();
}

namespace {

ir::Artifact compileHandWritten(ir::Op op, dtype type, const ir::Target& target) {
  const bool transposes = op == ir::Op::Transpose;
  const std::string entry = transposes ? ir::cuda::kTransposeEntry : ir::cuda::kScatterEntry;
  const std::string source = transposes ? emitTranspose() : emitScatter(op, type);
  return {entry, compileCuda(source, entry, target.features).cubin};
}

[[maybe_unused]] const bool isSet = (ir::cuda::handWrittenCompiler = compileHandWritten, true);

}  // namespace

#else  // no device has such a target

std::string codeVersion(const ir::Target&) { return ""; }

ir::Artifact compileKernel(const ir::Kernel&, int, const ir::Target&, const std::string&) {
  throw std::runtime_error("fl was built without CUDA");
}

std::string ptxOf(const ir::Kernel&, const ir::Target&, const std::string&) { return ""; }

#endif

}  // namespace fl::codegen::cuda
