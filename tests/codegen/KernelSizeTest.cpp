// Kernels of large graphs stay as small as compilers like them, whatever the graphs compute.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "fl/codegen/Compilation.h"
#include "fl/codegen/cpu/Emitter.h"
#include "fl/ir/Graph.h"
#include "fl/kernel/Kernel.h"
#include "fl/tile/HostTarget.h"

namespace fl::testing {
namespace {

using ir::Kind;
using ir::Op;
using ir::ValueId;

constexpr int kOperators = 10'000, kInputs = 3'000;
constexpr size_t kMostInstructions = 5'000;

// Of floating-point numbers to the same.
std::vector<Op> functionsOf(Kind kind) {
  std::vector<Op> ops;
  for (int i = 0; i < ir::kOpCount; ++i) {
    const ir::OpInfo& info = ir::opInfo(static_cast<Op>(i));
    if (info.kind == kind && info.result == ir::Result::Same && info.types != ir::Types::Integer)
      ops.push_back(info.op);
  }
  return ops;
}

// Operators of a graph in the making, of which the last one's value grows.
class Expression {
 public:
  explicit Expression(dtype type) {
    for (int i = 0; i < kInputs; ++i) graph_.addParameter({{type, {64, 100}}});
  }
  ValueId nextInput() { return next_++ % kInputs; }
  ValueId add(Op op, std::vector<ValueId> operands, ir::Attrs attrs = {}) {
    return graph_.addNode(op, std::move(operands), std::move(attrs));
  }
  void append(Op op, ValueId operand) { last_ = add(op, {last_, operand}); }
  // Less its sums along `axis`.
  void normalize(Dim axis) { append(Op::Sub, add(Op::Sum, {last_}, {1, axis})); }

  bool isLarge() const { return graph_.nodes().size() >= kOperators; }
  ir::Graph finish() {
    graph_.setResults({last_});
    return std::move(graph_);
  }

 private:
  ir::Graph graph_;
  int next_ = 1;
  ValueId last_ = 0;
};

// All functions in turns, of thousands of inputs; after every `sums` of them sums, along rows and
// columns in turns, where that is not 0.
ir::Graph wideExpression(dtype type, int sums) {
  const std::vector<Op> unary = functionsOf(Kind::Unary), binary = functionsOf(Kind::Binary);
  Expression expression(type);
  for (size_t i = 0; !expression.isLarge(); ++i) {
    const ValueId input = expression.nextInput();
    const bool isPlain = i % 3 == 0;
    const ValueId value = isPlain ? input : expression.add(unary[i % unary.size()], {input});
    expression.append(binary[i % binary.size()], value);
    if (sums > 0 && i % sums == 0) expression.normalize(static_cast<Dim>(i / sums % 2));
  }
  return expression.finish();
}

// One function as often as fills some kernels.
ir::Graph repeated(dtype type, Op op) {
  Expression expression(type);
  for (int i = 0; i < 200; ++i) {
    const ValueId input = expression.nextInput();
    if (ir::opKind(op) == Kind::Binary) {
      expression.append(op, input);
    } else {
      expression.append(Op::Add, expression.add(op, {input}));
    }
  }
  return expression.finish();
}

std::vector<ir::Kernel> kernelsOf(ir::Graph graph) {
  return codegen::compile(std::move(graph), {}).schedule.kernels;
}

size_t instructionsOf(const ir::Kernel& kernel) {
  size_t count = kernel.values.size();
  for (const ir::KernelStage& stage : kernel.stages)
    count += stage.stores.size() + stage.reduces.size();
  return count;
}

// Of LLVM, as our emitter makes them: each is a line that is indented.
size_t llvmInstructionsOf(const ir::Kernel& kernel) {
  const std::string text = codegen::cpu::emitLlvmText(kernel, tile::hostTarget(), "kernel");
  size_t count = 0;
  for (size_t at = text.find("\n  "); at != std::string::npos; at = text.find("\n  ", at + 1))
    ++count;
  return count;
}

constexpr dtype kTypes[] = {dtype::f16, dtype::bf16, dtype::f32, dtype::f64};

TEST(KernelSize, OfWideExpressions) {
  for (const dtype type : kTypes) {
    for (const int sums : {0, 1, 7}) {
      const std::vector<ir::Kernel> kernels = kernelsOf(wideExpression(type, sums));
      EXPECT_GE(kernels.size(), 10u);
      size_t most = 0;
      for (const ir::Kernel& kernel : kernels) most = std::max(most, instructionsOf(kernel));
      EXPECT_LE(most, kMostInstructions) << dtypeToString(type);
      EXPECT_GE(most, 10u) << "counts nothing";
    }
  }
}

// Maps: what several sweeps of a reduction share, each of them computes.
TEST(KernelSize, OfWideExpressionsInLlvm) {
  for (const dtype type : kTypes) {
    size_t most = 0;
    for (const ir::Kernel& kernel : kernelsOf(wideExpression(type, 0)))
      most = std::max(most, llvmInstructionsOf(kernel));
    EXPECT_LE(most, kMostInstructions) << dtypeToString(type);
    EXPECT_GE(most, kMostInstructions / 10) << "counts nothing";
  }
}

// The longest one too.
TEST(KernelSize, OfEachFunctionInLlvm) {
  for (const Kind kind : {Kind::Unary, Kind::Binary}) {
    for (const Op op : functionsOf(kind)) {
      for (const dtype type : {dtype::f32, dtype::f64}) {
        for (const ir::Kernel& kernel : kernelsOf(repeated(type, op)))
          EXPECT_LE(llvmInstructionsOf(kernel), kMostInstructions) << opName(op);
      }
    }
  }
}

}  // namespace
}  // namespace fl::testing
