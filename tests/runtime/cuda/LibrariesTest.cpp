// What NVIDIA's libraries make of products and what follows them on the device `cuda` (Gpu.h): the
// values of the CPU's kernels, NaN among them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "fl/fl.h"
#include "fl/runtime/Counters.h"
#include "tests/runtime/cuda/Gpu.h"
#include "tests/runtime/cuda/WithoutLibraries.h"

namespace fl::testing {
namespace {

using Tensors = std::vector<Tensor>;
using Function = std::function<Tensors(const Tensors&)>;

// w, x, a bias, a matrix like the product; all of whose rows have a NaN in one column.
Tensors operands(dtype type) {
  constexpr Dim kRows = 64, kInner = 48, kColumns = 40;
  setSeed(1);
  std::vector<float> x = (rand({kInner, kColumns}) - 0.5).toHostVector<float>();
  x[0] = std::numeric_limits<float>::quiet_NaN();
  const Tensors all = {rand({kRows, kInner}) - 0.5, Tensor::fromVector({kInner, kColumns}, x),
                       rand({kRows, 1}) - 0.5, rand({kRows, kColumns}) - 0.5};
  Tensors typed;
  for (const Tensor& each : all) typed.push_back(each.astype(type));
  sync();
  return typed;
}

std::vector<double> valuesOf(TensorBackend& backend, const Function& function, const Tensors& on) {
  const BackendScope scope(backend);
  std::vector<double> values;
  for (const Tensor& result : function(on)) {
    const auto some = result.astype(dtype::f64).toHostVector<double>();
    values.insert(values.end(), some.begin(), some.end());
  }
  return values;
}

Tensor product(const Tensors& t) { return matmul(t[0], t[1]) + t[2]; }
Tensor geluOf(const Tensor& x) { return gelu(Variable(x, false)).tensor(); }

const std::map<std::string, Function>& functions() {
  static const auto& all = *new std::map<std::string, Function>{
      {"bias", [](const Tensors& t) { return Tensors{product(t)}; }},
      {"relu",
       [](const Tensors& t) { return Tensors{maximum(product(t), fromScalar(0, t[0].type()))}; }},
      {"gelu", [](const Tensors& t) { return Tensors{geluOf(product(t))}; }},
      {"geluAndInput",
       [](const Tensors& t) {
         const Tensor x = product(t);
         return Tensors{x, geluOf(x)};
       }},
      {"geluGradient", [](const Tensors& t) {
         Variable x(t[3] + 1, true);
         sync();
         gelu(x).backward(noGrad(matmul(t[0], t[1])));
         return Tensors{x.grad().tensor(), x.tensor()};
       }}};
  return all;
}

class CudaEpilogues : public ::testing::TestWithParam<std::pair<const std::string, Function>> {};

TEST_P(CudaEpilogues, HaveTheCpusValues) {
  if (!gpuProblem().empty()) GTEST_SKIP() << gpuProblem();
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16}) {
    SCOPED_TRACE(dtypeToString(type));
    const Tensors on = [&] {
      const BackendScope cpu("lazy", "cpu");
      return operands(type);
    }();
    const auto expected = valuesOf(cpuWithoutLibraries(), GetParam().second, on);
    const BackendScope cuda("lazy", "cuda");
    const auto values = valuesOf(defaultTensorBackend(), GetParam().second, on);
    const double near = type == dtype::f32 ? 1e-5 : type == dtype::f16 ? 2e-2 : 1e-1;
    EXPECT_THAT(values, ::testing::Pointwise(::testing::NanSensitiveDoubleNear(near), expected));
    EXPECT_TRUE(std::ranges::any_of(values, [](double x) { return std::isnan(x); }));
  }
  EXPECT_THAT(takeMisuse(), ::testing::ElementsAre());
}

// A product of f32 over 4,096 terms: its largest error, by the largest sum of magnitudes.
struct LongProduct {
  double error;
  bool isLibrarys;
};

LongProduct longProduct() {
  constexpr Dim kTerms = 4096;
  Tensor x, y;
  {
    const BackendScope cpu("lazy", "cpu");
    setSeed(2);
    x = rand({32, kTerms}) - 0.5;
    y = rand({kTerms, 16}) - 0.5;
    sync();
  }
  const auto inDouble = [](const Tensor& tensor) { return tensor.astype(dtype::f64); };
  const uint64_t libraryCalls = runtime::counters().libraryCalls;
  const std::vector<double> product = inDouble(matmul(x, y)).toHostVector<double>();
  const bool isLibrarys = runtime::counters().libraryCalls > libraryCalls;
  const BackendScope cpu("lazy", "cpu");
  const Tensor exact = matmul(inDouble(x), inDouble(y));
  const Tensor magnitudes = matmul(inDouble(abs(x)), inDouble(abs(y)));
  const Tensor error = abs(Tensor::fromVector(exact.shape(), product) - exact);
  return {amax(error).scalar<double>() / amax(magnitudes).scalar<double>(), isLibrarys};
}

TEST(CudaLibraries, A9ProductsOfF32AreOfF32) {
  if (!gpuProblem().empty()) GTEST_SKIP() << gpuProblem();
  const BackendScope cuda("lazy", "cuda");
  EXPECT_LT(longProduct().error, 1e-6);
  const Tf32Scope tf32;
  const auto [error, isLibrarys] = longProduct();
  EXPECT_LT(error, 1e-3);
  EXPECT_TRUE(!isLibrarys || error > 1e-6) << error;
}

INSTANTIATE_TEST_SUITE_P(Each, CudaEpilogues, ::testing::ValuesIn(functions()),
                         [](const auto& info) { return info.param.first; });

}  // namespace
}  // namespace fl::testing
