// The CUDA driver's functions, opened at run time (fl/base/CudaLibrary.h): one program runs on
// machines with and without a GPU.
//
// The table is a struct of function pointers, so that a test can put a driver of its own in its
// place. All functions may be called from any thread.
#pragma once

#include <cuda.h>

#include <string>

namespace fl::runtime::cuda {

struct Driver {
#define FL_DRIVER(function) decltype(&::function) function = nullptr;
#include "fl/runtime/cuda/Driver.def"
#undef FL_DRIVER
};

// "" if there is a driver that runs what fl is built for, and a device; else why not, in one
// sentence with the versions that are needed and there. The first call opens the library and
// initialises the driver, which takes a second on some machines.
const std::string& driverProblem();

// Throws std::runtime_error with driverProblem(), if there is one.
const Driver& driver();

// For tests: the driver of this process from now on. It outlives the process's use of it.
void installDriver(const Driver& table);

// "an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)"
std::string describe(const Driver& driver, CUresult error);

}  // namespace fl::runtime::cuda
