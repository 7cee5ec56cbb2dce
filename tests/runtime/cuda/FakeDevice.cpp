#include "tests/runtime/cuda/FakeDevice.h"

#include <cstring>

#include "tests/runtime/cuda/FakeGpuState.h"

namespace fl::testing {
namespace {
int contexts[kMostFakeDevices];
int devices = 1;
thread_local CUcontext current = nullptr;
}  // namespace

void setFakeDevices(int count) { devices = count; }

CUcontext currentFakeContext() { return current; }

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
  table->cuDeviceGet = [](CUdevice* device, int number) {
    *device = number;
    return number < devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  };
  table->cuDeviceGetCount = [](int* count) {
    *count = devices;
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
  table->cuDevicePrimaryCtxRetain = [](CUcontext* context, CUdevice device) {
    *context = reinterpret_cast<CUcontext>(&contexts[device]);
    return CUDA_SUCCESS;
  };
  table->cuCtxSetCurrent = [](CUcontext context) {
    return call("cuCtxSetCurrent", [&](State&) {
      current = context;
      return CUDA_SUCCESS;
    });
  };
  table->cuDeviceGetDefaultMemPool = [](CUmemoryPool* pool, CUdevice device) {
    *pool = reinterpret_cast<CUmemoryPool>(&contexts[device]);
    return CUDA_SUCCESS;
  };
  table->cuDeviceCanAccessPeer = [](int* can, CUdevice device, CUdevice) {
    *can = device == 1;
    return CUDA_SUCCESS;
  };
  table->cuMemPoolSetAccess = [](CUmemoryPool pool, const CUmemAccessDesc* access, size_t) {
    return pool == reinterpret_cast<CUmemoryPool>(&contexts[1 - access->location.id])
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
  };
}

}  // namespace fl::testing
