#include "tests/runtime/cuda/FakeDevice.h"

#include <cstring>

namespace fl::testing {
namespace {
int theContext = 0;
}  // namespace

void describeFakeDevice(runtime::cuda::Driver* table) {
  table->cuInit = [](unsigned) { return CUDA_SUCCESS; };
  table->cuDriverGetVersion = [](int* version) {
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
  };
  table->cuGetErrorName = [](CUresult, const char** name) {
    *name = "CUDA_ERROR_OF_A_TEST";
    return CUDA_SUCCESS;
  };
  table->cuGetErrorString = [](CUresult, const char** words) {
    *words = "told to fail";
    return CUDA_SUCCESS;
  };
  table->cuDeviceGet = [](CUdevice* device, int) {
    *device = 0;
    return CUDA_SUCCESS;
  };
  table->cuDeviceGetCount = [](int* count) {
    *count = 1;
    return CUDA_SUCCESS;
  };
  table->cuDeviceGetAttribute = [](int* value, CUdevice_attribute which, CUdevice) {
    *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR            ? 9
             : which == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? kFakeSharedBytes
                                                                              : 0;
    return CUDA_SUCCESS;
  };
  table->cuDeviceGetName = [](char* name, int bytes, CUdevice) {
    std::strncpy(name, "a GPU that is none", bytes);
    return CUDA_SUCCESS;
  };
  table->cuDeviceTotalMem = [](size_t* bytes, CUdevice) {
    *bytes = kFakeMemory;
    return CUDA_SUCCESS;
  };
  table->cuDevicePrimaryCtxRetain = [](CUcontext* context, CUdevice) {
    *context = reinterpret_cast<CUcontext>(&theContext);
    return CUDA_SUCCESS;
  };
  table->cuCtxSetCurrent = [](CUcontext) { return CUDA_SUCCESS; };
}

}  // namespace fl::testing
