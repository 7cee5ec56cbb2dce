#include "fl/codegen/cuda/Nvrtc.h"

#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "fl/base/CudaLibrary.h"
#include "fl/base/Error.h"
#include "fl/codegen/cuda/NvrtcApi.h"

namespace fl::codegen::cuda {
namespace {

constexpr int kFileVersion = CUDA_VERSION / 1000;

struct Api : NvrtcApi {
  std::string problem;
};

const NvrtcApi* installed = nullptr;  // by a test

std::string versionOf(const NvrtcApi& api) {
  int major = 0, minor = 0;
  api.nvrtcVersion(&major, &minor);
  return detail::concat(major, ".", minor);
}

Api loadApi() {
  if (installed != nullptr) return {*installed, ""};
  CudaLibrary library("nvrtc", kFileVersion, CUDA_VERSION);
  Api api;
#define FL_NVRTC(function) \
  api.function = reinterpret_cast<decltype(api.function)>(library.find(#function));
#include "fl/codegen/cuda/Nvrtc.def"
#undef FL_NVRTC
  api.problem = library.problem();
  if (!api.problem.empty()) return api;
  // NVRTC looks for a library of its own where the loader does, which knows no folder of
  // FL_CUDA_LIB; one that is open it finds. What is amiss it tells itself.
  const std::string own = "libnvrtc-builtins.so." + versionOf(api);
  dlopen((std::filesystem::path(library.path()).parent_path() / own).c_str(), RTLD_NOW);
  return api;
}

const Api& api() {
  static const Api& loaded = *new Api(loadApi());
  return loaded;
}

const Api& usableApi() {
  if (!api().problem.empty()) throw std::runtime_error(api().problem);
  return api();
}

// Results have the bits of the other executors: nothing is contracted or approximated.
const std::vector<const char*>& options() {
  static const std::vector<const char*> all = {"--std=c++17",      "--fmad=false",
                                               "--ftz=false",      "--prec-div=true",
                                               "--prec-sqrt=true", "--ptxas-options=-v"};
  return all;
}

class Program {
 public:
  Program(const Api& api, const std::string& source, const std::string& name)
      : api_(api), name_(name) {
    check(api.nvrtcCreateProgram(&program_, source.c_str(), (name + ".cu").c_str(), 0, nullptr,
                                 nullptr),
          "");
  }
  ~Program() { api_.nvrtcDestroyProgram(&program_); }
  Program(const Program&) = delete;

  CompiledModule compile(const std::string& architecture) {
    const std::string target = "--gpu-architecture=" + architecture;
    std::vector<const char*> all = options();
    all.push_back(target.c_str());
    const nvrtcResult result =
        api_.nvrtcCompileProgram(program_, static_cast<int>(all.size()), all.data());
    CompiledModule module;
    module.log = text(api_.nvrtcGetProgramLogSize, api_.nvrtcGetProgramLog);
    check(result, " for " + architecture + ": " + module.log);
    module.cubin = text(api_.nvrtcGetCUBINSize, api_.nvrtcGetCUBIN);
    module.ptx = text(api_.nvrtcGetPTXSize, api_.nvrtcGetPTX);
    return module;
  }

 private:
  void check(nvrtcResult result, const std::string& words) const {
    FL_INTERNAL_CHECK(result == NVRTC_SUCCESS, name_, words, " ", api_.nvrtcGetErrorString(result));
  }
  std::string text(nvrtcResult (*sizeOf)(nvrtcProgram, size_t*),
                   nvrtcResult (*read)(nvrtcProgram, char*)) const {
    size_t size = 0;
    check(sizeOf(program_, &size), "");
    std::string bytes(size, '\0');
    check(read(program_, bytes.data()), "");
    return bytes;
  }

  const Api& api_;
  const std::string name_;
  nvrtcProgram program_ = nullptr;
};

}  // namespace

void installNvrtc(const NvrtcApi& table) { installed = new NvrtcApi(table); }

std::string nvrtcProblem(const std::string& architecture) {
  if (!api().problem.empty() || architecture.empty()) return api().problem;
  int count = 0;
  api().nvrtcGetNumSupportedArchs(&count);
  std::vector<int> known(count);
  api().nvrtcGetSupportedArchs(known.data());
  const auto is = [&](int each) { return architecture == detail::concat("sm_", each); };
  if (std::ranges::any_of(known, is)) return "";
  return detail::concat("CUDA: NVRTC ", versionOf(api()),
                        " makes no code for a GPU of architecture ", architecture,
                        ": it knows those from sm_", known.front(), " to sm_", known.back());
}

std::string nvrtcIdentity() {
  std::string identity = "NVRTC " + versionOf(usableApi());
  for (const char* option : options()) identity += std::string(" ") + option;
  return identity;
}

CompiledModule compileCuda(const std::string& source, const std::string& name,
                           const std::string& architecture) {
  return Program(usableApi(), source, name).compile(architecture);
}

}  // namespace fl::codegen::cuda
