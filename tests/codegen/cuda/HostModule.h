// Runs generated CUDA C++ on the CPU, for tests on machines without a GPU.
//
// A module is compiled by g++ against KernelSide.h and loaded. Blocks run one after the other; a
// block's threads are fibers on this thread that switch where they synchronise, so a run is
// deterministic: warps and their lanes go in forward or, to show what order hides, in reversed
// order. What synchronises wrongly ends in an InternalError; what reads beyond its operands ends
// the test, as KernelLaunch.h says. One thread at a time may launch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fl/codegen/cuda/Emitter.h"
#include "fl/kernel/cuda/Launch.h"

namespace fl::testing {

class HostModule {
 public:
  // Throws InternalError with the compiler's words. Half a second for a dozen kernels.
  explicit HostModule(const std::vector<codegen::cuda::NamedKernel>& kernels);
  // The same for text: its __global__ functions.
  explicit HostModule(const std::string& source);
  ~HostModule();
  HostModule(const HostModule&) = delete;

  // How many a function's parameter has.
  size_t words(const std::string& function) const;
  void launch(const std::string& function, const ir::cuda::Launch& launch,
              const std::vector<uint64_t>& words, bool reversed) const;
  // Of the function that is for such launches.
  void launch(const codegen::cuda::NamedKernel& kernel, const ir::cuda::Launch& launch,
              const std::vector<uint64_t>& words, bool reversed) const;

 private:
  using Call = uint64_t (*)(const uint64_t* words);
  Call callOf(const std::string& function) const;

  void* library_ = nullptr;
};

}  // namespace fl::testing
