// Which way of a library a call takes: the fastest by the events of a GPU that is none, in
// processes of their own, which share what is kept on disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "fl/base/Flags.h"
#include "fl/fl.h"
#include "fl/runtime/Store.h"
#include "fl/runtime/cuda/Matmul.h"
#include "tests/runtime/cuda/FakeCublasLt.h"
#include "tests/runtime/cuda/FakeCudnn.h"
#include "tests/runtime/cuda/FakeGpu.h"

namespace fl::testing {
namespace {

namespace fs = std::filesystem;

// The numbers of what was put into the stream, apart by blanks, on standard error.
template <class Numbers>
void tell(const Numbers& numbers) {
  for (const auto number : numbers) std::fprintf(stderr, "%d ", static_cast<int>(number));
}

class Candidates : public ::testing::Test {
 protected:
  Candidates()
      : folder_(fs::path(::testing::TempDir()) /
                ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(folder_);
  }

  // Of a process of its own that does this on the GPU.
  void expectToldBy(const std::function<void()>& program, const std::string& told) {
    EXPECT_EXIT(
        {
          flags().cacheFolder = folder_;
          FakeGpu& gpu = FakeGpu::install();
          const BackendScope scope("lazy", "cuda");
          program();
          tell(std::vector<int>(gpu.misuse().size(), -1));
          std::_Exit(0);
        },
        ::testing::ExitedWithCode(0), told);
  }
  void expectProducts(const std::vector<FakeAlgorithm>& offered, const std::string& told,
                      dtype type = dtype::f32) {
    const auto program = [&] {
      offerAlgorithms(offered);
      multiply(type);
      tell(takeAlgorithmsRun());
    };
    expectToldBy(program, "^" + told + "$");
  }
  void expectConvolutions(const std::vector<FakePlan>& offered, const std::string& told) {
    const auto program = [&] {
      offerPlans(offered);
      const Tensor x = Tensor::fromVector<float>({3, 3, 1, 1}, std::vector<float>(9, 2));
      const Tensor y = conv2d(Variable(x, false), Variable(x, false)).tensor();
      if (y.scalar<float>() != 36) std::_Exit(1);
      tell(takePlansRun());
    };
    expectToldBy(program, "^" + told + "$");
  }
  static void multiply(dtype type) {
    const Tensor x = Tensor::fromVector<float>({2, 2}, {1, 2, 3, 4}).astype(type);
    const std::vector<float> y = matmul(x, x).astype(dtype::f32).toHostVector<float>();
    if (y != std::vector<float>{7, 10, 15, 22}) std::_Exit(1);
  }
  size_t kept() const {
    const fs::path calls = folder_ / runtime::kCalls;
    if (!fs::exists(calls)) return 0;
    const auto isFile = [](const auto& entry) { return entry.is_regular_file(); };
    return std::ranges::count_if(fs::directory_iterator(calls), isFile);
  }

