// FL_CHECK=ref and FL_CHECK=nan find the operator that is wrong, and nothing in programs that are
// right.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "fl/base/Flags.h"
#include "fl/check/CheckedPlan.h"
#include "fl/check/UnfusedPlan.h"
#include "fl/ir/Text.h"
#include "fl/kernel/Lower.h"
#include "fl/lazy/LazyBackend.h"
#include "fl/runtime/MemoryManager.h"
#include "fl/tensor/tensor.h"
#include "tests/ErrorOf.h"
#include "tests/fuzz/RandomProgram.h"

namespace fl::check {
namespace {

using runtime::LoadedSchedule;

// Changes the first element of what a schedule gives.
class WrongSchedule : public LoadedSchedule {
 public:
  WrongSchedule(std::unique_ptr<LoadedSchedule> right, float factor)
      : right_(std::move(right)), factor_(factor) {}
  Outputs run(std::span<const MemoryBlockPtr> buffers, std::span<const Number> numbers,
              std::span<const bool> spare) const override {
    Outputs outputs = right_->run(buffers, numbers, spare);
    static_cast<float*>(outputs[0]->data())[0] *= factor_;
    return outputs;
  }
  const std::vector<int>& reusable() const override { return right_->reusable(); }
  const ir::Schedule& schedule() const override { return right_->schedule(); }
  const std::vector<runtime::DeviceKernelPtr>& kernels() const override {
    return right_->kernels();
  }

 private:
  const std::unique_ptr<LoadedSchedule> right_;
  const float factor_;
};

// The CPU, on which schedules that have `word` in their text are wrong.
class WrongDevice : public runtime::Device {
 public:
  WrongDevice(std::string word, float factor) : word_(std::move(word)), factor_(factor) {}
  std::string name() const override { return "wrong"; }
  ir::Lowering lowering() const override { return cpu_->lowering(); }
  ir::Target target() const override { return cpu_->target(); }
  bool supportsLibrary(ir::Op op, const std::vector<ir::ValueType>& operands,
                       const ir::Attrs& attrs, const ir::ValueType& result) const override {
    return cpu_->supportsLibrary(op, operands, attrs, result);
  }
  std::unique_ptr<LoadedSchedule> load(ir::Schedule schedule,
                                       runtime::KernelCache* cache) override {
    const bool isWrong = printSchedule(schedule, "s").find(word_) != std::string::npos;
    auto loaded = cpu_->load(std::move(schedule), cache);
    return isWrong ? std::make_unique<WrongSchedule>(std::move(loaded), factor_)
                   : std::move(loaded);
  }

 private:
  const std::unique_ptr<runtime::Device> cpu_ = runtime::makeDevice("cpu");
  const std::string word_;
  const float factor_;
};

constexpr const char* kGraph = R"(graph @f(%x: f32[4]) {
  %0 = exp %x : f32[4]
  %1 = mul %0, %x : f32[4]
  %2 = sum %1 {keepDims=0, axes=[]} : f32[]
  return %2
})";

// What checking a graph says on a device on which `word` is wrong; of the plan, if `planFactor`.
std::string errorOf(const char* word, float factor, float planFactor = 1) {
  const ir::Graph graph = ir::parseGraph(kGraph);
  WrongDevice device(word, factor);
  runtime::KernelCache kernels;
  auto right = check::makeUnfusedPlan(graph, *runtime::makeDevice("cpu"), &kernels);
  auto plan = makeCheckedPlan(graph, std::make_unique<WrongSchedule>(std::move(right), planFactor),
                              "ref", device, &kernels);
  const float x[] = {0.5f, 1, 2, 3};
  const MemoryBlockPtr blocks[] = {runtime::makeBlock(x, sizeof x)};
  const Number numbers[] = {Number()};
  return test::errorOf<std::runtime_error>([&] { plan->run(blocks, numbers); });
}

TEST(CheckedPlan, FindsTheOperatorThatIsWrong) {
  EXPECT_EQ(errorOf("nothing", 1), "");
  EXPECT_NE(errorOf("= exp", 1.001f).find("FL_CHECK=ref: exp f32[4]"), std::string::npos)
      << errorOf("= exp", 1.001f);
  EXPECT_NE(errorOf("= exp", 1.001f).find("element 0 is 1.65"), std::string::npos);
  EXPECT_NE(errorOf("= exp", 1.001f).find(" ulp apart"), std::string::npos);
  EXPECT_NE(errorOf("= mul", 1.001f).find("FL_CHECK=ref: mul f32[4]"), std::string::npos);
  EXPECT_NE(errorOf("reduce sum", 1.001f).find("FL_CHECK=ref: sum f32[]"), std::string::npos);
}

