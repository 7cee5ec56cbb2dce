// FL_CHECK=ref finds the operator and the pass that are wrong, and nothing in programs that are
// right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "fl/base/Flags.h"
#include "fl/check/CheckedPlan.h"
#include "fl/check/UnfusedPlan.h"
#include "fl/codegen/Compilation.h"
#include "fl/codegen/Extensions.h"
#include "fl/definitions/Trace.h"
#include "fl/ir/Rewrite.h"
#include "fl/ir/Rounding.h"
#include "fl/ir/Text.h"
#include "fl/kernel/Lower.h"
#include "fl/lazy/LazyBackend.h"
#include "fl/runtime/MemoryManager.h"
#include "fl/tensor/TableOps.h"
#include "fl/tensor/tensor.h"
#include "tests/ErrorOf.h"
#include "tests/fuzz/RandomProgram.h"

namespace fl::check {
namespace {

using runtime::LoadedSchedule;
using ::testing::HasSubstr;

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
  %2 = sum %1 {axes=[]} : f32[]
  return %2
})";

// What checking a graph says on a device on which `word` is wrong; of the plan, if `planFactor`.
std::string errorOf(const char* word, float factor, float planFactor = 1) {
  const ir::Graph graph = ir::parseGraph(kGraph);
  WrongDevice device(word, factor);
  runtime::KernelCache kernels;
  codegen::Compilation compiled = codegen::compile(graph, {});
  auto right = runtime::makeDevice("cpu")->load(std::move(compiled.schedule), &kernels);
  auto plan = makeCheckedPlan(graph, {{"the last", compiled.graph}},
                              std::make_unique<WrongSchedule>(std::move(right), planFactor), "ref",
                              device, &kernels, interpretCall);
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

TEST(CheckedPlan, AllowsTf32WhatItRounds) {
  const auto bound = [](Dim tf32) {
    return ir::boundOf({.op = ir::Op::Matmul, .attrs = {0, 0, tf32}}, /*scale=*/1, /*exact=*/1);
  };
  EXPECT_LT(bound(0), 1e-5);
  EXPECT_NEAR(bound(1), std::ldexp(1, -9), 1e-5);
}

TEST(CheckedPlan, FindsAPlanThatDiffersFromItsOperators) {
  const std::string error = errorOf("nothing", 1, 1.001f);
  EXPECT_NE(error.find("FL_CHECK=ref: sum f32[]"), std::string::npos) << error;
  EXPECT_THAT(error, HasSubstr(" in the plan and "));
  EXPECT_NE(error.find(" ulp apart"), std::string::npos) << error;
}

// The message of a read under FL_CHECK=ref and a fault.
std::string referenceError(const char* fault, const std::function<Tensor()>& compute) {
  flags().check = "ref";
  flags().fault = fault;
  const BackendScope scope("lazy", "cpu");
  const std::string error =
      test::errorOf<std::runtime_error>([&] { compute().toHostVector<float>(); });
  flags().check = flags().fault = "";
  return error;
}

// The first kernel: later ones compute of what it gave.
TEST(CheckReference, NamesTheFirstKernelThatDiffers) {
  int line = 0;
  const std::string error = referenceError("wrong:tanh", [&] {
    const Tensor x = rand({8, 16});
    line = __LINE__ + 1;
    const Tensor y = tanh(x) * 2.0;
    return matmul(y, transpose(x)) + sum(y * x);
  });
  EXPECT_NE(error.find("FL_CHECK=ref: mul f32[8,16] at "), std::string::npos) << error;
  EXPECT_NE(error.find("CheckedPlanTest.cpp:" + std::to_string(line)), std::string::npos) << error;
  EXPECT_NE(error.find("in the kernel \"rows rand+tanh+mul"), std::string::npos) << error;
  EXPECT_NE(error.find("where its operators run one by one, "), std::string::npos) << error;
  EXPECT_NE(error.find(" ulp apart"), std::string::npos) << error;
}

// Calls of libraries, which compute the same alone: each is held against its definition. What was
// right is kept, so that the fault has another size.
TEST(CheckReference, NamesTheCallThatIsWrong) {
  const table::Conv2dParameters conv{.px = 1, .py = 1};
  // A mean's gradient is nowhere 0, of which the fault would change the sign.
  const table::Pool2dParameters pool{
      .wx = 2, .wy = 2, .sx = 2, .sy = 2, .mode = PoolingMode::AVG_INCLUDE_PADDING};
  const auto values = [](const Shape& shape) { return rand(shape) - 0.5; };
  const auto images = [&](Dim count) { return values({8, 8, 4, count}); };
  const auto filters = [&] { return values({3, 3, 4, 4}); };
  const auto heads = [&](Dim count) { return values({256, 32, 2, count}); };
  const std::map<std::string, std::function<Tensor(Dim)>> calls = {
      {"matmul", [&](Dim count) { return matmul(values({16, 24}), values({24, count})); }},
      {"conv2d",
       [&](Dim count) { return table::conv2d(images(count), filters(), Tensor(), conv); }},
      {"conv2dBackwardData",
       [&](Dim count) {
         return table::conv2dBackwardData(images(count), filters(), {8, 8, 4, count}, conv);
       }},
      {"conv2dBackwardFilter",
       [&](Dim count) {
         return table::conv2dBackwardFilter(images(count), images(count), {3, 3, 4, 4}, conv);
       }},
      {"pool2d", [&](Dim count) { return table::pool2d(images(count), pool); }},
      {"pool2dBackward",
       [&](Dim count) {
         return table::pool2dBackward(values({4, 4, 4, count}), images(count), pool);
       }},
      {"attention",
       [&](Dim count) {
         // Scores of some hundreds.
         return table::attention(heads(count) * 200, heads(count), heads(count), Tensor());
       }},
      {"attentionBackward",
       [&](Dim count) {
         return table::attentionBackward(heads(count), heads(count) * 9, heads(count), heads(count),
                                         Tensor())[0];
       }},
  };
  // What all keys and values have in common adds nothing to the gradients of queries but roundings.
  const auto common = [&] {
    return table::attentionBackward(heads(1), heads(1), heads(1) + 2.0, heads(1) + 8.0,
                                    Tensor())[0];
  };
  EXPECT_EQ(referenceError("", common), "");
  for (const auto& [name, call] : calls) {
    const auto compute = [&call = call](Dim count) {
      return [&call, count] { return tanh(exp(call(count)) + 1.0); };
    };
    EXPECT_EQ(referenceError("", compute(2)), "") << name;
    const std::string error = referenceError(("wrong:" + name).c_str(), compute(3));
    EXPECT_THAT(error, HasSubstr("FL_CHECK=ref: " + name + " f32[")) << name;
    EXPECT_THAT(error, HasSubstr(" at tests/check/CheckedPlanTest.cpp:")) << name;
    EXPECT_THAT(error, HasSubstr("element 0 is ")) << name;
    EXPECT_THAT(error, HasSubstr(" alone and ")) << name;
    EXPECT_THAT(error, HasSubstr(" by the reference interpreter, ")) << name;
  }
}

// Convolutions lie with their channels in front and add in another order: less than a percent of
// what they should be is still seen.
TEST(CheckReference, SeesWhatPassesChangeBesideLibraries) {
  // Of other shapes, as plans are kept.
  const auto compute = [](Dim count) {
    return [count] {
      const Tensor images = rand({8, 8, 3, count}), filter = rand({3, 3, 3, 4});
      const Tensor y = table::conv2d(images, filter, Tensor(), {}) * 1e3, z = -(-y);
      const Shape matrix({36, 4 * count});
      return matmul(transpose(reshape(y, matrix)), reshape(z, matrix));
    };
  };
  EXPECT_EQ(referenceError("", compute(3)), "");
  const std::string error = referenceError("wrong:doubleNegative", compute(2));
  EXPECT_THAT(error, HasSubstr("FL_CHECK=ref: reshape f32[36,8] at "));
  EXPECT_THAT(error, HasSubstr(" after the pass canonicalize and "));
}

// Whatever pass is wrong: the operator, its line, and the pass over graphs, or else the kernel.
TEST(CheckReference, SeesEveryPassThatIsWrong) {
  std::set<std::string> seen;
  const auto expect = [&](const std::string& pass, const std::string& words,
                          const std::function<Tensor()>& compute, const std::string& rule = "") {
    const std::string fault = "wrong:" + (rule.empty() ? pass : rule);
    const std::string error = referenceError(fault.c_str(), compute);
    EXPECT_THAT(error, HasSubstr(words)) << pass;
    EXPECT_THAT(error, HasSubstr("CheckedPlanTest.cpp:")) << pass;
    seen.insert(pass);
  };
  const auto expectNamed = [&](const std::string& pass, const std::function<Tensor()>& compute,
                               const std::string& rule = "") {
    expect(pass, " after the pass " + pass + " and ", compute, rule);
  };
  int size = 8;
  const auto map = [&] {
    const Tensor x = rand({++size, 16}), y = rand({size, 16});
    eval(const_cast<Tensor&>(x)), eval(const_cast<Tensor&>(y));
    return sum(tanh(y - x * 2.0) + x, {0});
  };
  expectNamed("dce", map);
  expectNamed("canonicalize", [&] { return exp(-(-rand({++size, 4}))); }, "doubleNegative");
  expectNamed("cse", [&] {
    const Tensor x = rand({++size, 4}), y = tanh(x), z = tanh(x);
    return exp(y) - z;
  });
  expectNamed("library", [&] {
    const Tensor x = rand({++size, 4});
    return matmul(transpose(x), x);
  });
  for (const codegen::PassInfo& pass : codegen::passes()) {
    const bool isLeftOut = pass.name == "share" || pass.name == "budget";  // prepareOptions
    if (pass.stage != "graph" && !isLeftOut) expect(pass.name, "in the kernel \"rows ", map);
  }
  expectNamed("layout", [] {
    Tensor x = rand({8, 8, 4, 2});
    for (const auto& [from, to] : {std::pair(4, 16), {16, 16}, {16, 4}}) {
      x = table::conv2d(exp(x * 0.1), rand({3, 3, from, to}), Tensor(), {});
    }
    return x;
  });
  EXPECT_EQ(seen.size() + 2, codegen::passes().size());
}

// Of a pass that makes of a product something else, too, all bits have to be the same.
TEST(CheckReference, NamesAnAddedPassByAThousandth) {
  codegen::addPass({.name = "ours", .after = "cse", .run = [](codegen::Compilation& of) {
                      ir::rewriteGraph(&of.graph, [](ir::Graph& graph, ir::Node node) {
                        if (node.op == ir::Op::Sin) node.op = ir::Op::Tanh;
                        if (node.op != ir::Op::Matmul) return graph.addNode(std::move(node));
                        const ir::ValueId x = node.operands[0];
                        return graph.addNode(ir::Op::Add, {x, x}, {}, node.site);
                      });
                    }});
  const std::string error = referenceError("", [] {
    const Tensor x = full({4, 4}, 0.5f), one = identity(4);
    return (matmul(x, one + one) - 0.5) + sin(full({4, 4}, 0.01f));
  });
  codegen::addedPasses().remove("ours");
  EXPECT_THAT(error, HasSubstr("FL_CHECK=ref: sin f32[4,4] at "));
  EXPECT_THAT(error, HasSubstr(" after the pass ours and "));
}

// What no verifier of a pass can tell: two outputs of one type are written to each other's place.
TEST(CheckReference, SeesResultsThatChangePlaces) {
  codegen::addPass({.name = "ours", .after = "build", .run = [](codegen::Compilation& of) {
                      for (ir::Step& step : of.schedule.steps) {
                        auto& operands = std::get<ir::LaunchStep>(step).operands;
                        for (ir::LaunchOperand& each : operands) {
                          ir::BufferRef& buffer = *each.buffer;
                          if (buffer.space == ir::BufferRef::Space::Output) buffer.index ^= 1;
                        }
                      }
                    }});
  Tensor other;
  const std::string error = referenceError("", [&] {
    const Tensor x = Tensor::fromVector({5}, std::vector<float>{1, 2, 3, 4, 5});
    other = sin(x);
    return exp(x);
  });
  codegen::addedPasses().remove("ours");
  EXPECT_THAT(error, HasSubstr("FL_CHECK=ref: sin f32[5] at "));
  EXPECT_THAT(error, HasSubstr("element 0 is 2.71828"));
  EXPECT_THAT(error, HasSubstr(" in the plan and 0.84147"));
}

// A call and a map that leave what they make in the midst of a concatenation read something else.
TEST(CheckReference, SeesPartsWhereTheyAreMade) {
  const auto errorAt = [](bool call) {
    codegen::addPass({.name = "ours",
                      .version = call,
                      .after = "build",
                      .run = [call](codegen::Compilation& of) {
                        for (ir::Step& step : of.schedule.steps) {
                          if (auto* product = std::get_if<ir::LibraryStep>(&step)) {
                            const bool isBehind = product->result.offset != ir::ElementOffset();
                            if (call && isBehind) product->operands[0] = product->operands[1];
                          } else if (auto& map = std::get<ir::LaunchStep>(step); !call) {
                            EXPECT_EQ(map.operands[1].offset.constant, 256);
                            map.operands[0].buffer = {ir::BufferRef::Space::Parameter, 0};
                          }
                        }
                      }});
    const std::string error = referenceError("", [call] {
      const Tensor x = Tensor::fromVector({16, 16}, std::vector<float>(256, 0.5f)),
                   y = Tensor::fromVector({16, 16}, std::vector<float>(256, 0.25f));
      const Tensor map = tanh(matmul(x, y)), product = matmul(y, x);
      return call ? concatenate({map, product}, 1) : concatenate({product, map}, 1);
    });
    codegen::addedPasses().remove("ours");
    return error;
  };
  EXPECT_THAT(errorAt(true), HasSubstr("FL_CHECK=ref: matmul f32[16,16] at "));
  EXPECT_THAT(errorAt(true), HasSubstr(" in the call and 2 where its operators run one by one"));
  EXPECT_THAT(errorAt(false), HasSubstr("FL_CHECK=ref: tanh f32[16,16] at "));
  EXPECT_THAT(errorAt(false),
              AllOf(HasSubstr(" in the kernel \"map tanh "), HasSubstr("\" and 0.964027")));
}

// Channels that are as many as pixels: shapes do not tell in which order images lie. Gradients of
// filters lie as they are.
TEST(CheckReference, KnowsTheOrderOfImages) {
  for (const Shape& shape : {Shape({8, 8, 8, 2}), Shape({5, 8, 8, 2}), Shape({8, 6, 8, 8})}) {
    const auto compute = [&] {
      Tensor x = rand(shape), gradients = full({5, 5, 8, 8}, 0.0);
      const table::Conv2dParameters same{.px = 2, .py = 2};
      for (int i = 0; i < 4; ++i) {
        const Tensor from = exp(x * 0.1);
        x = table::conv2d(from, rand({5, 5, 8, 8}) - 0.5, Tensor(), same);
        gradients = gradients + table::conv2dBackwardFilter(x, from, {5, 5, 8, 8}, same);
      }
      return sum(gradients) + x;
    };
    EXPECT_EQ(referenceError("", compute), "") << shape.toString();
  }
}

// Passes merge the second product with the first, of which the rest is then known to a bit.
TEST(CheckReference, IsExactBehindMergedProducts) {
  int size = 6;
  const auto compute = [&] {
    const Tensor x = rand({++size, 30}), y = rand({30, 5}), z = rand({size, 5});
    const Tensor first = matmul(transpose(transpose(x)), y), second = matmul(-(-x), y);
    return (first * z) + tanh(second) * 1e-6;
  };
  EXPECT_EQ(referenceError("", compute), "");
  const auto lost = [&] {
    const Tensor x = rand({++size, 30}), y = rand({30, 5}), z = rand({size, 5});
    const Tensor merged = matmul(x, y) + matmul(-(-x), y);
    return merged + -(-(z * 1e-4));
  };
  EXPECT_EQ(referenceError("", lost), "");
  // A ten-thousandth.
  EXPECT_THAT(
      referenceError("wrong:doubleReshape",
                     [&] {
                       const Tensor z = rand({++size, 4}), y = rand({4, 5}), x = rand({size, 4});
                       const Tensor merged = matmul(x, y) + matmul(-(-x), y);
                       const Tensor few = reshape(reshape(z * 1e-4, {2, size * 2}), {size, 4});
                       return sum(merged) + few;
                     }),
      HasSubstr(" after the pass canonicalize and "));
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
    const Tensor parts =
        concatenate({matmul(transpose(x), x), tanh(matmul(transpose(x), sin(x)))}, 1);
    x += matmul(x, parts(span, range(5 + step, 25 + step))) * 1e-3;
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
