// Every kernel of the suite, row kernels and one of many sums compile for the architectures in use,
// and nothing is spilled.
//
// The registers of each function are left in the test's outputs (bazel-testlogs/.../test.outputs).
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "fl/base/Error.h"
#include "fl/codegen/cuda/Emitter.h"
#include "fl/codegen/cuda/KernelCode.h"
#include "fl/codegen/cuda/Nvrtc.h"
#include "fl/kernel/cuda/Group.h"
#include "fl/kernel/cuda/Scatter.h"
#include "fl/kernel/cuda/Transpose.h"
#include "tests/ErrorOf.h"
#include "tests/codegen/cuda/RowKernels.h"
#include "tests/codegen/cuda/SuiteKernels.h"

namespace fl::testing {
namespace {

using codegen::cuda::compileCuda;
using codegen::cuda::NamedKernel;

// Of two batch norms whose sum a ReLU takes: a column kernel of four operands and three sums.
ir::Kernel batchNormsGradientKernel() {
  const std::vector<ir::Stride> all = {kOne, kAny, kAny}, column = {kOne, kZero, kZero};
  const std::vector<ir::Stride> kept = {kOne, kZero, kAny};
  KernelMaker maker(3, 2);
  const auto apply = [&](ir::Op op, int x, int y) { return maker.apply(op, {x, y}); };
  const auto input = [&](const auto& strides) { return maker.input(dtype::f32, strides); };
  const int gradient = apply(ir::Op::Add, input(all), input(all));
  const int x = input(all), scaledX = apply(ir::Op::Mul, x, input(column));
  const int normX = apply(ir::Op::Add, scaledX, input(column));
  const int y = input(all), scaledY = apply(ir::Op::Mul, y, input(column));
  const int normY = apply(ir::Op::Add, scaledY, input(column));
  const int sum = apply(ir::Op::Add, normX, normY);
  const int relu = apply(ir::Op::Maximum, sum, maker.scalar(dtype::f32));
  const int passes = apply(ir::Op::GreaterThan, relu, maker.scalar(dtype::f32));
  const int passed = apply(ir::Op::Mul, gradient, maker.cast(passes, dtype::f32));
  const int fromY = apply(ir::Op::Mul, passed, apply(ir::Op::Sub, y, input(column)));
  const int fromX = apply(ir::Op::Mul, passed, apply(ir::Op::Sub, x, input(column)));
  maker.beginStage(true);
  maker.store(passed, all);
  std::vector<int> totals;
  for (const int each : {passed, fromY, fromX}) {
    totals.push_back(maker.total(maker.reduce(ir::Op::Sum, each), dtype::f32));
  }
  maker.beginStage(false);
  for (const int total : totals) maker.store(total, kept);
  return maker.kernel();
}

// What a function takes, as the log has it. A spilled byte is one that a thread writes to memory
// because it has no register for it.
struct FunctionResources {
  std::string name;
  int registers = 0;
  int stackBytes = 0;
  int spilledBytes = 0;
  int sharedBytes = 0;
};

// Three lines a function: "... Compiling entry function 'k0' for 'sm_90'", "8 bytes stack frame, 8
// bytes spill stores, 16 bytes spill loads" and "... Used 40 registers, ..., 64 bytes smem".
std::vector<FunctionResources> resourcesOf(const std::string& log) {
  std::vector<FunctionResources> all;
  std::istringstream lines(log);
  const auto numberBefore = [](const std::string& line, const char* words) {
    const size_t at = line.find(words);
    if (at == std::string::npos) return 0;
    return std::stoi(line.substr(line.find_last_of(", ", at - 2) + 1));
  };
  constexpr char kBegin[] = "Compiling entry function '";
  for (std::string line; std::getline(lines, line);) {
    if (const size_t at = line.find(kBegin); at != std::string::npos) {
      const size_t name = at + sizeof(kBegin) - 1;
      all.push_back({line.substr(name, line.find('\'', name) - name)});
    } else if (!all.empty() && line.find("bytes stack frame") != std::string::npos) {
      all.back().stackBytes = numberBefore(line, " bytes stack frame");
      all.back().spilledBytes = numberBefore(line, " bytes spill stores");
    } else if (!all.empty() && line.find(" registers") != std::string::npos) {
      all.back().registers = numberBefore(line, " registers");
      all.back().sharedBytes = numberBefore(line, " bytes smem");
    }
  }
  return all;
}

class EveryKernel : public ::testing::TestWithParam<const char*> {};

// The functions of kernels, as code for so many launches.
std::vector<FunctionResources> compiled(const std::vector<ir::Kernel>& kernels,
                                        const std::string& architecture, int launches = 1) {
  constexpr size_t kTogether = 16;
  std::vector<FunctionResources> all;
  for (size_t first = 0, expected = 0; first < kernels.size(); first += kTogether) {
    std::vector<NamedKernel> named;
    for (size_t i = first; i < std::min(first + kTogether, kernels.size()); ++i) {
      named.push_back({"k" + std::to_string(i), &kernels[i], launches});
      expected += ir::cuda::variantsOf(kernels[i]).size();
    }
    const auto module = compileCuda(emitCuda(named), named[0].name, architecture);
    EXPECT_EQ(module.cubin.substr(0, 4), "\177ELF");
    std::ranges::move(resourcesOf(module.log), std::back_inserter(all));
    EXPECT_EQ(all.size(), expected) << module.log;
    for (const FunctionResources& each : all) {
      const ir::Kernel& kernel = kernels[std::stoi(each.name.substr(1))];
      EXPECT_EQ(each.spilledBytes, 0) << printKernel(kernel, each.name);
      EXPECT_EQ(each.stackBytes, 0) << printKernel(kernel, each.name);
    }
    if (::testing::Test::HasFailure()) break;
  }
  return all;
}

TEST_P(EveryKernel, CompilesWithoutSpills) {
  ASSERT_EQ(codegen::cuda::nvrtcProblem(), "");
  std::vector<ir::Kernel> kernels = suiteKernels();
  std::ranges::move(rowKernels(), std::back_inserter(kernels));
  kernels.push_back(batchNormsGradientKernel());
  std::vector<FunctionResources> all = compiled(kernels, GetParam());
  std::ofstream table(std::string(std::getenv("TEST_UNDECLARED_OUTPUTS_DIR")) + "/registers.txt");
  for (const FunctionResources& each : all) {
    table << each.registers << " registers, " << each.sharedBytes << " bytes shared\n"
          << printKernel(kernels[std::stoi(each.name.substr(1))], each.name);
  }
  const auto fewer = [](const FunctionResources& x, const FunctionResources& y) {
    return x.registers < y.registers;
  };
  std::sort(all.begin(), all.end(), fewer);
  std::cout << all.size() << " functions for " << GetParam() << ": "
            << all[all.size() / 2].registers << " registers in the middle, " << all.back().registers
            << " at most\n";
}

void expectNoSpills(const std::string& text, const char* entry, const char* architecture) {
  const auto resources = resourcesOf(compileCuda(text, entry, architecture).log);
  ASSERT_EQ(resources.size(), 1u);
  EXPECT_EQ(resources[0].name, entry);
  EXPECT_EQ(resources[0].spilledBytes, 0);
  EXPECT_EQ(resources[0].stackBytes, 0);
}

TEST_P(EveryKernel, ThatIsWrittenByHandToo) {
  for (int type = 0; type < kDtypeCount; ++type) {
    for (const ir::Op op : {ir::Op::Scatter, ir::Op::ScatterAdd}) {
      const std::string text = codegen::cuda::emitScatter(op, static_cast<dtype>(type));
      expectNoSpills(text, ir::cuda::kScatterEntry, GetParam());
    }
  }
  expectNoSpills(codegen::cuda::emitTranspose(), ir::cuda::kTransposeEntry, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Nvrtc, EveryKernel, ::testing::Values("sm_80", "sm_90", "sm_120"),
                         [](const auto& info) { return std::string(info.param); });

// The oldest that it knows, which fetches rows in a way of its own.
TEST(Nvrtc, RowsCompileForTuring) { compiled(rowKernels(), "sm_75"); }

TEST(Nvrtc, ErrorsNameTheModuleAndCarryTheLog) {
  const auto error = [](const char* source, const char* architecture) {
    return test::errorOf<InternalError>([&] { compileCuda(source, "k7", architecture); });
  };
  EXPECT_NE(error("__device__ int x = frobnicate;", "sm_90").find("k7 for sm_90: k7.cu(1): error"),
            std::string::npos);
  EXPECT_NE(error("", "sm_1").find("k7 for sm_1: "), std::string::npos);
}

TEST(Nvrtc, SaysWhichGpusItDoesNotKnow) {
  for (const char* known : {"", "sm_75", "sm_90", "sm_120"})
    EXPECT_EQ(codegen::cuda::nvrtcProblem(known), "");
  for (const char* unknown : {"sm_70", "sm_999"}) {
    const std::string problem = codegen::cuda::nvrtcProblem(unknown);
    EXPECT_EQ(problem.substr(0, 14), "CUDA: NVRTC 13") << problem;
    EXPECT_NE(problem.find(std::string(" makes no code for a GPU of architecture ") + unknown +
                           ": it knows those from sm_75 to sm_"),
              std::string::npos)
        << problem;
    EXPECT_EQ(test::errorOf<std::runtime_error>(
                  [&] { codegen::cuda::codeVersion({.features = unknown}); }),
              problem);
  }
}

TEST(Nvrtc, IdentityHasVersionAndOptions) {
  const std::string identity = codegen::cuda::nvrtcIdentity();
  EXPECT_EQ(identity.substr(0, 8), "NVRTC 13") << identity;
  EXPECT_NE(identity.find("--fmad=false"), std::string::npos);
}

// A kernel that holds more than 255 registers' worth spills, and the log says so.
TEST(Nvrtc, ResourcesShowSpills) {
  const auto module = compileCuda(
      "extern \"C\" __global__ void __launch_bounds__(1024) k(float* x, int n) {\n"
      "  float held[128];\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < 128; ++i) held[i] = x[i * n];\n"
      "  __syncthreads();\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < 128; ++i) x[(127 - i) * n + 1] = held[i];\n}\n",
      "k", "sm_90");
  EXPECT_NE(module.ptx.find(".visible .entry k("), std::string::npos) << module.ptx;
  const std::vector<FunctionResources> resources = resourcesOf(module.log);
  ASSERT_EQ(resources.size(), 1u);
  EXPECT_EQ(resources[0].name, "k");
  EXPECT_EQ(resources[0].registers, 64);
  EXPECT_GT(resources[0].spilledBytes, 0);
  EXPECT_GT(resources[0].stackBytes, 0);
}

// Where a launch's words are is known when the block runs.
TEST(Nvrtc, GroupsOfEveryMapCompileWithoutSpills) {
  std::vector<ir::Kernel> maps = suiteKernels();
  std::erase_if(maps, [](const ir::Kernel& kernel) { return !ir::cuda::mayGroup(kernel); });
  ASSERT_GT(maps.size(), 100u);
  EXPECT_EQ(compiled(maps, "sm_90", 64).size(), maps.size());
}

}  // namespace
}  // namespace fl::testing
