#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fl/base/Error.h"
#include "fl/base/Text.h"
#include "fl/ir/Inference.h"
#include "fl/ir/Text.h"
#include "fl/kernel/Schedule.h"

namespace fl::ir {
namespace {

const char* const kGraph =
    "graph @f(%p0: f32[4,8], %p1: f32[3,4], %p2: number f32) {\n"
    "  %0 = matmul %p1, %p0 : f32[3,8]\n"
    "  %1 = mul %0, %p2 : f32[3,8]\n"
    "  %2 = sum %1 {axes=[0]} : f32[8]\n"
    "  %3 = astype %2 {dtype=f64} : f64[8]\n"
    "  return %3, %1\n"
    "}\n";

TEST(GraphText, PrintOfParseIsAFixpoint) { EXPECT_EQ(printGraph(parseGraph(kGraph), "f"), kGraph); }

TEST(GraphText, NamesAreFreeAndNumberedOnPrinting) {
  const Graph graph = parseGraph(
      "graph @g(%x: f32[2], %s: number f32) { // a comment\n %y = add %x, %s : f32[2]\n return %y "
      "}");
  EXPECT_EQ(printGraph(graph, "g"),
            "graph @g(%p0: f32[2], %p1: number f32) {\n"
            "  %0 = add %p0, %p1 : f32[2]\n"
            "  return %0\n"
            "}\n");
}

TEST(GraphText, AttributesStandInAnyOrder) {
  const Graph graph = parseGraph(
      "graph @f(%x: f32[4,8], %i: number s64) {\n"
      "  %0 = sum %x {axes=[0], keepDims=1} : f32[1,8]\n"
      "  %1 = iota {shape=[4,8], axis=1, dtype=s32} : s32[4,8]\n"
      "  %2 = slice %x, %i, %i {sizesThenStrides=[2,3,1,1], rank=2} : f32[2,3]\n"
      "  return %0, %1, %2\n"
      "}\n");
  EXPECT_EQ(printGraph(graph, "f"),
            "graph @f(%p0: f32[4,8], %p1: number s64) {\n"
            "  %0 = sum %p0 {keepDims=1, axes=[0]} : f32[1,8]\n"
            "  %1 = iota {dtype=s32, axis=1, shape=[4,8]} : s32[4,8]\n"
            "  %2 = slice %p0, %p1, %p1 {rank=2, sizesThenStrides=[2,3,1,1]} : f32[2,3]\n"
            "  return %0, %1, %2\n"
            "}\n");
}

TEST(GraphText, SomeAttributesMayBeLeftOut) {
  const Graph graph = parseGraph(
      "graph @f(%x: f32[4,8], %w: f32[3,4]) {\n"
      "  %0 = matmul %w, %x : f32[3,8]\n"
      "  %1 = exp %0 : f32[3,8]\n"
      "  %2 = sum %1 {axes=[0]} : f32[8]\n"
      "  return %2\n"
      "}\n");
  EXPECT_EQ(printGraph(graph, "f"),
            "graph @f(%p0: f32[4,8], %p1: f32[3,4]) {\n"
            "  %0 = matmul %p1, %p0 : f32[3,8]\n"
            "  %1 = exp %0 : f32[3,8]\n"
            "  %2 = sum %1 {axes=[0]} : f32[8]\n"
            "  return %2\n"
            "}\n");
}

std::string parseError(const std::string& text) {
  try {
    parseGraph(text);
  } catch (const ParseError& error) {
    return error.what();
  }
  return "no error";
}

TEST(GraphText, ErrorsCarryLineColumnAndCaret) {
  EXPECT_EQ(parseError("graph @f(%x: f32[2]) {\n  %0 = frob %x : f32[2]\n  return %0\n}\n"),
            "2:8: \"frob\" is no op\n  %0 = frob %x : f32[2]\n       ^");
  EXPECT_EQ(parseError("graph @f(%x: f32[2]) {\n  %0 = exp %y : f32[2]\n  return %0\n}\n"),
            "2:12: %y is not defined\n  %0 = exp %y : f32[2]\n           ^");
  EXPECT_EQ(parseError("graph @f(%x: f32[2]) {\n  %0 = exp %x : f32[3]\n  return %0\n}\n"),
            "2:8: the type is f32[2], not f32[3]\n  %0 = exp %x : f32[3]\n       ^");
  EXPECT_EQ(parseError("graph @f(%x: f32[2]) {\n  %0 = add %x : f32[2]\n  return %0\n}\n"),
            "2:8: add has 1 operands\n  %0 = add %x : f32[2]\n       ^");
  EXPECT_EQ(parseError("graph @f(%x: f32[2], %n: number f32) {\n  return %x, %n\n}\n"),
            "2:10: a number is no result\n  return %x, %n\n         ^");
  for (const char* axis : {"3", "-1", "99999999999"}) {
    EXPECT_THAT(parseError(std::string("graph @f() {\n  %0 = iota {dtype=f32, axis=") + axis +
                           ", shape=[3]} : f32[3]\n  return %0\n}\n"),
                testing::StartsWith(std::string("2:8: iota: axis ") + axis + " of (3)\n"));
  }
  EXPECT_THAT(parseError("graph @f(%x: f33[2]) {"), testing::HasSubstr("1:14: expected a dtype"));
  EXPECT_THAT(parseError("graph @f(%x: f32[2])"), testing::HasSubstr("expected \"{\" at the end"));
}

TEST(GraphText, StructureIgnoresCallSites) {
  Graph a = parseGraph(kGraph), b = parseGraph(kGraph);
  EXPECT_TRUE(a.sameStructure(b));
  b.setResults({a.results()[0]});
  EXPECT_FALSE(a.sameStructure(b));
}

const char* const kKernel =
    "kernel @k rank=2 reduced=[0] {\n"
    "  operand input f32 [1,*]\n"
    "  operand index s64 [0,1]\n"
    "  operand output f32 [0,1]\n"
    "  scalar f32\n"
    "  %0 = load 0 : f32\n"
    "  %1 = scalar 0 : f32\n"
    "  %2 = mul %0, %1 : f32\n"
    "  %3 = total 0 : f32\n"
    "  %4 = load 1 : s64\n"
    "  %5 = astype %4 : f32\n"
    "  %6 = add %3, %5 : f32\n"
    "  sweep { reduce sum %2 }\n"
    "  stage { store 2 %6 }\n"
    "}\n";

TEST(KernelText, PrintOfParseIsAFixpoint) {
  const Kernel kernel = parseKernel(kKernel);
  EXPECT_EQ(printKernel(kernel, "k"), kKernel);
  EXPECT_EQ(parseKernel(printKernel(kernel, "other")), kernel);
  EXPECT_TRUE(kernel.rows());
  const int64_t extents[] = {5, 7};
  EXPECT_EQ(kernelDomain(kernel, extents), 7);
}

TEST(KernelText, VerifierRejectsBrokenKernels) {
  Kernel kernel = parseKernel(kKernel);
  kernel.values[2].args[1] = 5;  // used before its definition
  EXPECT_THROW(verify(kernel), InternalError);
  kernel = parseKernel(kKernel);
  kernel.stages[0].sweep = false;
  EXPECT_THROW(verify(kernel), InternalError);
  kernel = parseKernel(kKernel);
  kernel.stages[0].reduces[0].value = 3;  // its own total
  EXPECT_THROW(verify(kernel), InternalError);
  kernel = parseKernel(kKernel);
  kernel.operands[2].role = KernelOperand::Role::Input;
  EXPECT_THROW(verify(kernel), InternalError);
}

const char* const kSchedule =
    "schedule @s arena=64 bound=64 {\n"
    "  parameter f32[4,8]\n"
    "  parameter number s64\n"
    "  output f32[4]\n"
    "  output f32[2,2] shares o0\n"
    "  temporary bytes=64 first=0 last=1 offset=0\n"
    "kernel @k0 rank=1 reduced=[] {\n"
    "  operand input f32 [1]\n"
    "  operand output f32 [1]\n"
    "  %0 = load 0 : f32\n"
    "  stage { store 1 %0 }\n"
    "}\n"
    "  launch 0 extents=[4] operands(p0+0+4*p1[1], t0+0[1]) numbers=[]\n"
    "  library fold {strideX=1, strideY=1, dilationX=1, dilationY=1, sizeX=1, sizeY=1}"
    " (t0: f32[1,1,1,1,4]) -> o0: f32[1,1,4]\n"
    "}\n";

TEST(ScheduleText, PrintOfParseIsAFixpoint) {
  EXPECT_EQ(printSchedule(parseSchedule(kSchedule), "s"), kSchedule);
}

// A call's operands and result begin anywhere in their buffers.
TEST(ScheduleText, PrintsWhereACallBegins) {
  const std::string text =
      "schedule @s arena=0 bound=0 {\n"
      "  parameter f32[4,8]\n"
      "  parameter number s64\n"
      "  parameter f32[8,8]\n"
      "  output f32[4,6]\n"
      "  library matmul (p0: f32[4,8], p2+0+8*p1: f32[8,2]) -> "
      "o0: f32[4,2]\n"
      "  library matmul (p0: f32[4,8], p2+32: f32[8,4]) -> o0+8: "
      "f32[4,4]\n"
      "}\n";
  const Schedule schedule = parseSchedule(text);
  EXPECT_EQ(printSchedule(schedule, "s"), text);
  const auto& call = std::get<LibraryStep>(schedule.steps[0]);
  EXPECT_EQ(call.operands[1], (BufferPlace{{BufferRef::Space::Parameter, 2}, {0, {{1, 8}}}}));
  EXPECT_EQ(std::get<LibraryStep>(schedule.steps[1]).result,
            (BufferPlace{{BufferRef::Space::Output, 0}, {8, {}}}));
}

// A step that has scratch memory says in which temporary.
TEST(ScheduleText, PrintsScratchMemory) {
  const std::string text =
      "schedule @s arena=704 bound=704 {\n"
      "  parameter f32[1,1,1,1,4]\n"
      "  output f32[1,1,4]\n"
      "  temporary bytes=64 first=0 last=1 offset=0\n"
      "  temporary bytes=128 first=0 last=0 offset=64\n"
      "  temporary bytes=640 first=1 last=1 offset=64\n"
      "kernel @k0 rank=1 reduced=[] {\n"
      "  operand input f32 [1]\n"
      "  operand output f32 [1]\n"
      "  %0 = load 0 : f32\n"
      "  stage { store 1 %0 }\n"
      "}\n"
      "  launch 0 extents=[4] operands(p0+0[1], t0+0[1]) numbers=[] scratch t1\n"
      "  library fold {strideX=1, strideY=1, dilationX=1, dilationY=1, sizeX=1, sizeY=1}"
      " (t0: f32[1,1,1,1,4]) -> o0: f32[1,1,4] scratch t2\n"
      "}\n";
  const Schedule schedule = parseSchedule(text);
  EXPECT_EQ(printSchedule(schedule, "s"), text);
  EXPECT_EQ(scratchOf(schedule.steps[0]), 1);
  EXPECT_EQ(scratchOf(schedule.steps[1]), 2);
  EXPECT_THAT(stepBuffers(schedule, schedule.steps[1]).writes,
              ::testing::ElementsAre(BufferRef{BufferRef::Space::Output, 0},
                                     BufferRef{BufferRef::Space::Temporary, 2}));
  EXPECT_EQ(stepBytes(schedule, schedule.steps[1]), 4u * (4 + 4)) << "it is no operand";
  verify(schedule);
}

TEST(ScheduleText, VerifierRejectsUseOutsideALifetime) {
  Schedule schedule = parseSchedule(kSchedule);
  schedule.temporaries[0].last = 0;
  EXPECT_THROW(verify(schedule), InternalError);
  schedule = parseSchedule(kSchedule);
  std::get<LaunchStep>(schedule.steps[0]).operands[0].strides[0] = 2;  // its class says 1
  EXPECT_THROW(verify(schedule), InternalError);
}

TEST(ScheduleText, BytesCountEachElementOnce) {
  const Schedule schedule = parseSchedule(kSchedule);
  EXPECT_EQ(stepBytes(schedule, schedule.steps[0]), 4u * (4 + 4));
  EXPECT_EQ(stepBytes(schedule, schedule.steps[1]), 4u * (4 + 4));
}

std::string inferenceError(Op op, const std::vector<ValueType>& types, const Attrs& attrs) {
  std::vector<const ValueType*> operands;
  for (const ValueType& type : types) {
    operands.push_back(&type);
  }
  try {
    inferType(op, operands, attrs);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

TEST(Inference, ErrorsNameOpTypesAndRule) {
  const ValueType a{dtype::f32, {3, 4}}, b{dtype::f32, {5, 2}}, c{dtype::s32, {3, 4}};
  EXPECT_EQ(inferenceError(Op::Matmul, {a, b}, {0, 0, 0}),
            "matmul: f32[3,4] x f32[5,2]: inner dimensions 4 and 5 differ");
  EXPECT_EQ(inferenceError(Op::Add, {a, b}, {}),
            "add: f32[3,4] x f32[5,2]: shapes do not broadcast");
  EXPECT_EQ(inferenceError(Op::Add, {a, c}, {}),
            "add: f32[3,4] x s32[3,4]: dtypes f32 and s32 differ");
  EXPECT_EQ(inferenceError(Op::BitwiseAnd, {a, a}, {}),
            "bitwiseAnd: f32[3,4] x f32[3,4]: needs an integer dtype");
  EXPECT_EQ(inferenceError(Op::Exp, {c}, {}), "exp: s32[3,4]: needs a floating dtype");
  EXPECT_EQ(inferenceError(Op::Where, {a, a, a}, {}),
            "where: f32[3,4] x f32[3,4] x f32[3,4]: the condition must be b8");
  EXPECT_EQ(inferenceError(Op::Reshape, {a}, Attrs(std::vector<Dim>{5})),
            "reshape: f32[3,4]: has 12 elements, (5) has 5");
  EXPECT_EQ(inferenceError(Op::Transpose, {a}, Attrs(std::vector<Dim>{0, 0})),
            "transpose: f32[3,4]: axes (0, 0) are no permutation of its 2 dimensions");
  const ValueType seed{dtype::u64, {}}, words{dtype::u64, {1}}, truth{dtype::b8, {}};
  const Attrs drawn({static_cast<Dim>(dtype::f32), 4, 8});
  const std::string rule = ": the seed and offsets are scalars of u64";
  EXPECT_EQ(inferenceError(Op::Random, {seed, seed, seed}, drawn), "no error");
  EXPECT_EQ(inferenceError(Op::Random, {seed, truth}, drawn), "rand: u64[] x b8[]" + rule);
  EXPECT_EQ(inferenceError(Op::Random, {c, seed}, drawn), "rand: s32[3,4] x u64[]" + rule);
  EXPECT_EQ(inferenceError(Op::Random, {seed, seed, words}, drawn),
            "rand: u64[] x u64[] x u64[1]" + rule);
  EXPECT_EQ(inferenceError(Op::Sum, {a}, {0, 2}), "sum: f32[3,4]: axis 2 is out of range");
  EXPECT_EQ(inferenceError(Op::Concatenate, {a, b}, {0}),
            "concatenate: f32[3,4] x f32[5,2]: dimensions other than 0 differ");
}

TEST(Inference, BroadcastingIsLeftAligned) {
  Shape result;
  EXPECT_TRUE(broadcastShapes({3, 4}, {3}, &result));
  EXPECT_EQ(result, Shape({3, 4}));
  EXPECT_TRUE(broadcastShapes({1, 4, 1}, {3, 1, 5}, &result));
  EXPECT_EQ(result, Shape({3, 4, 5}));
  EXPECT_FALSE(broadcastShapes({3, 4}, {4}, &result));
}

}  // namespace
}  // namespace fl::ir
