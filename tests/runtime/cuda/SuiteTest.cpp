// Every operator and composite (benchmarks/OpCases.h) on the device `cuda` (Gpu.h): its values are
// those of the CPU's kernels, to the bit where no library makes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "benchmarks/OpCases.h"
#include "fl/fl.h"
#include "fl/runtime/Counters.h"
#include "tests/runtime/cuda/Gpu.h"
#include "tests/runtime/cuda/WithoutLibraries.h"

namespace fl::testing {
namespace {

constexpr Dim kElements = 4096;

const std::vector<bench::OpCase>& cases() {
  static const auto& all = *new std::vector<bench::OpCase>([] {
    init();
    return bench::opCases();
  }());
  return all;
}

// What has no kernel yet, by how the names of its cases begin; a library may do it.
bool isOnHost(const std::string& name) {
  constexpr const char* kOnHost[] = {"argsort", "conv2dBackwardData", "cumsum", "median", "sort",
                                     "topk"};
  return std::ranges::any_of(kOnHost, [&](const char* begin) { return name.rfind(begin, 0) == 0; });
}

using Values = std::vector<std::vector<double>>;
Values valuesOf(const std::vector<Tensor>& tensors) {
  Values values;
  for (const Tensor& tensor : tensors) {
    values.push_back(tensor.astype(dtype::f64).toHostVector<double>());
  }
  return values;
}

// A library adds in another order: apart by so much of the largest value. The gradient of attention
// is a difference of products that are some ten times larger.
double nearness(const bench::OpCase& tested) {
  const dtype type = tested.type;
  const double ofProduct = type == dtype::f64   ? 1e-13
                           : type == dtype::f32 ? 1e-5
                           : type == dtype::f16 ? 2e-3
                                                : 2e-2;
  return tested.name.starts_with("attentionBackward") ? 10 * ofProduct : ofProduct;
}

void expectEqual(const std::vector<double>& actual, const std::vector<double>& expected,
                 double near) {
  ASSERT_EQ(actual.size(), expected.size());
  double largest = 0;
  for (const double x : expected) {
    largest = std::isfinite(x) ? std::max(largest, std::fabs(x)) : largest;
  }
  for (size_t i = 0; i < actual.size(); ++i) {
    const double x = actual[i], y = expected[i];
    const bool isSame = x == y || (std::isnan(x) && std::isnan(y));
    ASSERT_TRUE(isSame || std::fabs(x - y) <= near * largest)
        << "element " << i << " is " << x << ", not " << y;
  }
}

class CudaSuite : public ::testing::TestWithParam<size_t> {};

Values run(const bench::OpCase& tested, const std::vector<Tensor>& inputs, TensorBackend& backend) {
  const BackendScope scope(backend);
  setSeed(4);
  return valuesOf(tested.run(inputs));
}

TEST_P(CudaSuite, HasTheCpusValues) {
  if (!gpuProblem().empty()) GTEST_SKIP() << gpuProblem();
  const bench::OpCase& tested = cases()[GetParam()];
  std::vector<Tensor> inputs;
  {
    const BackendScope cpu(cpuWithoutLibraries());
    setSeed(3);
    inputs = tested.inputs(kElements);
    sync();
  }
  const Values expected = run(tested, inputs, cpuWithoutLibraries());
  const uint64_t hostCalls = runtime::counters().hostCalls;
  const uint64_t libraryCalls = runtime::counters().libraryCalls;
  const uint64_t launches = runtime::counters().kernelLaunches;
  const BackendScope scope("lazy", "cuda");
  const Values actual = run(tested, inputs, defaultTensorBackend());
  ASSERT_EQ(actual.size(), expected.size());
  const bool isExact = runtime::counters().libraryCalls == libraryCalls;
  for (size_t i = 0; i < actual.size(); ++i) {
    expectEqual(actual[i], expected[i], isExact ? 0 : nearness(tested));
  }
  EXPECT_THAT(takeMisuse(), ::testing::ElementsAre());
  EXPECT_EQ(runtime::counters().hostCalls > hostCalls, isExact && isOnHost(tested.name));
  EXPECT_TRUE(runtime::counters().kernelLaunches > launches || !isExact || isOnHost(tested.name));
}

INSTANTIATE_TEST_SUITE_P(Ops, CudaSuite, ::testing::Range(size_t{0}, cases().size()),
                         [](const auto& info) {
                           std::string name = cases()[info.param].name;
                           std::ranges::replace_if(
                               name, [](char c) { return !std::isalnum(c); }, '_');
                           return name + "_" + std::to_string(info.param);
                         });

}  // namespace
}  // namespace fl::testing