TEST(CheckedPlan, AllowsWhatTheTableAllows) { EXPECT_EQ(errorOf("= exp", 1 + 0x1p-23f), ""); }

TEST(CheckedPlan, FindsAPlanThatDiffersFromItsOperators) {
  const std::string error = errorOf("nothing", 1, 1.001f);
  EXPECT_NE(error.find("FL_CHECK=ref: sum f32[]"), std::string::npos) << error;
  EXPECT_NE(error.find("in the plan and"), std::string::npos) << error;
}

class Checking : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { flags().check = GetParam(); }
  void TearDown() override { flags().check = ""; }
};
INSTANTIATE_TEST_SUITE_P(Flags, Checking, ::testing::Values("ref", "nan"));

TEST_P(Checking, LeavesRightProgramsAlone) {
  const BackendScope scope("lazy", "cpu");
  setSeed(5);
  Tensor x = rand({30, 20});
  for (int step = 0; step < 3; ++step) {
    x(range(2, 9), span) += 1.5;
    const Tensor y = matmul(transpose(x), x).astype(dtype::f16);
    x = x * 0.5 + tanh(mean(y.astype(dtype::f32))) + cumsum(x, 0) / 30.0;
    x = sort(where(x > 1.0, x, sin(x)), 1);
  }
  EXPECT_FALSE(std::isnan(sum(x).scalar<float>()));
}

// Programs over the whole API, with NaN, infinities and sums of anything.
TEST(CheckReference, FindsNothingInRandomPrograms) {
  flags().check = "ref";
  const BackendScope scope("lazy", "cpu");
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    testing::RandomProgram program({seed});
    EXPECT_EQ(test::errorOf<std::runtime_error>([&] { program.run(); }), "")
        << "seed " << seed << "\n"
        << program.text();
  }
  flags().check = "";
}

TEST(CheckNan, NamesTheOperatorAndTheLine) {
  flags().check = "nan";
  const BackendScope scope("lazy", "cpu");
  const Tensor x = iota({8}, {1}, dtype::f32) - 3.0;
  const Tensor roots = sqrt(x + 1.0);
  const int line = __LINE__ - 1;
  const Tensor later = exp(roots) * 2.0;
  const std::string error = test::errorOf<std::runtime_error>([&] { later.toHostVector<float>(); });
  EXPECT_NE(error.find("FL_CHECK=nan: sqrt f32[8] at "), std::string::npos) << error;
  EXPECT_NE(error.find("CheckedPlanTest.cpp:" + std::to_string(line)), std::string::npos) << error;
  EXPECT_NE(error.find("element 0 is NaN"), std::string::npos) << error;
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
                .find("element 3 is infinite and all operands are finite; f32[8] from -200 to 500"),
            std::string::npos)
      << errorOf(exp(x * 100.0));
  EXPECT_NE(errorOf(sqrt(x)).find("element 0 is NaN and no operand holds one; f32[8] from -2 to 5"),
            std::string::npos)
      << errorOf(sqrt(x));
  // An infinity of the user's own is none of ours, and neither is an extreme of nothing.
  EXPECT_EQ(errorOf(full({4}, INFINITY) * 2.0), "");
  EXPECT_EQ(errorOf(amax(full({0, 3}, 1.0), {0})), "");
  flags().check = "";
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

// The reference adds without the errors of a long sum.
TEST(CheckedPlan, LongSumsAreRight) {
  flags().check = "ref";
  registerBackend("checked sums", makeLazyBackend);
  const BackendScope scope("checked sums", "cpu");
  const Tensor tenths = full({1 << 16}, 0.1, dtype::f64);
  EXPECT_NEAR(sum(tenths).scalar<double>(), 6553.6, 1e-9);
  EXPECT_NEAR(norm(rand({1 << 16}, dtype::f64)).scalar<double>(), 147.8, 2);
  const Tensor row = reshape(tenths, {1, 1 << 16});
  EXPECT_NEAR(matmul(row, transpose(row)).scalar<double>(), 655.36, 1e-9);
  flags().check = "";
}

}  // namespace
}  // namespace fl::check
