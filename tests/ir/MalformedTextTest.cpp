// What the parsers and verifiers of the three forms reject, and in which words: each case is a good
// text in which one thing is replaced.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "fl/base/Error.h"
#include "fl/base/Text.h"
#include "fl/ir/Text.h"
#include "fl/kernel/Schedule.h"
#include "tests/ErrorOf.h"

namespace fl::ir {
namespace {

struct Case {
  const char* good;  // stands in the text once
  const char* bad;
  const char* error;  // the first line of a ParseError, or the reason of an InternalError
};

std::string reasonOf(const std::function<void()>& parse) {
  std::string malformed;
  const std::string broken =
      test::errorOf<InternalError>([&] { malformed = test::errorOf<ParseError>(parse); });
  if (broken.empty()) {
    return malformed.substr(0, malformed.find('\n'));
  }
  const std::string before = " does not hold: ";
  const size_t begin = broken.find(before) + before.size();
  return broken.substr(begin, broken.rfind(". Please report") - begin);
}

template <size_t N>
void expectRejected(const std::string& text, const Case (&cases)[N],
                    const std::function<void(const std::string&)>& parse) {
  ASSERT_EQ(reasonOf([&] { parse(text); }), "");
  for (const Case& each : cases) {
    const size_t place = text.find(each.good);
    ASSERT_NE(place, std::string::npos) << each.good;
    ASSERT_EQ(text.find(each.good, place + 1), std::string::npos) << each.good;
    const std::string bad =
        std::string(text).replace(place, std::string(each.good).size(), each.bad);
    EXPECT_EQ(reasonOf([&] { parse(bad); }), each.error) << bad;
  }
}

const char* const kGraph =
    "graph @f(%x: f32[4,8], %y: f32[8,3], %n: number f32, %i: number s64) {\n"
    "  %0 = mul %x, %n : f32[4,8]\n"
    "  %1 = matmul %0, %y {transposeLhs=0, transposeRhs=0} : f32[4,3]\n"
    "  %2 = slice %1, %i, %i {rank=2, sizesThenStrides=[2,3,1,1]} : f32[2,3]\n"
    "  %3 = sum %2 {keepDims=0, axes=[0]} : f32[3]\n"
    "  return %3, %0\n"
    "}\n";

TEST(MalformedGraph, IsRejected) {
  const Case cases[] = {
      {"mul %x", "mul %z", "2:12: %z is not defined"},
      {"mul %x", "mul %1", "2:12: %1 is not defined"},
      {"mul %x", "mul %0", "2:12: %0 is not defined"},
      {"return %3", "return %4", "6:10: %4 is not defined"},
      {"%1 = matmul", "%0 = matmul", "3:3: %0 is defined twice"},
      {"%1 = matmul", "%x = matmul", "3:3: %x is defined twice"},
      {"%i: number s64", "%x: number s64", "1:54: %x is defined twice"},
      {"%1 = matmul", "1 = matmul", "3:3: expected a value or \"return\", not \"1\""},
      {"mul %x, %n", "mul %x, %i", "2:8: mul: f32[4,8] x s64[]: dtypes f32 and s64 differ"},
      {"mul %x, %n", "mul %x", "2:8: mul has 1 operands"},
      {"mul %x, %n", "mul %x, %n, %n", "2:8: mul has 3 operands"},
      {"mul %x, %n", "mull %x, %n", "2:8: \"mull\" is no op"},
      {"mul %x, %n", "rand %i, %i, %i, %i {dtype=f32, shape=[4,8]}",
       "2:8: rand: s64[] x s64[] x s64[] x s64[]: f32 numbers take 2 offsets"},
      {"mul %x, %n", "rand %i, %i, %i {dtype=u32, shape=[4,8]}",
       "2:8: rand: s64[] x s64[] x s64[]: u32 numbers take 1 offset"},
      {"mul %x, %n", "rand %i, %i {dtype=f32, shape=[4,8]}",
       "2:8: rand: s64[] x s64[]: the seed and offsets are scalars of u64"},
      {"%n : f32[4,8]", "%n : f32[8,4]", "2:8: the type is f32[4,8], not f32[8,4]"},
      {"%n : f32[4,8]", "%n : f64[4,8]", "2:8: the type is f32[4,8], not f64[4,8]"},
      {"%n : f32[4,8]", "%n : f32[4,8", "3:3: expected \"]\", not \"%1\""},
      {"%n : f32[4,8]", "%n : f32", "3:3: expected \"[\", not \"%1\""},
      {"%n : f32[4,8]", "%n : float[4,8]", "2:21: expected a dtype, not \"float\""},
      {"%n : f32[4,8]", "%n f32[4,8]", "2:19: expected \":\", not \"f32\""},
      {"%y: f32[8,3]", "%y: f32[-8,3]", "1:31: a dimension of -8"},
      {"%y: f32[8,3]", "%y: f32[99999999999,99999999999]",
       "1:31: Shape: (99999999999, 99999999999) has too many elements"},
      {"%y: f32[8,3]", "%y: f32[99999999999999999999]",
       "1:32: expected an integer, not \"99999999999999999999\""},
      {"%y: f32[8,3]", "%y: f32[7,3]",
       "3:8: matmul: f32[4,8] x f32[7,3]: inner dimensions 8 and 7 differ"},
      {"transposeLhs=0", "transposed=0", "3:23: matmul has no attribute \"transposed\""},
      {"transposeRhs=0", "transposeLhs=0", "3:39: \"transposeLhs\" is given twice"},
      {"transposeLhs=0, ", "transposeLhs=0 ", "3:38: expected \"}\", not \"transposeRhs\""},
      {"transposeLhs=0", "transposeLhs=[0]", "3:36: expected an integer, not \"[\""},
      {"rank=2, ", "", "4:52: slice needs the attribute \"rank\""},
      {" {rank=2, sizesThenStrides=[2,3,1,1]}", "", "4:25: slice needs the attribute \"rank\""},
      {"=[2,3,1,1]", "=[9,3,1,1]",
       "4:8: slice: f32[4,3] x s64[] x s64[]: a box of (9, 3) does not fit"},
      {"%1, %i, %i {rank=2, sizesThenStrides=[2,3,1,1]}",
       "%1 {rank=2, sizesThenStrides=[2,3,-1,1,0,0]}",
       "4:8: slice: f32[4,3]: a box at (0, 0) does not fit"},
      {"%1, %i, %i {rank=2, sizesThenStrides=[2,3,1,1]}",
       "%1 {rank=2, sizesThenStrides=[2,3,1,1,3,0]}",
       "4:8: slice: f32[4,3]: a box at (3, 0) does not fit"},
      {"=[2,3,1,1]", "=[2,3,1,1,0,0]",
       "4:8: slice: f32[4,3] x s64[] x s64[]: needs one start, size and stride a dimension"},
      {"%1, %i, %i {", "%1 {",
       "4:8: slice: f32[4,3]: needs one start, size and stride a dimension"},
      {"transposeLhs=0", "transposeLhs=2", "3:23: \"transposeLhs\" is 0 or 1"},
      {"keepDims=0", "keepDims=-1", "5:16: \"keepDims\" is 0 or 1"},
      {"axes=[0]", "axes=[2]", "5:8: sum: f32[2,3]: axis 2 is out of range"},
      {"return %3", "return %n", "6:10: a number is no result"},
      {"  return %3, %0\n", "", "6:1: expected a value or \"return\", not \"}\""},
      {"%0\n}\n", "%0\n", "7:1: expected \",\" at the end"},
      {"%0\n}\n", "%0\n}}\n", "7:2: expected the end, not \"}\""},
  };
  expectRejected(kGraph, cases, [](const std::string& text) { verify(parseGraph(text)); });
}

TEST(MalformedGraph, PoolsInAModeThatThereIs) {
  const std::string text =
      "graph @f(%x: f32[4,4,2,2]) {\n"
      "  %0 = pool2d %x {kernelX=2, kernelY=2, strideX=1, strideY=1, padX=0, padY=0, mode=2} : "
      "f32[3,3,2,2]\n"
      "  return %0\n"
      "}\n";
  const Case cases[] = {
      {"mode=2", "mode=3", "2:8: pool2d: f32[4,4,2,2]: there is no mode 3 of pooling"},
      {"mode=2", "mode=-1", "2:8: pool2d: f32[4,4,2,2]: there is no mode -1 of pooling"},
  };
  expectRejected(text, cases, [](const std::string& text) { verify(parseGraph(text)); });
}

const char* const kKernel =
    "kernel @k rank=2 reduced=[0] {\n"
    "  operand input f32 [1,*]\n"
    "  operand index s64 [0,1]\n"
    "  operand input f16 [0,0]\n"
    "  operand output f32 [0,1]\n"
    "  operand output f32 [1,*]\n"
    "  scalar f32\n"
    "  scalar u64\n"
    "  %0 = load 0 : f32\n"
    "  %1 = scalar 0 : f32\n"
    "  %2 = mul %0, %1 : f32\n"
    "  %3 = total 0 : f32\n"
    "  %4 = load 1 : s64\n"
    "  %5 = gather 2 %4, %4, %4 : f16\n"
    "  %6 = astype %5 : f32\n"
    "  %7 = add %3, %6 : f32\n"
    "  %8 = scalar 1 : u64\n"
    "  %9 = rand %8, %8, %4 : f32\n"
    "  %10 = add %9, %7 : f32\n"
    "  %11 = sub %2, %3 : f32\n"
    "  sweep { reduce sum %2 }\n"
    "  sweep { store 4 %11 }\n"
    "  stage { store 3 %10 }\n"
    "}\n";

TEST(MalformedKernel, IsRejected) {
  const Case cases[] = {
      {"rank=2", "rank=9", "rank 9 is not 1 to 8"},
      {"rank=2", "rank=3", "operand 0 has 2 strides, not one an axis"},
      {"rank=2", "rank=-1", "1:16: -1 is no index"},
      {"rank=2", "rank=4294967298", "1:16: 4294967298 is no index"},
      {"reduced=[0]", "reduced=[2]", "1:18: axis 2 is out of range or given twice"},
      {"reduced=[0]", "reduced=[0,0]", "1:18: axis 0 is out of range or given twice"},
      {"reduced=[0]", "reduced=[]", "a sweep needs a reduced axis"},
      {"input f32 [1,*]", "input f32 [1]", "operand 0 has 1 strides, not one an axis"},
      {"input f32 [1,*]", "input f32 [1,2]", "2:24: expected \"*\", not \"2\""},
      {"input f32 [1,*]", "inout f32 [1,*]", "2:11: expected \"input\", not \"inout\""},
      {"index s64", "index s32", "operand 1: an index is s64"},
      {"load 0", "load 5", "operand 5 does not exist"},
      {"load 0", "load -1", "9:13: -1 is no index"},
      {"load 0", "load 3", "operand 3 is an output and loaded"},
      {"load 0 : f32", "load 0 : f64", "operand 0 is f32, not f64"},
      {"scalar 0 : f32", "scalar 2 : f32", "scalar 2 does not exist"},
      {"scalar 0 : f32", "scalar 1 : f32", "scalar 1 is u64, not f32"},
      {"%2 = mul", "%3 = mul", "11:3: values are numbered in order: expected %2"},
      {"%2 = mul", "%x = mul", "11:4: expected an integer, not \"x\""},
      {"mul %0, %1", "mul %0, %7", "%7 is not defined before %2, which uses it"},
      {"mul %0, %1", "mul %0, %2", "%2 is not defined before %2, which uses it"},
      {"mul %0, %1", "mul %0", "mul has 1 operands"},
      {"mul %0, %1", "mull %0, %1", "11:8: \"mull\" is no op"},
      {"mul %0, %1", "matmul %0, %1", "matmul is not elementwise"},
      {"%1 : f32", "%1 : f64", "mul gives f32, not f64"},
      {"astype %5", "exp %5", "arithmetic on f16 is explicit"},
      {"mul %0, %1", "mul %0, %1 short", "mul of f32 has no short formula"},
      {"add %3, %6", "add %3, %4", "add mixes dtypes"},
      {"add %3, %6", "lessThan %3, %6", "lessThan gives b8, not f32"},
      {"add %3, %6", "where %3, %6, %6", "where: the condition must be b8"},
      {"total 0 : f32", "total 1 : f32", "total 1 does not exist"},
      {"total 0 : f32", "total 0 : f64", "add mixes dtypes"},
      {"gather 2", "gather 5", "operand 5 does not exist"},
      {"gather 2", "gather 0", "operand 0 is gathered and no input of strides 0"},
      {"%4, %4, %4 : f16", "%4, %4, %4 : f32", "operand 2 is f16, not f32"},
      {"%4, %4, %4 :", "%4, %4 :", "gather takes element, index and bound of s64"},
      {"%4, %4, %4 :", "%4, %4, %3 :", "gather takes element, index and bound of s64"},
      {"rand %8, %8, %4", "rand %8, %4, %4",
       "rand takes a seed and an offset of u64 and an index of s64, or two numbers of its own "
       "float "
       "type"},
      {"rand %8, %8, %4", "rand %8, %8",
       "rand takes a seed and an offset of u64 and an index of s64, or two numbers of its own "
       "float "
       "type"},
      {"%8, %8, %4 : f32", "%8, %8, %4 : u8", "rand draws no u8"},
      {"mul %0, %1", "bitwiseAnd %0, %1", "bitwiseAnd is not for f32"},
      {"astype %5 : f32", "floor %4 : s64", "floor is not for s64"},
      {"astype %5 : f32", "isnan %4 : b8", "isnan is not for s64"},
      {"astype %5 : f32", "power %4, %4 : s64", "power is not for s64"},
      {"reduce sum", "reduce add", "add is no reduction"},
      {"reduce sum", "reduce summ", "21:18: \"summ\" is no op"},
      {"reduce sum %2", "reduce sum %11", "stage 0 uses %11 before its total"},
      {"reduce sum %2", "reduce sum %12", "%12 is not defined and a stage uses it"},
      {"reduce sum %2", "reduce sum %5", "arithmetic on f16 is explicit"},
      {"sweep { reduce sum %2 }", "stage { reduce sum %2 }", "only sweeps reduce"},
      {"store 4 %11", "store 4 %12", "%12 is not defined and a stage uses it"},
      {"store 4 %11", "store 4 %4", "operand 4 is f32, not s64"},
      {"store 4 %11", "store 5 %11", "operand 5 does not exist"},
      {"store 4 %11", "store 0 %11", "operand 0 is no output and stored"},
      {"store 4 %11", "store 3 %11", "operand 3 is stored twice"},
      {"sweep { store 4 %11 }", "stage { store 4 %10 }",
       "operand 4 moves along a reduced axis and no sweep stores it"},
      {"store 3 %10", "store 3 %2",
       "stage 2 is no sweep and uses %2, which varies along a reduced axis"},
      {"  stage { store 3 %10 }\n", "", "operand 3 is an output that no stage stores"},
      {"  stage {", "  phase {", "23:3: expected a value, not \"phase\""},
      {"%10 }\n}", "%10 }\n} }", "24:3: expected the end, not \"}\""},
  };
  expectRejected(kKernel, cases, [](const std::string& text) { parseKernel(text); });
}

TEST(MalformedKernel, HasAnOutput) {
  const std::string text = "kernel @k rank=3 reduced=[] {\n}\n";
  EXPECT_EQ(reasonOf([&] { parseKernel(text); }), "it has no output");
}

const char* const kSchedule =
    "schedule @s arena=192 bound=192 {\n"
    "  parameter f32[4,8]\n"
    "  parameter number s64\n"
    "  parameter number f32\n"
    "  output f32[4]\n"
    "  output f32[2,2] shares o0\n"
    "  temporary bytes=128 first=0 last=1 offset=0\n"
    "  temporary bytes=64 first=1 last=2 offset=128\n"
    "kernel @k0 rank=1 reduced=[] {\n"
    "  operand input f32 [1]\n"
    "  operand index s64 [0]\n"
    "  operand output f32 [*]\n"
    "  scalar f32\n"
    "  %0 = load 0 : f32\n"
    "  %1 = scalar 0 : f32\n"
    "  %2 = mul %0, %1 : f32\n"
    "  stage { store 2 %2 }\n"
    "}\n"
    "  launch 0 extents=[32] operands(p0+0[1], 5[0], t0+0[1]) numbers=[2]\n"
    "  library matmul {transposeLhs=0, transposeRhs=1} (p0: f32[4,8], t0: f32[4,8]) -> t1: "
    "f32[4,4]\n"
    "  launch 0 extents=[4] operands(t1+0+1*p1[1], 5+1*p1[0], o0+3[-1]) numbers=[2]\n"
    "}\n";

TEST(MalformedSchedule, IsRejected) {
  const Case cases[] = {
      // Buffers.
      {"(p0+0[1]", "(p3+0[1]", "step 0 uses parameter 3, which does not exist"},
      {"(p0+0[1]", "(p1+0[1]", "step 0 uses parameter 1, a number, as a buffer"},
      {"(p0+0[1]", "(o0+0[1]",
       "operand 0 of step 0 touches elements 0 to 31 of output 0, which has 4"},
      {"(p0+0[1]", "(t0+0[1]", "step 0 reads what no step before it has written: temporary 0"},
      {"(p0+0[1]", "(t9+0[1]", "step 0 uses temporary 9, which does not exist"},
      {"(p0+0[1]", "(t1+0[1]", "temporary 1 is not alive at step 0"},
      {"(p0+0[1]", "(x0+0[1]", "19:34: expected a buffer (p, o or t and a number), not \"x0\""},
      {"(p0+0[1]", "(p+0[1]", "19:34: expected a buffer (p, o or t and a number), not \"p\""},
      {"(p0+0[1]", "(0[1]", "operand 0 of step 0 has no buffer"},
      {"5[0], t0", "p0+5[0], t0", "operand 1 of step 0 is an index and has a buffer"},
      {"o0+3[-1]", "p0+3[-1]", "step 2 writes parameter 0"},
      {"o0+3[-1]", "o1+3[-1]", "step 2 uses output 1, which only shares another buffer"},
      {"o0+3[-1]", "o0+2[-1]",
       "operand 2 of step 2 touches elements -1 to 2 of output 0, which has 4"},
      {"extents=[32]", "extents=[33]",
       "operand 0 of step 0 touches elements 0 to 32 of parameter 0, which has 32"},
      {"t0+0[1]) numbers", "t0+0[2]) numbers",
       "operand 2 of step 0 touches elements 0 to 62 of temporary 0, which has 32"},
      {"parameter f32[4,8]", "parameter f16[4,8]", "step 0 uses parameter 0, of f16, as f32"},
      {"output f32[4]", "output s32[4]", "step 2 uses output 0, of s32, as f32"},
      // What does not fit into 64 bits is behind every buffer.
      {"o0+3[-1]", "o0+3[6148914691236517206]",
       "operand 2 of step 2 touches elements -9223372036854775808 to 9223372036854775806 of "
       "output 0, which has 4"},
      {"o0+3[-1]", "o0+9223372036854775807[1]",
       "operand 2 of step 2 touches elements -9223372036854775808 to 9223372036854775806 of "
       "output 0, which has 4"},
      // Launches.
      {"launch 0 extents=[32]", "launch 1 extents=[32]", "step 0 launches kernel 1 of 1"},
      {"launch 0 extents=[32]", "launch 0 extents=[32,1]",
       "step 0 has 2 extents for a kernel of rank 1"},
      {"launch 0 extents=[32]", "launch 0 extents=[-32]", "step 0 has an extent of -32"},
      {"(p0+0[1], 5[0],", "(p0+0[1],", "step 0 has 2 operands for a kernel of 3"},
      {"(p0+0[1]", "(p0+0[2]", "operand 0 of step 0 breaks its stride class"},
      {"(p0+0[1]", "(p0+0[1,1]", "operand 0 of step 0 has 2 strides, not 1"},
      {"t0+0[1]) numbers=[2]", "t0+0[1]) numbers=[]", "step 0 has 0 numbers for a kernel of 1"},
      {"t0+0[1]) numbers=[2]", "t0+0[1]) numbers=[0]", "step 0: parameter 0 is no number"},
      {"t0+0[1]) numbers=[2]", "t0+0[1]) numbers=[7]", "step 0: parameter 7 is no number"},
      {"t0+0[1]) numbers=[2]", "t0+0[1]) numbers=[-1]", "19:58: -1 is no parameter"},
      {"t0+0[1]) numbers=[2]", "t0+0[1]) numbers=[1]", "step 0 uses number 1, of s64, as f32"},
      {"t1+0+1*p1", "t1+0+1*p2", "step 2 uses number 2, of f32, as s64"},
      {"t1+0+1*p1", "t1+0+1*p0", "step 2: parameter 0 is no number"},
      {"t1+0+1*p1", "t1+0+1*t1", "21:40: expected a number (p and its index), not \"t1\""},
      // Calls.
      {"library matmul", "library matmull", "20:11: \"matmull\" is no op"},
      {"library matmul", "library add", "20:15: expected \"(\", not \"{\""},
      {"transposeRhs=1} (", "transposeRhs=0} (",
       "step 1: matmul: f32[4,8] x f32[4,8]: inner dimensions 8 and 4 differ"},
      {"(p0: f32[4,8], ", "(", "step 1: matmul has 1 operands"},
      {"(p0: f32[4,8]", "(p0: f32[8,8]",
       "step 1 uses parameter 0, which has 32 elements, as f32[8,8]"},
      {"(p0: f32[4,8]", "(p0: f64[4,8]", "step 1 uses parameter 0, of f32, as f64"},
      {"(p0: f32[4,8]", "(p0+1: f32[4,8]",
       "step 1 uses parameter 0, which has 32 elements, as f32[4,8] from element 1 on"},
      {"(p0: f32[4,8]", "(p0+-1: f32[4,8]",
       "step 1 uses parameter 0, which has 32 elements, as f32[4,8] from element -1 on"},
      {"(p0: f32[4,8]", "(p0+0+1*p1: f32[8,8]",
       "step 1 uses parameter 0, which has 32 elements, as f32[8,8]"},
      {"(p0: f32[4,8]", "(p0+0+1*p2: f32[4,8]", "step 1 uses number 2, of f32, as s64"},
      {"(p0: f32[4,8]", "(p0+0+1*p0: f32[4,8]", "step 1: parameter 0 is no number"},
      {"(p0: f32[4,8]", "(p2+1: f32[]", "step 1 uses parameter 2, a number, as a buffer"},
      {"(p0: f32[4,8]", "(p2: f32[4,8]", "step 1 uses parameter 2, a number, as f32[4,8]"},
      {"(p0: f32[4,8]", "(p0+: f32[4,8]", "20:55: expected an integer, not \":\""},
      {"-> t1", "-> t1+1",
       "step 1 uses temporary 1, which has 16 elements, as f32[4,4] from element 1 on"},
      {"f32[4,4]", "f32[4,3]", "step 1: the result is f32[4,4], not f32[4,3]"},
      {"-> t1", "-> p0", "step 1 writes parameter 0"},
      {"-> t1", "=> t1", "20:80: expected \"-\", not \"=\""},
      // Scratch memory.
      {"t0+0[1]) numbers=[2]", "t0+0[1]) numbers=[2] scratch t2",
       "step 0 uses temporary 2, which does not exist"},
      {"t0+0[1]) numbers=[2]", "t0+0[1]) numbers=[2] scratch t1",
       "temporary 1 is not alive at step 0"},
      {"t0+0[1]) numbers=[2]", "t0+0[1]) numbers=[2] scratch p0",
       "19:78: expected a temporary (t and its index), not \"p0\""},
      {"t0+0[1]) numbers=[2]", "t0+0[1]) numbers=[2] scratch",
       "20:3: expected a temporary (t and its index), not \"library\""},
      {"t0+0[1]) numbers=[2]", "t0+0[1]) numbers=[2] epilogue scratch t0",
       "19:79: expected \"library\", not \"scratch\""},
      {"f32[4,4]", "f32[4,4] scratch t0",
       "step 1 works in temporary 0, which is empty or has a value"},
      {"f32[4,4]", "f32[4,4] scratch t1",
       "step 2 reads what no step before it has written: "
       "temporary 1"},
      {"o0+3[-1]) numbers=[2]", "o0+3[-1]) numbers=[2] scratch t1",
       "step 2 works in temporary 1, which is empty or has a value"},
      // Outputs, lifetimes and places.
      {"shares o0", "shares o1", "step 3 uses output 1, which only shares another buffer"},
      {"shares o0", "shares t1", "output 1 shares temporary 1"},
      {"shares o0", "shares p1", "step 3 uses parameter 1, a number, as a buffer"},
      {"shares o0", "shares p0",
       "output 1 is f32[2,2] and shares parameter 0, which has 32 elements of it"},
      {"output f32[2,2] shares o0", "output f32[2,2]", "no step writes output 1"},
      {"output f32[4]", "output f32[4] over p0",
       "output 0 is f32[4] over parameter 0, which has 32 elements of it"},
      {"shares o0", "over p1", "step 3 uses parameter 1, a number, as a buffer"},
      {"output f32[2,2] shares o0", "output s32[4,8] over p0",
       "step 3 uses parameter 0, of f32, as s32"},
      {"shares o0", "over o0", "6:24: expected a parameter (p and its index), not \"o0\""},
      {"first=0 last=1", "first=0 last=0", "temporary 0 is not alive at step 1"},
      {"first=1 last=2", "first=2 last=2", "temporary 1 is not alive at step 1"},
      {"first=1 last=2", "first=2 last=1", "8:22: first and last are no steps in order"},
      {"first=1 last=2", "first=-1 last=2", "8:22: first and last are no steps in order"},
      {"first=1 last=2", "first=1 last=2147483647", "8:22: first and last are no steps in order"},
      {"offset=128", "offset=64", "temporaries 0 and 1 overlap"},
      {"offset=128", "offset=129", "temporary 1 ends behind the arena's 192 bytes"},
      {"offset=128", "offset=-1", "8:44: offset is negative"},
      {"offset=128", "offset=0 host",
       "step 1 uses temporary 1, which is on the host, and does not move it"},
      {"bytes=64", "bytes=32", "step 1 uses temporary 1, which has 8 elements, as f32[4,4]"},
      {"bytes=64", "bytes=9223372036854775807", "temporary 1 ends behind the arena's 192 bytes"},
      {"arena=192", "arena=-1", "1:19: arena is negative"},
      {"arena=192", "arena=0", "temporary 0 ends behind the arena's 0 bytes"},
      // An epilogue takes the result of the call before it, once and in order.
      {"t0+0[1]) numbers=[2]", "t0+0[1]) numbers=[2] epilogue",
       "step 0 is no epilogue of the step before it"},
      {"o0+3[-1]) numbers=[2]", "o0+3[-1]) numbers=[2] epilogue",
       "step 2 is no epilogue of the step before it"},
      // A kernel inside.
      {"mul %0, %1", "mul %0, %3", "%3 is not defined before %2, which uses it"},
      {"store 2 %2", "store 1 %2", "operand 1 is no output and stored"},
  };
  expectRejected(kSchedule, cases, [](const std::string& text) { verify(parseSchedule(text)); });
}

TEST(MalformedSchedule, HasNoMoreElementsThanCanBeCounted) {
  const std::string text =
      "schedule @s arena=0 bound=0 {\n"
      "  output f32[1]\n"
      "kernel @k0 rank=2 reduced=[] {\n"
      "  operand output f32 [0,0]\n"
      "  scalar f32\n"
      "  %0 = scalar 0 : f32\n"
      "  stage { store 0 %0 }\n"
      "}\n"
      "  parameter number f32\n"
      "  launch 0 extents=[1,1] operands(o0+0[0,0]) numbers=[0]\n"
      "}\n";
  const Case cases[] = {
      {"extents=[1,1]", "extents=[4294967296,4294967296]", "step 0 has too many elements"},
  };
  expectRejected(text, cases, [](const std::string& text) { verify(parseSchedule(text)); });
}

TEST(MalformedGraph, DrawsWhatThereIs) {
  const std::string text =
      "graph @f(%s: number u64, %o: number u64) {\n"
      "  %0 = rand %s, %o {dtype=u32, shape=[8]} : u32[8]\n"
      "  return %0\n"
      "}\n";
  const auto drawn = [&](const std::string& type) {
    std::string changed = text;
    for (size_t at; (at = changed.find("u32")) != std::string::npos;) changed.replace(at, 3, type);
    return reasonOf([&] { parseGraph(changed); });
  };
  EXPECT_EQ(reasonOf([&] { parseGraph(text); }), "");
  for (const char* type : {"f32", "f64"}) EXPECT_EQ(drawn(type), "");
  for (const char* type : {"b8", "u8", "s32", "s64", "u64", "f16", "bf16"}) {
    EXPECT_NE(drawn(type).find(std::string("draws f32, f64 or u32, not ") + type),
              std::string::npos)
        << drawn(type);
  }
}

}  // namespace
}  // namespace fl::ir