  const fs::path folder_;
};

// Each runs once; then in each of three rounds the first keeps the GPU busy, and each is timed.
TEST_F(Candidates, TheFastestIsTakenAndKept) {
  const std::vector<FakeAlgorithm> offered = {{1, 3}, {2, 1}, {3, 2}};
  expectProducts(offered, "1 2 3 1 1 2 3 1 1 2 3 1 1 2 3 2 ");
  EXPECT_EQ(kept(), 1u);
  expectProducts(offered, "2 ");
  // By its dtype it is another product.
  expectProducts(offered, "1 2 3 1 1 2 3 1 1 2 3 1 1 2 3 2 ", dtype::f64);
  EXPECT_EQ(kept(), 2u);
}

TEST_F(Candidates, WithoutACacheEveryProcessMeasures) {
  const auto program = [] {
    flags().cache = "off";
    offerAlgorithms({{1, 3}, {2, 1}});
    multiply(dtype::f32);
    multiply(dtype::f32);
    tell(takeAlgorithmsRun());
  };
  for (int process = 1; process <= 2; ++process) {
    expectToldBy(program, "^1 2 1 1 2 1 1 2 1 1 2 2 2 $");
    EXPECT_EQ(kept(), 0u);
  }
}

TEST_F(Candidates, WhatIsKeptAndNoLongerOfferedIsMeasuredAnew) {
  expectProducts({{1, 3}, {2, 1}, {3, 2}}, "1 2 3 1 1 2 3 1 1 2 3 1 1 2 3 2 ");
  expectProducts({{1, 3}, {3, 2}}, "1 3 1 1 3 1 1 3 1 1 3 3 ");
  expectProducts({{1, 3}, {3, 2}}, "3 ");
  EXPECT_EQ(kept(), 1u);
}

TEST_F(Candidates, OneAloneIsNotMeasured) {
  expectProducts({{1, 3}}, "1 ");
  EXPECT_EQ(kept(), 0u);
}

TEST_F(Candidates, TheFirstIsTakenWhereOthersAreAboutAsFast) {
  expectProducts({{1, 1}, {2, 0.98}}, "1 2 1 1 2 1 1 2 1 1 2 1 ");
  expectProducts({{1, 1}, {2, 0.98}}, "1 ");
}

TEST_F(Candidates, WhatFailsIsPassedOver) {
  expectProducts({{1, 1, /*runs=*/false}, {2, 3}, {3, 2}}, "2 3 2 2 3 2 2 3 2 2 3 3 ");
  expectProducts({{1, 1, /*runs=*/false}, {2, 3}, {3, 2}}, "3 ");
}

TEST_F(Candidates, WhereAllFailTheErrorIsToldWhenTheCallIsRun) {
  const auto program = [] {
    offerAlgorithms({{1, 1, /*runs=*/false}, {2, 1, /*runs=*/false}});
    try {
      multiply(dtype::f32);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s", error.what());
    }
  };
  expectToldBy(program, "^cuBLASLt: a product: told to fail");
  EXPECT_EQ(kept(), 0u);
}

TEST_F(Candidates, TheFirstIsTakenWhereMemoryIsShort) {
  const auto program = [] {
    offerAlgorithms({{1, 3}, {2, 1}});
    const auto product = runtime::cuda::Matmul::find(runtime::cuda::Context::of(0),
                                                     {dtype::f32, 2, 2, 2, 1, false, false, 0, 0});
    FakeGpu::install().failCall("cuMemAllocAsync", CUDA_ERROR_OUT_OF_MEMORY);
    product->workspaceBytes();
    FakeGpu::install().reset();
    multiply(dtype::f32);
    tell(takeAlgorithmsRun());
  };
  expectToldBy(program, "^1 $");
  EXPECT_EQ(kept(), 0u);
}

// Long ones run twice, if at all, short ones several times a round.
TEST_F(Candidates, AreMeasuredForAboutAsLong) {
  expectProducts({{1, 30}, {2, 600}, {3, 5}}, "1 2 1 1 2 1 ", dtype::f32);
  expectProducts({{1, 0.1}, {2, 0.05}}, "1 2 1 1 2 1 1 1 1 1 2 2 2 2 1 1 1 1 1 2 2 2 2 2 ",
                 dtype::f64);
}

// As where parts of them are added up in the result's dtype.
TEST_F(Candidates, SumsOf16BitFloatsAreNotRounded) {
  const std::vector<FakeAlgorithm> offered = {{1, 1, true, /*isWide=*/false}, {2, 2}};
  expectProducts(offered, "2 ", dtype::f16);
  expectProducts(offered, "2 ", dtype::bf16);
  expectProducts(offered, "1 2 1 1 2 1 1 2 1 1 2 1 ", dtype::f32);
}

TEST_F(Candidates, OfConvolutionsAreEnginesAndTheirKnobs) {
  const FakePlan first{10, 3}, second{11, 1}, inexact{20, 0.1, /*isExact=*/false},
      refused{30, 0.1, true, /*isMade=*/false}, failing{40, 0.1, true, true, /*runs=*/false},
      fallback{50, 0.1, true, true, true, /*isFallback=*/true};
  const std::vector<FakePlan> offered = {first, second, inexact, refused, failing, fallback};
  expectConvolutions(offered, "10 11 10 10 11 10 10 11 10 10 11 11 ");
  expectConvolutions(offered, "11 ");
  EXPECT_EQ(kept(), 1u);
  FakePlan gone = second;
  gone.isMade = false;
  expectConvolutions({first, gone, {12, 2}}, "10 12 10 10 12 10 10 12 10 10 12 12 ");
  expectConvolutions({first, gone, {12, 2}}, "12 ");
}

TEST_F(Candidates, OfConvolutionsAreFallbacksWhereThereAreNoOthers) {
  const FakePlan refused{30, 1, true, /*isMade=*/false};
  const FakePlan slow{50, 2, true, true, true, /*isFallback=*/true};
  const FakePlan fast{60, 1, true, true, true, /*isFallback=*/true};
  expectConvolutions({refused, slow, fast}, "50 60 50 50 60 50 50 60 50 50 60 60 ");
  expectConvolutions({refused, slow, fast}, "60 ");
}

}  // namespace
}  // namespace fl::testing
