#include "fl/codegen/cuda/Nvrtc.h"

#include <cuda.h>

#include <sstream>
#include <stdexcept>

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

Api loadApi() {
  if (installed != nullptr) return {*installed, ""};
  CudaLibrary library("nvrtc", kFileVersion, CUDA_VERSION);
  Api api;
#define FL_NVRTC(function) \
  api.function = reinterpret_cast<decltype(api.function)>(library.find(#function));
#include "fl/codegen/cuda/Nvrtc.def"
#undef FL_NVRTC
  api.problem = library.problem();
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

std::string nvrtcProblem() { return api().problem; }

std::string nvrtcIdentity() {
  int major = 0, minor = 0;
  usableApi().nvrtcVersion(&major, &minor);
  std::string identity = detail::concat("NVRTC ", major, ".", minor);
  for (const char* option : options()) identity += std::string(" ") + option;
  return identity;
}

CompiledModule compileCuda(const std::string& source, const std::string& name,
                           const std::string& architecture) {
  return Program(usableApi(), source, name).compile(architecture);
}

// Three lines a kernel: "... Compiling entry function 'k0' for 'sm_90'", "8 bytes stack frame, 8
// bytes spill stores, 16 bytes spill loads" and "... Used 40 registers, ..., 64 bytes smem".
std::vector<KernelResources> resourcesOf(const std::string& log) {
  std::vector<KernelResources> all;
  std::istringstream lines(log);
  const auto numberBefore = [](const std::string& line, const char* words) {
    const size_t at = line.find(words);
    if (at == std::string::npos) return 0;
    return std::stoi(line.substr(line.find_last_of(", ", at - 2) + 1));
  };
  constexpr char kBegin[] = "Compiling entry function '";
  for (std::string line; std::getline(lines, line);) {
    if (const size_t at = line.find(kBegin); at != std::string::npos) {
      const size_t name = at + sizeof(kBegin) - 1;
      all.push_back({line.substr(name, line.find('\'', name) - name)});
    } else if (!all.empty() && line.find("bytes stack frame") != std::string::npos) {
      all.back().stackBytes = numberBefore(line, " bytes stack frame");
      all.back().spilledBytes = numberBefore(line, " bytes spill stores");
    } else if (!all.empty() && line.find(" registers") != std::string::npos) {
      all.back().registers = numberBefore(line, " registers");
      all.back().sharedBytes = numberBefore(line, " bytes smem");
    }
  }
  return all;
}

}  // namespace fl::codegen::cuda
