// What follows a product as its epilogue by cuBLASLt: what the library itself is told, and values,
// calls and launches with one that is none (FakeCublasLt.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fl/fl.h"
#include "fl/runtime/Counters.h"
#include "fl/runtime/cuda/Matmul.h"
#include "tests/runtime/cuda/FakeCublasLt.h"
#include "tests/runtime/cuda/FakeGpu.h"
#include "tests/runtime/cuda/RealCublasLt.h"

namespace fl::testing {
namespace {

using runtime::cuda::Activation;
using runtime::cuda::Epilogue;
using runtime::cuda::MatmulDescription;

uint32_t toldOf(const Epilogue& epilogue) {
  const MatmulDescription told(realCublasLt(),
                               {dtype::f32, 16, 4, 3, 5, false, false, 0, 0, epilogue});
  return attributeOf<uint32_t>(told.operation, CUBLASLT_MATMUL_DESC_EPILOGUE);
}

TEST(CudaEpilogue, TheLibraryIsToldWhich) {
  EXPECT_EQ(toldOf({}), CUBLASLT_EPILOGUE_DEFAULT);
  EXPECT_EQ(toldOf({Activation::None, true}), CUBLASLT_EPILOGUE_BIAS);
  EXPECT_EQ(toldOf({Activation::Relu}), CUBLASLT_EPILOGUE_RELU);
  EXPECT_EQ(toldOf({Activation::Relu, true}), CUBLASLT_EPILOGUE_RELU_BIAS);
  EXPECT_EQ(toldOf({Activation::Gelu, true}), CUBLASLT_EPILOGUE_GELU_BIAS);
  EXPECT_EQ(toldOf({Activation::Gelu, true, true}), CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
  EXPECT_EQ(toldOf({Activation::GeluGradient, false, true}), CUBLASLT_EPILOGUE_DGELU);
}

TEST(CudaEpilogue, TheLibraryIsToldWhereItsOperandsLie) {
  MatmulDescription told(
      realCublasLt(),
      {dtype::f32, 16, 4, 3, 5, false, false, 0, 0, {Activation::Gelu, true, true}});
  const auto pointer = [&](cublasLtMatmulDescAttributes_t which) {
    return attributeOf<uintptr_t>(told.operation, which);
  };
  EXPECT_EQ(attributeOf<int64_t>(told.operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD), 16);
  EXPECT_EQ(attributeOf<int64_t>(told.operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE),
            64);
  EXPECT_EQ(pointer(CUBLASLT_MATMUL_DESC_BIAS_POINTER), MatmulDescription::kAlignment);
  float bias = 0, auxiliary = 0;
  told.setEpilogue(&bias, &auxiliary);
  EXPECT_EQ(pointer(CUBLASLT_MATMUL_DESC_BIAS_POINTER), reinterpret_cast<uintptr_t>(&bias));
  EXPECT_EQ(pointer(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER),
            reinterpret_cast<uintptr_t>(&auxiliary));
}

// Calls and launches that `body` makes.
struct Work {
  uint64_t calls, launches;
  bool operator==(const Work&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Work& work) {
  return out << work.calls << " calls, " << work.launches << " launches";
}
template <class Body>
Work workOf(const Body& body) {
  const uint64_t calls = runtime::counters().libraryCalls;
  const uint64_t launches = runtime::counters().kernelLaunches;
  body();
  return {runtime::counters().libraryCalls - calls, runtime::counters().kernelLaunches - launches};
}

class CudaEpilogues : public ::testing::Test {
 protected:
  using Operands = std::vector<Tensor>;
  using Function = std::function<std::vector<Tensor>(const Operands&)>;

  CudaEpilogues() {
    gpu.reset();
    offerProducts(true);
  }
  ~CudaEpilogues() override {
    EXPECT_THAT(gpu.misuse(), ::testing::ElementsAre());
    offerProducts(false);
  }

  // w[16,8], x[8,12], b[16,1] and g[16,12] about 0.
  static Operands operands(dtype type) {
    const BackendScope cpu("lazy", "cpu");
    setSeed(1);
    Operands all;
    for (const Shape& shape : {Shape({16, 8}), Shape({8, 12}), Shape({16, 1}), Shape({16, 12})}) {
      all.push_back((rand(shape) - 0.5).astype(type));
    }
    sync();
    return all;
  }
  static std::vector<std::vector<float>> valuesOf(const std::vector<Tensor>& results) {
    std::vector<std::vector<float>> values;
    for (const Tensor& result : results) {
      values.push_back(result.astype(dtype::f32).toHostVector<float>());
    }
    return values;
  }

  // The function has the CPU's values, and makes so much work.
  static void expectCpus(const Function& function, Work expected, dtype type = dtype::f32) {
    const Operands given = operands(type);
    std::vector<std::vector<float>> wanted;
    {
      const BackendScope cpu("lazy", "cpu");
      wanted = valuesOf(function(given));
    }
    const BackendScope cuda("lazy", "cuda");
    std::vector<Tensor> results;
    EXPECT_EQ(workOf([&] {
                results = function(given);
                sync();
              }),
              expected);
    const auto values = valuesOf(results);
    ASSERT_EQ(values.size(), wanted.size());
    const float near = type == dtype::f32 ? 1e-5f : 1e-2f;
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_THAT(values[i], ::testing::Pointwise(::testing::FloatNear(near), wanted[i]));
    }
  }

  FakeGpu& gpu = FakeGpu::install();
};

Tensor product(const std::vector<Tensor>& given) { return matmul(given[0], given[1]); }
Tensor geluOf(const Tensor& x) { return gelu(Variable(x, false)).tensor(); }

TEST_F(CudaEpilogues, ABiasIsOne) {
  expectCpus([](auto& t) { return std::vector{product(t) + t[2]}; }, {1, 0});
}

TEST_F(CudaEpilogues, ReluIsOne) {
  const auto relu = [](auto& t) { return std::vector{maximum(product(t), 0.0)}; };
  expectCpus(relu, {1, 0});
  expectCpus([](auto& t) { return std::vector{maximum(product(t) + t[2], 0.0)}; }, {1, 0});
  const auto inHalf = [](auto& t) {
    return std::vector{maximum(product(t) + t[2], fromScalar(0, dtype::f16))};
  };
  expectCpus(inHalf, {1, 0}, dtype::f16);
}

TEST_F(CudaEpilogues, AMaximumWithAnotherNumberIsNone) {
  expectCpus([](auto& t) { return std::vector{maximum(product(t), 0.125)}; }, {1, 1});
  expectCpus([](auto& t) { return std::vector{minimum(product(t), 0.0)}; }, {1, 1});
}

TEST_F(CudaEpilogues, GeluIsOne) {
  expectCpus([](auto& t) { return std::vector{geluOf(product(t))}; }, {1, 0});
  expectCpus([](auto& t) { return std::vector{geluOf(product(t) + t[2])}; }, {1, 0});
}

// For its gradient.
TEST_F(CudaEpilogues, GeluKeepsItsInput) {
  expectCpus(
      [](auto& t) {
        const Tensor x = product(t) + t[2];
        return std::vector{x, geluOf(x)};
      },
      {1, 0});
  expectCpus(
      [](auto& t) {
        const Tensor x = product(t);
        return std::vector{x, geluOf(x)};
      },
      {1, 0});
}

TEST_F(CudaEpilogues, GelusGradientIsOne) {
  expectCpus(
      [](auto& t) {
        Variable x(t[3] + 1, true);
        sync();  // a launch
        gelu(x).backward(noGrad(product(t)));
        return std::vector{x.grad().tensor(), x.tensor()};
      },
      {1, 1});
}

// Whose input is overwritten, as nobody has it, is a launch.
TEST_F(CudaEpilogues, AGradientInPlaceIsNone) {
  expectCpus(
      [](auto& t) {
        Variable x(t[3] + 1, true);
        sync();  // a launch
        gelu(x).backward(noGrad(product(t)));
        return std::vector{x.grad().tensor()};
      },
      {1, 2});
}

// The hidden layer's bias and activation come with its product; the gradients are launches.
TEST_F(CudaEpilogues, StepsOfPerceptronsUseThem) {
  const auto gradients = [](auto& t) {
    const Variable x(t[1], false), w(t[0], true), b(t[2], true), v(transpose(t[3]), true);
    const Variable hidden = relu(matmul(w, x) + tile(b, {1, 12}));
    const Variable y = matmul(v, hidden);
    sum(y * y, {0, 1}).backward();
    return std::vector{w.grad().tensor(), b.grad().tensor(), v.grad().tensor()};
  };
  expectCpus(gradients, {5, 4});
}

// What reads anything else, in another order, or of which more is read is a launch.
TEST_F(CudaEpilogues, OthersAreLaunches) {
  expectCpus([](auto& t) { return std::vector{tanh(product(t))}; }, {1, 1});
  expectCpus([](auto& t) { return std::vector{product(t) + t[3]}; }, {1, 1});
  expectCpus([](auto& t) { return std::vector{product(t) * t[2]}; }, {1, 1});
  expectCpus(
      [](auto& t) {
        const Tensor x = product(t) + t[2];
        return std::vector{x, maximum(x, 0.0)};
      },
      {1, 1});
  expectCpus([](auto& t) { return std::vector{maximum(product(t), 0.0)}; }, {1, 1}, dtype::f64);
}

TEST_F(CudaEpilogues, AProductThatIsReadAgainIsWritten) {
  expectCpus(
      [](auto& t) {
        const Tensor x = product(t);
        return std::vector{maximum(x, 0.0), matmul(x, t[3], MatrixProperty::Transpose)};
      },
      {2, 1});
}

TEST_F(CudaEpilogues, ALinearLayerIsOneCallForward) {
  const BackendScope cuda("lazy", "cuda");
  setSeed(2);
  Linear layer(8, 16);
  const Variable x(rand({8, 12}), false);
  sync();
  EXPECT_EQ(workOf([&] {
              const Tensor y = relu(layer(x)).tensor();
              sync();
            }),
            (Work{1, 0}));
}

}  // namespace
}  // namespace fl::testing
