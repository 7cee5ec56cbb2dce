// FL_CHECK=nan finds the operator that makes the first NaN or infinity.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "fl/base/Flags.h"
#include "fl/runtime/Counters.h"
#include "fl/tensor/TableOps.h"
#include "fl/tensor/tensor.h"
#include "tests/ErrorOf.h"
#include "tests/lazy/FreshEngine.h"

namespace fl::check {
namespace {

using ::testing::HasSubstr;

TEST(CheckNan, NamesTheOperatorAndTheLine) {
  flags().check = "nan";
  const BackendScope scope("lazy", "cpu");
  const Tensor x = iota({8}, {1}, dtype::f32) - 3.0;
  const Tensor roots = sqrt(x + 1.0);
  const int line = __LINE__ - 1;
  const Tensor later = exp(roots) * 2.0;
  const std::string error = test::errorOf<std::runtime_error>([&] { later.toHostVector<float>(); });
  EXPECT_NE(error.find("FL_CHECK=nan: sqrt f32[8] at "), std::string::npos) << error;
  EXPECT_NE(error.find("NanTest.cpp:" + std::to_string(line)), std::string::npos) << error;
  EXPECT_NE(error.find("element 0 is NaN and its operands are not"), std::string::npos) << error;
  // What came before can still be read; a NaN of the user's own is no finding.
  EXPECT_EQ(x.toHostVector<float>()[0], -3);
  const Tensor own = full({4}, NAN);
  EXPECT_TRUE(std::isnan((own + 1.0).toHostVector<float>()[0]));
  flags().check = "";
}

TEST(CheckNan, NamesInfinitiesAndRanges) {
  flags().check = "nan";
  const BackendScope scope("lazy", "cpu");
  const Tensor x = iota({8}, {1}, dtype::f32) - 2.0;
  const auto errorOf = [](const Tensor& tensor) {
    return test::errorOf<std::runtime_error>([&] { tensor.toHostVector<float>(); });
  };
  EXPECT_NE(errorOf(exp(x * 100.0)).find("exp f32[8] at "), std::string::npos);
  EXPECT_NE(errorOf(exp(x * 100.0))
                .find("element 3 is infinite and its operands are finite; f32[8] from -200 to 500"),
            std::string::npos)
      << errorOf(exp(x * 100.0));
  EXPECT_NE(errorOf(sqrt(x)).find("element 0 is NaN and its operands are not; f32[8] from -2 to 5"),
            std::string::npos)
      << errorOf(sqrt(x));
  // An infinity of the user's own is none of ours, and neither is an extreme of nothing.
  EXPECT_EQ(errorOf(full({4}, INFINITY) * 2.0), "");
  EXPECT_EQ(errorOf(amax(full({0, 3}, 1.0), {0})), "");
  flags().check = "";
}

// What a test of NaN finds, of the message of a read.
std::string foundIn(const Tensor& tensor) {
  return test::errorOf<std::runtime_error>([&] { tensor.toHostVector<float>(); });
}

class NanIn : public ::testing::Test {
 protected:
  void SetUp() override { flags().check = "nan"; }
  void TearDown() override { flags().check = flags().fault = ""; }
  const BackendScope scope_{"lazy", "cpu"};
};

// A value that is held has made it ahead of what is read: by the same plan, which alone runs.
TEST_F(NanIn, WhatIsNotRead) {
  const Tensor x = Tensor::fromVector({4}, std::vector<float>{1, 2, -1, 4});
  const uint64_t realizes = runtime::counters().realizes, plans = runtime::counters().plansBuilt;
  const Tensor y = log(x);
  const std::string at =
      "FL_CHECK=nan: log f32[4] at tests/check/NanTest.cpp:" + std::to_string(__LINE__ - 2) +
      ": element 2 is NaN";
  const Tensor fine = x * 2.0, roots = sqrt(x);
  EXPECT_THAT(foundIn(fine), HasSubstr(at));
  EXPECT_EQ(runtime::counters().realizes, realizes + 1);
  EXPECT_EQ(runtime::counters().plansBuilt, plans + 1);
  // It is told once: then values have what they need computed alone.
  EXPECT_EQ(fine.toHostVector<float>(), (std::vector<float>{2, 4, -2, 8}));
  EXPECT_THAT(foundIn(y), HasSubstr(at));
  EXPECT_THAT(foundIn(roots), HasSubstr("FL_CHECK=nan: sqrt f32[4] at "));
  // What is recorded behind it is told of its own.
  const Tensor second = log(x - 1.0);
  EXPECT_THAT(foundIn(second), HasSubstr("FL_CHECK=nan: log f32[4] at "));
}

// A step of training is not over where its update makes an infinity.
TEST_F(NanIn, UpdatesBehindALoss) {
  Tensor w = full({4}, 0.0);
  w.toHostVector<float>();
  for (int step = 0; step < 2; ++step) {
    const Tensor loss = sum(sqrt(w));
    w = w - 1.0 / sqrt(w);
    const int line = __LINE__ - 1;
    const std::string found = foundIn(loss);
    EXPECT_THAT(found, HasSubstr("FL_CHECK=nan: div f32[4] at tests/check/NanTest.cpp:" +
                                 std::to_string(line) + ": element 0 is infinite"))
        << step;
  }
}

// An automatic flush warns; the read that wants a value throws, as ever.
TEST_F(NanIn, AutomaticFlushes) {
  const std::string before = std::exchange(flags().flushNodes, "3");
  {
    const testing::FreshEngine engine;
    const Tensor x = Tensor::fromVector({4}, std::vector<float>{1, 2, -1, 4});
    ::testing::internal::CaptureStderr();
    const Tensor y = log(x), z = exp(x), more = z + x;
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                HasSubstr("an automatic flush failed: FL_CHECK=nan: log f32[4] at "));
    EXPECT_THAT(foundIn(z), HasSubstr("FL_CHECK=nan: log f32[4] at "));
  }
  flags().flushNodes = before;
}

// Sums of nothing have no place in a kernel; their results do.
TEST_F(NanIn, SumsOfNothing) {
  const std::string mean = foundIn(fl::mean(full({0}, 1.0), {0}));
  EXPECT_THAT(mean, HasSubstr("FL_CHECK=nan: div f32[] at "));
  EXPECT_THAT(mean, HasSubstr("element 0 is NaN and its operands are not"));
  for (const bool isFirst : {true, false}) {
    const Tensor nothing = full(isFirst ? Shape({0, 3}) : Shape({3, 0}), 1.0);
    const Tensor added = Tensor::fromVector({3}, std::vector<float>{1, 0, 1});
    const std::string logs = foundIn(log(sum(nothing, {isFirst ? 0 : 1}) + added));
    EXPECT_THAT(logs, HasSubstr("FL_CHECK=nan: log f32[3] at "));
    EXPECT_THAT(logs,
                HasSubstr("element 1 is infinite and its operands are finite; f32[3] from 0"));
  }
}

// One kernel: what `where` drops was made, and its place is that of the one element of many.
TEST_F(NanIn, FusedKernelsThatDropIt) {
  std::vector<float> values(7 * 1000, 4);
  values[5432] = -4;
  const Tensor x = Tensor::fromVector({7, 1000}, values);
  const uint64_t before = runtime::counters().kernelLaunches;
  const Tensor roots = sqrt(x * 2.0);
  const int line = __LINE__ - 1;
  const std::string error = foundIn(where(x > 0.0, roots, x) + 1.0);
  EXPECT_EQ(runtime::counters().kernelLaunches, before);  // the run ended in its only launch
  EXPECT_NE(error.find("FL_CHECK=nan: sqrt f32[7,1000] at "), std::string::npos) << error;
  EXPECT_NE(error.find("NanTest.cpp:" + std::to_string(line)), std::string::npos) << error;
  EXPECT_NE(error.find("element 5432 is NaN and its operands are not; f32[7,1000] from -8 to 8"),
            std::string::npos)
      << error;
}

// The first in the order of the tensor, where the kernel walks in another.
TEST_F(NanIn, TransposedReads) {
  std::vector<float> values(300 * 200, 1);
  values[3 + 300 * 150] = values[250 + 300 * 4] = 0;  // (3, 150) and (250, 4)
  const Tensor x = Tensor::fromVector({300, 200}, values);
  const std::string error = foundIn(log(transpose(x)) + 0.5);  // [200,300]: (150, 3), (4, 250)
  EXPECT_NE(error.find("log f32[200,300]"), std::string::npos) << error;
  EXPECT_NE(error.find("element " + std::to_string(150 + 200 * 3) + " is infinite"),
            std::string::npos)
      << error;
}

TEST_F(NanIn, RowsColumnsAndTheirSums) {
  std::vector<float> values(40 * 50, 1);
  values[7 + 40 * 20] = -1;
  const Tensor x = Tensor::fromVector({40, 50}, values);
  const auto expectSqrt = [](const std::string& error) {
    EXPECT_NE(error.find("sqrt f32[40,50]"), std::string::npos) << error;
    EXPECT_NE(error.find("element 807 is NaN and its operands are not; f32[40,50] from -1 to 1"),
              std::string::npos)
        << error;
  };
  expectSqrt(foundIn(sum(sqrt(x), {0})));
  expectSqrt(foundIn(sum(sqrt(x), {1})));
  expectSqrt(foundIn(sqrt(x) - sum(sqrt(x) * 2.0, {0}, true)));
  const std::string sums = foundIn(sum(x * 3e38, {1}) * 0.0);
  EXPECT_NE(sums.find("sum f32[40]"), std::string::npos) << sums;
  EXPECT_NE(sums.find("element 0 is infinite and its operands are finite; f32[40,50] from -3e+38 "
                      "to 3e+38"),
            std::string::npos)
      << sums;
  const std::string rows = foundIn(log(sum(x, {0}) - 40.0));
  EXPECT_NE(rows.find("log f32[50]"), std::string::npos) << rows;
  EXPECT_NE(rows.find("element 0 is infinite and its operands are finite; f32[50] from -2 to 0"),
            std::string::npos)
      << rows;
}

TEST_F(NanIn, SixteenBitFloatsAndLibraries) {
  const Tensor half = full({64}, 60000, dtype::f16);
  const std::string error = foundIn((half + half).astype(dtype::f32));
  EXPECT_NE(error.find("add f16[64]"), std::string::npos) << error;
  EXPECT_NE(error.find("element 0 is infinite and its operands are finite; f16[64] from 60000 to"),
            std::string::npos)
      << error;
  const Tensor large = full({16, 16}, 2e38);
  const std::string product = foundIn(matmul(large, large) * 0.0);
  EXPECT_NE(product.find("matmul f32[16,16]"), std::string::npos) << product;
  EXPECT_NE(product.find("element 0 is infinite and its operands are finite; f32[16,16] from 2e+38 "
                         "to 2e+38, f32[16,16] from"),
            std::string::npos)
      << product;
}

// Elements of images count as they were recorded, where channels lie in front of pixels that are as
// many, and where reshapes part the dimensions.
TEST_F(NanIn, ImagesOfEqualExtentsAndTheirReshapes) {
  for (const Shape& shape : {Shape({8, 8, 8, 2}), Shape({8, 8, 4, 2, 2}), Shape({64, 8, 2})}) {
    std::vector<float> values(1024, 1);
    const int place = 5 + 8 * 2 + 64 * 3 + 512;
    values[place] = -1;
    const Tensor x = Tensor::fromVector({8, 8, 8, 2}, values),
                 same = reshape(identity(8), {1, 1, 8, 8});
    // No handle holds what lies so.
    Tensor y = x * 1.0;
    const auto convolve = [&] { y = table::conv2d(y, same, Tensor(), {}) * 1.0; };
    convolve(), convolve();
    y = reshape(sqrt(reshape(y, shape)), x.shape());
    convolve(), convolve();
    const std::string error = foundIn(y);
    EXPECT_THAT(error, HasSubstr("FL_CHECK=nan: sqrt " + typeToString(dtype::f32, shape) + " at "));
    EXPECT_THAT(error, HasSubstr("element " + std::to_string(place) + " is NaN and its operands "));
  }
}

// Operands and results that begin in the midst of a buffer.
TEST_F(NanIn, PartsOfBuffers) {
  std::vector<float> values(16 * 8, 1);
  values[16 * 5 + 3] = 3e38f;
  const Tensor x = Tensor::fromVector({16, 8}, values), w = full({16, 16}, 2.0);
  const std::string result = foundIn(concatenate({w, matmul(w, x)}, 1));
  EXPECT_NE(result.find("matmul f32[16,8]"), std::string::npos) << result;
  EXPECT_NE(result.find("element 80 is infinite and its operands are finite; f32[16,16] from 2 to "
                        "2, f32[16,8] from 1 to 3e+38"),
            std::string::npos)
      << result;
  const std::string operand = foundIn(matmul(w, x(span, range(4, 8))));
  EXPECT_NE(operand.find("matmul f32[16,4]"), std::string::npos) << operand;
  EXPECT_NE(operand.find("element 16 is infinite and its operands are finite; f32[16,16] from 2 to "
                         "2, f32[16,4] from 1 to 3e+38"),
            std::string::npos)
      << operand;
  EXPECT_EQ(foundIn(matmul(w, x(span, range(0, 4)))), "");
  const std::string map = foundIn(concatenate({w, sqrt(matmul(w, x * 1e-30) - 40.0)}, 1));
  EXPECT_NE(map.find("sqrt f32[16,8]"), std::string::npos) << map;
}

// Images lie with their channels in front; what is told is as it was recorded.
TEST_F(NanIn, ImagesInAnotherOrder) {
  std::vector<float> values(6 * 5 * 3 * 2, 1);
  values[4 + 6 * (3 + 5 * (2 + 3 * 1))] = -1;
  const Tensor images = Tensor::fromVector({6, 5, 3, 2}, values);
  const Tensor filter = full({1, 1, 3, 3}, 1.0);
  // No handle holds what lies so.
  Tensor y = images * 1.0;
  const auto convolve = [&] { y = table::conv2d(y, filter, Tensor(), {}) * 0.3333f; };
  convolve(), convolve();
  y = sqrt(y - 0.5) * 2.0;
  convolve(), convolve();
  const std::string error = foundIn(y);
  EXPECT_NE(error.find("sqrt f32[6,5,3,2]"), std::string::npos) << error;
  EXPECT_NE(error.find("element " + std::to_string(4 + 6 * (3 + 5 * (0 + 3 * 1))) + " is NaN"),
            std::string::npos)
      << error;
}

// What the machine code makes is found, though all others compute something else.
TEST_F(NanIn, MachineCodeThatIsWrong) {
  flags().fault = "wrong:add";
  const Tensor x = full({100}, 88.5);
  const Tensor y = exp(x + 0.0) * 0.5;
  const int line = __LINE__ - 1;
  const std::string error = foundIn(y);
  EXPECT_NE(error.find("exp f32[100] at "), std::string::npos) << error;
  EXPECT_NE(error.find("NanTest.cpp:" + std::to_string(line)), std::string::npos) << error;
  EXPECT_NE(error.find("element 0 is NaN or infinite in machine code, and 2.7"), std::string::npos)
      << error;
  EXPECT_NE(error.find("where its kernel is interpreted; f32[100] from 88.5 to 88.5"),
            std::string::npos)
      << error;
}

// The same kernels are found without machine code, and are others with and without the check.
TEST_F(NanIn, TheUsersOwn) {
  std::vector<float> values(100, 1);
  values[3] = NAN;
  values[4] = INFINITY;
  const Tensor x = Tensor::fromVector({100}, values);
  EXPECT_EQ(foundIn(x * 2.0 + sum(x) - amax(x, {0})), "");
  // An element that is no number does not hide that another one becomes none.
  values[90] = -1;
  const Tensor y = Tensor::fromVector({100}, values);
  const std::string error = foundIn(sqrt(y));
  EXPECT_NE(
      error.find("element 90 is NaN and its operands are not; f32[100] from -1 to 1 with 2 NaN "
                 "or infinite"),
      std::string::npos)
      << error;
}

TEST_F(NanIn, PlansHaveTheirBits) {
  const auto run = [] {
    setSeed(3);
    const Tensor x = rand({33, 65});
    const Tensor y = tanh(x) * 3.0 - log(x + 0.25);
    return (y / sum(exp(y), {0}, true) + mean(y * x, {1}, true)).toHostVector<float>();
  };
  const std::vector<float> checked = run();
  flags().check = "";
  EXPECT_EQ(checked, run());
}

TEST(CheckNan, MayGoOn) {
  flags().check = "nan-log";
  const BackendScope scope("lazy", "cpu");
  const Tensor x = iota({8}, {1}, dtype::f32) - 2.0;
  ::testing::internal::CaptureStderr();
  const std::vector<float> values = (sqrt(x) + 1.0 / x).toHostVector<float>();
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_EQ(values[3], 2);
  EXPECT_NE(log.find("FL_CHECK=nan-log: sqrt f32[8] at "), std::string::npos) << log;
  EXPECT_NE(log.find("FL_CHECK=nan-log: div f32[8] at "), std::string::npos) << log;
  flags().check = "";
}

}  // namespace
}  // namespace fl::check
