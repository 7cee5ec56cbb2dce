// The largest error of every unary function over all numbers of f32, f16 and bf16 and many of f64;
// writes docs/accuracy.md.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_format.h"
#include "benchmarks/Accuracy.h"
#include "benchmarks/Program.h"
#include "benchmarks/Report.h"
#include "fl/fl.h"

ABSL_FLAG(uint32_t, stride, 1,
          "takes every so many-th number, for a quick pass that writes no file; best odd");
ABSL_FLAG(bool, f32, true, "also f32, which takes the time; --nof32 keeps the file's table of it");
ABSL_FLAG(std::string, function, "", "only this one; writes no file");
ABSL_FLAG(std::string, output, "docs/accuracy.md", "the file, seen from the workspace's root");
ABSL_FLAG(int, threads, 0, "threads to compute with; 0: FL_NUM_THREADS, or one a processor");

namespace {

using fl::dtype;
using fl::bench::Accuracy;
using fl::bench::UnaryFunction;

constexpr uint64_t kNumbers = uint64_t{1} << 32;
constexpr size_t kBlock = 1 << 22;

Accuracy measure(const UnaryFunction& function, uint64_t stride) {
  Accuracy found;
  for (uint64_t bits = 0; bits < kNumbers;) {
    std::cerr << absl::StreamFormat("\r%-12s %3d %%", function.name, bits * 100 / kNumbers);
    std::vector<float> x;
    for (; x.size() < kBlock && bits < kNumbers; bits += stride) {
      x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    }
    found.add(fl::bench::measureAccuracy(function, x));
  }
  std::cerr << "\r";
  return found;
}

// Over all numbers of a 16-bit float, or as many of f64 as the stride leaves of ten million.
Accuracy measure(const UnaryFunction& function, dtype type, uint64_t stride) {
  Accuracy found;
  if (type != dtype::f64) return measureAccuracy(function, type, fl::bench::allOfSixteenBits(type));
  std::vector<double> all = fl::bench::sampleOfDoubles(10'000'000 / stride);
  for (size_t i = 0; i < all.size(); i += kBlock) {
    const size_t end = std::min(i + kBlock, all.size());
    found.add(measureAccuracy(function, type, {all.begin() + i, all.begin() + end}));
  }
  return found;
}

constexpr const char* kIntroduction = R"(# Accuracy

Made by `bazel run //benchmarks:vector_math`; do not edit.

An error is |result - correct| in units of the last place (ULP) of the correct result rounded to the
dtype; a NaN, an infinity or the sign of a zero that differs would be an infinite error. Compiled
kernels and the tile interpreter gave the same bits for each number.

## f32

Over all 2^32 numbers, NaN, infinities and subnormal numbers among them, against the C library in
double.

)";

constexpr const char* kOfDoubles = R"(
## f64

Over ten million numbers: of any bits, and between -750, -7, -1 and 1, 7, 750. Against the C library
in long double, whose 64 bits are 11 more; what it rounds itself is below 0.001 ULP here. The bounds
are those of f32 but for exp: f64's does not keep what its reduction rounds, which would take a
register more.

)";

constexpr const char* kOfSixteenBits = R"(
## f16 and bf16

Over all 65,536 numbers, against the C library in long double. A result that is rounded correctly is
off by 0.5 ULP at most. Shorter formulas than those of f32 compute these (fl/ir/VectorMath.h): to
the half of rounding they add less than 0.012 ULP of f16 and 0.0015 of bf16; power adds less than
0.015 and 0.008. tests/ir/VectorMathTest.cpp asserts these bounds.

)";

std::string path() {
  const char* root = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  return (root ? std::string(root) + "/" : "") + absl::GetFlag(FLAGS_output);
}

// What stands before the table of f64.
std::string writtenBefore() {
  std::ifstream stream(path());
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const size_t end = text.find(kOfDoubles);
  if (end == std::string::npos) throw std::runtime_error(path() + ": has no table of f32 to keep");
  return text.substr(0, end);
}

void write(const std::string& text) {
  std::ofstream stream(path());
  stream << text;
  stream.close();
  if (!stream) throw std::runtime_error(path() + ": cannot be written");
}

// Prints what was found for a function; whether it keeps the bound.
bool report(const std::string& name, dtype type, const Accuracy& one, double bound) {
  const bool holds = one.worst <= bound && one.different == 0;
  absl::PrintF("%-12s %-4s %10.4f ULP at %a (%.17g, correct %.17g), %d differ from tiles%s\n", name,
               fl::dtypeToString(type), one.worst, one.x, one.got, one.want, one.different,
               holds ? "" : ": BREAKS ITS BOUND");
  std::cout.flush();
  return holds;
}

int runAll() {
  const uint64_t stride = absl::GetFlag(FLAGS_stride);
  const std::string only = absl::GetFlag(FLAGS_function);
  if (stride == 0) throw std::runtime_error("--stride: must be at least 1");
  fl::bench::prepare(absl::GetFlag(FLAGS_threads));
  fl::init();
  std::vector<UnaryFunction> functions = fl::bench::unaryFunctions();
  if (!only.empty()) {
    std::erase_if(functions, [&](const UnaryFunction& each) { return each.name != only; });
  }
  std::map<dtype, std::vector<Accuracy>> found;
  bool good = !functions.empty();
  for (const UnaryFunction& function : functions) {
    for (const dtype type : {dtype::f32, dtype::f64, dtype::f16, dtype::bf16}) {
      if (type == dtype::f32 && !absl::GetFlag(FLAGS_f32)) continue;
      const double bound = getTypeSize(type) == 2 ? fl::bench::kSixteenBitBound
                           : type == dtype::f64   ? function.bound64
                                                  : function.bound;
      found[type].push_back(type == dtype::f32 ? measure(function, stride)
                                               : measure(function, type, stride));
      good = report(function.name, type, found[type].back(), bound) && good;
    }
  }
  if (only.empty() && stride == 1 && good) {
    const std::string before =
        absl::GetFlag(FLAGS_f32)
            ? kIntroduction + accuracyTable(functions, found[dtype::f32], dtype::f32)
            : writtenBefore();
    write(before + kOfDoubles + accuracyTable(functions, found[dtype::f64], dtype::f64) +
          kOfSixteenBits + sixteenBitTable(functions, found[dtype::f16], found[dtype::bf16]));
  }
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return fl::bench::runProgram(
      "vector_math",
      "Measures the error of every unary function over all f32 numbers, and "
      "of other floats, "
      "and writes docs/accuracy.md. Takes about half an hour with 2 "
      "threads. Exit code 1, and no file, if a bound is broken.",
      __FILE__, argc, argv, runAll);
}
