#include "tests/runtime/cuda/FakeNvrtc.h"

#include <cstring>
#include <string>

#include "fl/codegen/cuda/NvrtcApi.h"

namespace fl::testing {

static constexpr char kPtx[] = "// of a GPU that is none\n";

void installFakeNvrtc() {
  const auto text = [](nvrtcProgram program) { return reinterpret_cast<std::string*>(program); };
  static const auto& textOf = *new decltype(text)(text);
  codegen::cuda::NvrtcApi table;
  table.nvrtcVersion = [](int* major, int* minor) {
    *major = *minor = 0;
    return NVRTC_SUCCESS;
  };
  table.nvrtcGetNumSupportedArchs = [](int* count) {
    *count = 1;
    return NVRTC_SUCCESS;
  };
  table.nvrtcGetSupportedArchs = [](int* known) {
    *known = 90;
    return NVRTC_SUCCESS;
  };
  table.nvrtcGetErrorString = [](nvrtcResult) { return "no error is made here"; };
  table.nvrtcCreateProgram = [](nvrtcProgram* program, const char* source, const char*, int,
                                const char* const*, const char* const*) {
    *program = reinterpret_cast<nvrtcProgram>(new std::string(source));
    return NVRTC_SUCCESS;
  };
  table.nvrtcDestroyProgram = [](nvrtcProgram* program) {
    delete textOf(*program);
    return NVRTC_SUCCESS;
  };
  table.nvrtcCompileProgram = [](nvrtcProgram, int, const char* const*) { return NVRTC_SUCCESS; };
  table.nvrtcGetProgramLogSize = [](nvrtcProgram, size_t* size) {
    *size = 0;
    return NVRTC_SUCCESS;
  };
  table.nvrtcGetProgramLog = [](nvrtcProgram, char*) { return NVRTC_SUCCESS; };
  table.nvrtcGetCUBINSize = [](nvrtcProgram program, size_t* size) {
    *size = textOf(program)->size();
    return NVRTC_SUCCESS;
  };
  table.nvrtcGetCUBIN = [](nvrtcProgram program, char* cubin) {
    std::memcpy(cubin, textOf(program)->data(), textOf(program)->size());
    return NVRTC_SUCCESS;
  };
  table.nvrtcGetPTXSize = [](nvrtcProgram, size_t* size) {
    *size = sizeof(kPtx);
    return NVRTC_SUCCESS;
  };
  table.nvrtcGetPTX = [](nvrtcProgram, char* ptx) {
    std::memcpy(ptx, kPtx, sizeof(kPtx));
    return NVRTC_SUCCESS;
  };
  codegen::cuda::installNvrtc(table);
}

}  // namespace fl::testing
