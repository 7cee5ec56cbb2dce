// A libcuda.so.1 that takes the code of kernels and has no GPU: with it cuDNN makes plans whose
// kernels it compiles itself. Without CUDA's headers, whose names these are.

extern "C" {

#define FL_REFUSES(function) \
  int function() { return 100; }  // CUDA_ERROR_NO_DEVICE
FL_REFUSES(cuCtxGetCurrent)
FL_REFUSES(cuCtxGetLimit)
FL_REFUSES(cuCtxPopCurrent)
FL_REFUSES(cuCtxPushCurrent)
FL_REFUSES(cuDeviceGet)
FL_REFUSES(cuDeviceGetCount)
FL_REFUSES(cuDriverGetVersion)
FL_REFUSES(cuGetErrorName)
FL_REFUSES(cuInit)
FL_REFUSES(cuKernelGetAttribute)
FL_REFUSES(cuLaunchCooperativeKernel)
FL_REFUSES(cuLaunchKernel)
FL_REFUSES(cuLaunchKernelEx)
FL_REFUSES(cuLibraryLoadFromFile)
FL_REFUSES(cuLinkAddData)
FL_REFUSES(cuLinkComplete)
FL_REFUSES(cuLinkCreate)
FL_REFUSES(cuLinkDestroy)
FL_REFUSES(cuOccupancyMaxPotentialClusterSize)
FL_REFUSES(cuStreamGetCtx)
#undef FL_REFUSES

int cuGetErrorString(int, const char** text) {
  *text = "there is no GPU";
  return 0;
}
int cuLibraryLoadData(void** library) {
  *library = library;
  return 0;
}
int cuLibraryGetKernel(void** kernel) {
  *kernel = kernel;
  return 0;
}
int cuLibraryUnload() { return 0; }
int cuKernelSetAttribute() { return 0; }

}  // extern "C"
