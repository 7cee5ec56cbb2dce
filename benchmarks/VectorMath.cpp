// The largest error of every unary function over all f32 numbers; writes docs/accuracy.md.
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
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
ABSL_FLAG(std::string, function, "", "only this one; writes no file");
ABSL_FLAG(std::string, output, "docs/accuracy.md", "the file, seen from the workspace's root");
ABSL_FLAG(int, threads, 0, "threads to compute with; 0: FL_NUM_THREADS, or one a processor");

namespace {

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

constexpr const char* kIntroduction = R"(# Accuracy

Made by `bazel run //benchmarks:vector_math`; do not edit.

The largest error of the unary functions over all 2^32 f32 numbers, NaN, infinities and subnormal
numbers among them, against the C library in double. An error is |result - correct| in units of the
last place (ULP) of the correct result rounded to f32; a NaN, an infinity or the sign of a
zero that differs would be an infinite error. Compiled kernels and the tile interpreter gave
the same bits for each number.

Where results are rounded to a 16-bit float, shorter formulas compute them (fl/ir/VectorMath.h). To
the 0.5 ULP of rounding they add less than 0.012 ULP of f16 and 0.0015 of bf16 for every number of
these; power adds less than 0.015 and 0.008. tests/ir/VectorMathTest.cpp asserts these bounds.

)";

void write(const std::string& text) {
  const char* root = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  const std::string path = (root ? std::string(root) + "/" : "") + absl::GetFlag(FLAGS_output);
  std::ofstream stream(path);
  stream << text;
  stream.close();
  if (!stream) {
    throw std::runtime_error(path + ": cannot be written");
  }
}

int runAll() {
  const uint64_t stride = absl::GetFlag(FLAGS_stride);
  const std::string only = absl::GetFlag(FLAGS_function);
  if (stride == 0) {
    throw std::runtime_error("--stride: must be at least 1");
  }
  fl::bench::prepare(absl::GetFlag(FLAGS_threads));
  fl::init();
  std::vector<UnaryFunction> functions = fl::bench::unaryFunctions();
  if (!only.empty()) {
    std::erase_if(functions, [&](const UnaryFunction& each) { return each.name != only; });
  }
  std::vector<Accuracy> found;
  bool good = !functions.empty();
  for (const UnaryFunction& function : functions) {
    found.push_back(measure(function, stride));
    const Accuracy& one = found.back();
    const bool holds = one.worst <= function.bound && one.different == 0;
    good = good && holds;
    absl::PrintF("%-12s %10.3f ULP at %a (%.9g, correct %.9g), %d differ from tiles%s\n",
                 function.name, one.worst, one.x, one.got, one.want, one.different,
                 holds ? "" : ": BREAKS ITS BOUND");
    std::cout.flush();
  }
  if (only.empty() && stride == 1 && good) {
    write(kIntroduction + accuracyTable(functions, found));
  }
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return fl::bench::runProgram("vector_math",
                               "Measures the error of every unary function over all f32 numbers "
                               "and writes docs/accuracy.md. Takes about half an hour with 2 "
                               "threads. Exit code 1, and no file, if a bound is broken.",
                               __FILE__, argc, argv, runAll);
}
