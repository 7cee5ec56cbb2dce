#include "fl/runtime/cuda/HandWritten.h"

#include <map>
#include <mutex>
#include <tuple>

#include "fl/base/Flags.h"
#include "fl/base/Log.h"

namespace fl::runtime::cuda {
namespace {

CUfunction load(Context& context, const ir::Artifact& artifact) {
  const Driver& driver = context.use();
  CUmodule module = nullptr;  // for the life of the process
  CUfunction function = nullptr;
  const std::string what = "the code of a " + artifact.entry;
  context.check(driver.cuModuleLoadData(&module, artifact.bytes.c_str()), what);
  context.check(driver.cuModuleGetFunction(&function, module, artifact.entry.c_str()), what);
  return function;
}

}  // namespace

CUfunction handWritten(Context& context, ir::Op op, dtype type, const std::string& instead) {
  if (flags().jit == "off" || ir::cuda::handWrittenCompiler == nullptr) return nullptr;
  static std::mutex mutex;
  static auto& known = *new std::map<std::tuple<int, ir::Op, dtype>, CUfunction>();
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [found, isNew] = known.try_emplace({context.number(), op, type}, nullptr);
  if (!isNew) return found->second;
  try {
    const ir::Target target{ir::cuda::kTriple, context.architecture(), "", 0};
    found->second = load(context, ir::cuda::handWrittenCompiler(op, type, target));
  } catch (const std::exception& error) {
    logWarning(detail::concat(instead, ": ", error.what()));
  }
  return found->second;
}

}  // namespace fl::runtime::cuda
