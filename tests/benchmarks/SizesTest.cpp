// Kernels know no extents: what every operator compiled for one size serves the others, and gives
// the bits that eager gives.
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "benchmarks/OpCases.h"
#include "fl/runtime/Counters.h"
#include "fl/tensor/tensor.h"

namespace fl::bench {
namespace {

constexpr Dim kFirst = 4096;
constexpr Dim kOthers[] = {1024, 16384, 65536, 262144};
// Dimensions of 1, of up to 16 and of more elements have kernels of their own, and so have many
// short rows.
constexpr uint64_t kKernelsOfOtherSizes = 3;

std::vector<std::string> bytesOf(const OpCase& opCase, const std::string& backend, Dim elements) {
  const BackendScope scope(backend);
  setSeed(1);
  std::vector<std::string> results;
  for (const Tensor& result : opCase.run(opCase.inputs(elements))) {
    std::string bytes(result.bytes(), 0);
    result.host(static_cast<void*>(bytes.data()));
    results.push_back(std::move(bytes));
  }
  return results;
}

TEST(Sizes, KernelsOfOneServeTheOthers) {
  std::map<uint64_t, std::string> compiled;  // cases by kernels
  for (const OpCase& opCase : opCases()) {
    EXPECT_EQ(bytesOf(opCase, "lazy", kFirst), bytesOf(opCase, "eager", kFirst)) << opCase.name;
    const uint64_t before = runtime::counters().kernelsCompiled;
    for (Dim elements : kOthers) {
      EXPECT_EQ(bytesOf(opCase, "lazy", elements), bytesOf(opCase, "eager", elements))
          << opCase.name << ", " << elements << " elements";
    }
    const uint64_t kernels = runtime::counters().kernelsCompiled - before;
    EXPECT_LE(kernels, kKernelsOfOtherSizes) << opCase.name;
    compiled[kernels] += " " + opCase.name + ",";
  }
  for (const auto& [kernels, names] : compiled) {
    std::cout << kernels << " more kernels:" << names << "\n";
  }
}

}  // namespace
}  // namespace fl::bench
