// Compiles kernels for this machine and runs launches; shared by the emitter's tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "fl/base/Error.h"
#include "fl/base/Flags.h"
#include "fl/codegen/cpu/Emitter.h"
#include "fl/runtime/cpu/CodeLoader.h"
#include "fl/tile/HostTarget.h"
#include "tests/Seed.h"
#include "tests/codegen/KernelLaunch.h"
#include "tests/codegen/KernelMaker.h"

namespace fl::testing {

// What this machine has, the same without AVX512_BF16, and x86-64-v3.
inline std::vector<ir::Target> targets() {
  constexpr std::string_view kBfloat16 = ",+avx512bf16";
  std::vector<ir::Target> result = {tile::hostTarget()};
  const size_t bfloat16 = result[0].features.find(kBfloat16);
  if (bfloat16 != std::string::npos) {
    result.push_back(result[0]);
    result.back().features.erase(bfloat16, kBfloat16.size());
  }
  flags().cpu = "x86-64-v3";
  const ir::Target lower = tile::hostTarget();
  flags().cpu = "";
  if (lower != result[0]) result.push_back(lower);
  return result;
}

// LLVM's verifier looks at the module first.
inline std::shared_ptr<runtime::cpu::LoadedCode> compile(const ir::Kernel& kernel,
                                                         const ir::Target& target,
                                                         ir::Stores stores = ir::Stores::Cached) {
  flags().check = "verify";
  return runtime::cpu::LoadedCode::load(codegen::cpu::emitKernel(kernel, target, "kernel", stores));
}

inline void run(const runtime::cpu::LoadedCode& code, const KernelLaunch& launch) {
  const ir::KernelArgs args = launch.args();
  EXPECT_EQ(code.entry()(&args, 0, launch.domain()), -1);
}

}  // namespace fl::testing
