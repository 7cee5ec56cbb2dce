// Products of the device `cuda` by cuBLASLt: what the library itself is told, which needs no GPU,
// and their values with one that is none (FakeCublasLt.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "fl/base/Error.h"
#include "fl/fl.h"
#include "fl/kernel/Schedule.h"
#include "fl/runtime/Counters.h"
#include "fl/runtime/Device.h"
#include "fl/runtime/MemoryManager.h"
#include "fl/runtime/cuda/Matmul.h"
#include "tests/runtime/cuda/FakeCublasLt.h"
#include "tests/runtime/cuda/FakeGpu.h"
#include "tests/runtime/cuda/RealCublasLt.h"

namespace fl::testing {
namespace {

using runtime::cuda::MatmulDescription;
using runtime::cuda::MatmulShape;
using runtime::cuda::matmulShape;

std::optional<MatmulShape> shapeOf(dtype type, Shape lhs, Shape rhs, Shape result,
                                   bool transposeLhs = false, bool transposeRhs = false) {
  return matmulShape({{type, lhs}, {type, rhs}}, {transposeLhs, transposeRhs, 0}, {type, result});
}

TEST(CudaMatmul, ShapesAreThoseOfTheMatrices) {
  EXPECT_EQ(shapeOf(dtype::f32, {2, 3}, {3, 4}, {2, 4}),
            (MatmulShape{dtype::f32, 2, 4, 3, 1, false, false, 0, 0}));
  EXPECT_EQ(shapeOf(dtype::f16, {3, 2, 5}, {4, 3}, {2, 4, 5}, true, true),
            (MatmulShape{dtype::f16, 2, 4, 3, 5, true, true, 6, 0}));
  EXPECT_EQ(shapeOf(dtype::f64, {2, 3}, {3, 4, 5, 6}, {2, 4, 5, 6}),
            (MatmulShape{dtype::f64, 2, 4, 3, 30, false, false, 0, 12}));
}

TEST(CudaMatmul, WhatTheLibraryCannotDoHasNoShape) {
  EXPECT_EQ(shapeOf(dtype::s32, {2, 3}, {3, 4}, {2, 4}), std::nullopt);
  EXPECT_EQ(shapeOf(dtype::f32, {2, 0}, {0, 4}, {2, 4}), std::nullopt);
  EXPECT_EQ(shapeOf(dtype::f32, {2, 3, 5, 1}, {3, 4, 5, 6}, {2, 4, 5, 6}), std::nullopt);
}

void expectLayout(cublasLtMatrixLayout_t layout, cudaDataType type, uint64_t rows, uint64_t columns,
                  int32_t batch, int64_t step) {
  EXPECT_EQ(attributeOf<uint32_t>(layout, CUBLASLT_MATRIX_LAYOUT_TYPE),
            static_cast<uint32_t>(type));
  EXPECT_EQ(attributeOf<int32_t>(layout, CUBLASLT_MATRIX_LAYOUT_ORDER), CUBLASLT_ORDER_COL);
  EXPECT_EQ(attributeOf<uint64_t>(layout, CUBLASLT_MATRIX_LAYOUT_ROWS), rows);
  EXPECT_EQ(attributeOf<uint64_t>(layout, CUBLASLT_MATRIX_LAYOUT_COLS), columns);
  EXPECT_EQ(attributeOf<int64_t>(layout, CUBLASLT_MATRIX_LAYOUT_LD), static_cast<int64_t>(rows));
  EXPECT_EQ(attributeOf<int32_t>(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT), batch);
  EXPECT_EQ(attributeOf<int64_t>(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET), step);
}

TEST(CudaMatmul, TheLibraryIsToldMatricesAsTheyLie) {
  const MatmulDescription told(realCublasLt(), {dtype::bf16, 2, 4, 3, 5, true, false, 6, 0});
  expectLayout(told.lhs, CUDA_R_16BF, 3, 2, 5, 6);
  expectLayout(told.rhs, CUDA_R_16BF, 3, 4, 5, 0);
  expectLayout(told.result, CUDA_R_16BF, 2, 4, 5, 8);
  EXPECT_EQ(attributeOf<int32_t>(told.operation, CUBLASLT_MATMUL_DESC_TRANSA), CUBLAS_OP_T);
  EXPECT_EQ(attributeOf<int32_t>(told.operation, CUBLASLT_MATMUL_DESC_TRANSB), CUBLAS_OP_N);
}

// Nothing is cut to TF32, unless it is told, or added up in 16 bits.
TEST(CudaMatmul, TheLibraryComputesInFullPrecision) {
  for (const dtype type : {dtype::f16, dtype::bf16, dtype::f32, dtype::f64}) {
    const MatmulDescription told(realCublasLt(), {type, 2, 4, 3, 1, false, false, 0, 0});
    const bool isDouble = type == dtype::f64;
    EXPECT_EQ(attributeOf<int32_t>(told.operation, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE),
              isDouble ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F);
    EXPECT_EQ(attributeOf<int32_t>(told.operation, CUBLASLT_MATMUL_DESC_SCALE_TYPE),
              isDouble ? CUDA_R_64F : CUDA_R_32F);
  }
}

TEST(CudaMatmul, TheLibraryCutsToTf32OnRequest) {
  MatmulShape shape =
      *matmulShape({{dtype::f32, {2, 3}}, {dtype::f32, {3, 4}}}, {0, 0, 1}, {dtype::f32, {2, 4}});
  const MatmulDescription told(realCublasLt(), shape);
  EXPECT_EQ(attributeOf<int32_t>(told.operation, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE),
            CUBLAS_COMPUTE_32F_FAST_TF32);
}

// On the CPU and by the library of the GPU that is none.
void expectCpusProduct(dtype type, const Shape& lhs, const Shape& rhs, MatrixProperty left,
                       MatrixProperty right, double near) {
  Tensor x, y;
  std::vector<double> expected;
  const auto product = [&] {
    return matmul(x, y, left, right).astype(dtype::f64).toHostVector<double>();
  };
  {
    const BackendScope cpu("lazy", "cpu");
    setSeed(1);
    x = rand(lhs).astype(type);
    y = rand(rhs).astype(type);
    expected = product();
  }
  const BackendScope cuda("lazy", "cuda");
  const uint64_t calls = runtime::counters().libraryCalls;
  EXPECT_THAT(product(), ::testing::Pointwise(::testing::DoubleNear(near), expected));
  EXPECT_EQ(runtime::counters().libraryCalls, calls + 1);
}

TEST(CudaMatmul, ProductsAreTheLibrarys) {
  FakeGpu::install();
  offerProducts(true);
  constexpr auto kAsIs = MatrixProperty::None, kTransposed = MatrixProperty::Transpose;
  expectCpusProduct(dtype::f32, {7, 5}, {5, 9}, kAsIs, kAsIs, 1e-5);
  expectCpusProduct(dtype::f64, {5, 7}, {5, 9}, kTransposed, kAsIs, 1e-13);
  expectCpusProduct(dtype::f32, {7, 5, 3}, {9, 5, 3}, kAsIs, kTransposed, 1e-5);
  expectCpusProduct(dtype::f32, {7, 5}, {5, 9, 3}, kAsIs, kAsIs, 1e-5);
  expectCpusProduct(dtype::f16, {7, 5, 2}, {5, 9}, kAsIs, kAsIs, 4e-3);
  expectCpusProduct(dtype::bf16, {5, 7}, {9, 5}, kTransposed, kTransposed, 4e-2);
  EXPECT_THAT(FakeGpu::install().misuse(), ::testing::ElementsAre());
}

// 1 + 2^-12 has 13 digits. The two products are two, and their rounding is within the bound that
// FL_CHECK=ref has for them.
TEST(CudaMatmul, Tf32IsForItsScope) {
  FakeGpu::install();
  offerProducts(true);
  const BackendScope cuda("lazy", "cuda");
  const float x = 1 + std::ldexp(1.f, -12);
  const Tensor all = full({2, 2}, x), plain = matmul(all, all);
  const Tensor cut = [&] {
    const Tf32Scope tf32;
    return matmul(all, all);
  }();
  const Tensor again = matmul(all, all);
  EXPECT_THAT(cut.toHostVector<float>(), ::testing::Each(2.f));
  EXPECT_THAT(plain.toHostVector<float>(), ::testing::Each(2 * x * x));
  EXPECT_THAT(again.toHostVector<float>(), ::testing::Each(2 * x * x));
}

// A workspace is a temporary of the plan, aligned to 256 bytes wherever that begins, and behind it
// is room for operands that are not aligned.
TEST(CudaMatmul, PlansHoldWorkspaces) {
  FakeGpu::install();
  offerProducts(true);
  const auto device = runtime::makeDevice("cuda");
  runtime::KernelCache kernels;
  for (const auto& [operand, bytes] : {std::pair("p1", 1024 + 192), {"p1+1", 1024 + 256 + 192}}) {
    const auto plan = device->load(
        ir::parseSchedule(detail::concat(
            "schedule @s arena=0 bound=0 { parameter f32[8,8] parameter f32[80] output f32[8,8] "
            "library matmul (p0: f32[8,8], ",
            operand, ": f32[8,8]) -> o0: f32[8,8] }")),
        &kernels);
    const ir::Schedule& schedule = plan->schedule();
    EXPECT_EQ(schedule.temporaries, (std::vector<ir::Temporary>{{size_t(bytes), 0, 0, 0}}));
    EXPECT_EQ(ir::scratchOf(schedule.steps[0]), 0);
    EXPECT_EQ(schedule.arenaBytes, size_t(bytes));
    EXPECT_EQ(schedule.arenaBound, size_t(bytes));
  }
}

// The workspace that the library fills is nothing else's: not where lookups report bad indices,
// until the end of the plan.
TEST(CudaMatmul, WorkspacesAreApartFromReports) {
  FakeGpu::install();
  offerProducts(true);
  const BackendScope cuda("lazy", "cuda");
  const Tensor table = arange({8}, 0, dtype::f32), places = Tensor::fromVector<int>({3}, {5, 0, 7});
  const Tensor x = full({8, 8}, 1.0f);
  const uint64_t calls = runtime::counters().libraryCalls;
  const Tensor found = matmul(table(places)(0) + x, x).flatten()(range(0, 3)) + table(places);
  EXPECT_THAT(found.toHostVector<float>(), ::testing::ElementsAre(53, 48, 55));
  EXPECT_EQ(runtime::counters().libraryCalls, calls + 1);
}

// A plan is a graph with its products in it, for each of the places that these work in, from when
// they come again; what launches alone read may be elsewhere.
TEST(CudaMatmul, GraphsHaveProducts) {
  if (runtime::poisons()) GTEST_SKIP() << "poison comes between the steps of a plan";
  FakeGpu& gpu = FakeGpu::install();
  offerProducts(true);
  const BackendScope cuda("lazy", "cuda");
  const Tensor x = full({2, 2}, 1.0f), factors[] = {full({2, 1}, 2.0f), full({2, 1}, 3.0f)};
  const Tensor others[] = {Tensor::fromVector<float>({2, 2}, {1, 2, 3, 4}),
                           Tensor::fromVector<float>({2, 2}, {5, 6, 7, 8})};
  sync();
  const auto run = [&](int other, int factor) {
    const FakeGpu::Counts before = gpu.counts();
    const uint64_t launches = runtime::counters().kernelLaunches;
    const uint64_t calls = runtime::counters().libraryCalls;
    {
      const Tensor product = matmul(x, others[other]), scaled = product * factors[factor];
      const Tensor sums = sum(scaled, {0}), total = sum(scaled, {1});
      const float first = other == 0 ? 3 : 11, second = other == 0 ? 7 : 15, by = factor + 2;
      EXPECT_THAT(sums.toHostVector<float>(),
                  ::testing::ElementsAre(2 * first * by, 2 * second * by));
      EXPECT_EQ(total.toHostVector<float>()[1], (first + second) * by);
    }
    EXPECT_EQ(runtime::counters().kernelLaunches, launches + 2);
    EXPECT_EQ(runtime::counters().libraryCalls, calls + 1);
    const FakeGpu::Counts after = gpu.counts();
    return std::array{after.launches - before.launches, after.graphs - before.graphs,
                      after.graphLaunches - before.graphLaunches,
                      after.changedNodes - before.changedNodes};
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(run(0, 0), ElementsAre(2, 0, 0, 0));
  EXPECT_THAT(run(0, 0), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(run(0, 0), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(run(0, 1), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(run(1, 1), ElementsAre(2, 0, 0, 0));
  EXPECT_THAT(run(1, 1), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(run(0, 1), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(gpu.misuse(), ElementsAre());
}

// Row D4. Products of ever other matrices, none of which comes twice.
TEST(CudaMatmul, D4GraphsThatDoNotSettleAreWarnedOf) {
  if (runtime::poisons()) GTEST_SKIP() << "poison comes between the steps of a plan";
  FakeGpu& gpu = FakeGpu::install();
  offerProducts(true);
  const BackendScope cuda("lazy", "cuda");
  const Tensor x = full({2, 2}, 1.0f);
  std::vector<Tensor> others;
  for (int i = 0; i < 50; ++i) others.push_back(full({2, 2}, static_cast<float>(i)));
  sync();
  const auto run = [&](const Tensor& other) {
    const Tensor product = matmul(x, other), sums = sum(product, {0}), total = sum(product, {1});
    return sums.toHostVector<float>()[0];
  };
  const size_t graphs = gpu.counts().graphs;
  for (int i = 0; i < 50; ++i) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(run(others[i]), 4.0f * i);
    const std::string warned = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(warned, ::testing::ContainsRegex(
                            i < 49 ? "^$"
                                   : "CUDA: of 50 runs of the steps up to a reduction at "
                                     ".*MatmulTest.cpp:[0-9]+, 50 were no graph's"));
  }
  EXPECT_EQ(gpu.counts().graphs, graphs);
}

// As an optimizer's are: those that may be written over are written over their own old values, and
// the result of a reduction takes turns in two places.
TEST(CudaMatmul, UpdatesKeepTheirPlaces) {
  if (runtime::poisons()) GTEST_SKIP() << "poison comes between the steps of a plan";
  offerProducts(true);
  const auto train = [](const auto& look) {
    Tensor weights = full({4, 4}, 0.25f), bias = full({4, 1}, 1.f);
    Tensor momentum = full({4, 4}, 0.f), squares = full({4, 4}, 0.f);
    const Tensor x = full({4, 4}, 0.5f);
    sync();
    for (int i = 0; i < 16; ++i) {
      look(i, [&] {
        const Tensor y = matmul(weights, x), z = matmul(y, bias);
        momentum = momentum * 0.5f + y;
        bias = bias * 0.5f + sum(y, {1}, /*keepDims=*/true) * 0.1f + z * 0.1f;
        squares = squares * 0.5f + y * y;
        weights = weights - momentum / (squares + 1) * 0.01f;
        sync();
      });
    }
    const Tensor both = concatenate({weights, bias}, 1);
    return both.toHostVector<float>();
  };
  FakeGpu& gpu = FakeGpu::install();
  std::vector<float> onGpu;
  {
    const BackendScope cuda("lazy", "cuda");
    onGpu = train([&](int i, const auto& step) {
      const FakeGpu::Counts before = gpu.counts();
      step();
      if (i < 10) return;
      EXPECT_EQ(gpu.counts().launches, before.launches) << "step " << i;
      EXPECT_EQ(gpu.counts().graphs, before.graphs) << "step " << i;
      EXPECT_EQ(gpu.counts().graphLaunches, before.graphLaunches + 1) << "step " << i;
    });
  }
  const BackendScope cpu("lazy", "cpu");
  EXPECT_THAT(onGpu, ::testing::Pointwise(::testing::FloatNear(1e-5f),
                                          train([](int, const auto& step) { step(); })));
  EXPECT_THAT(gpu.misuse(), ::testing::ElementsAre());
}

}  // namespace
}  // namespace fl::testing
