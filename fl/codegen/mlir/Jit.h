// Lowers text of MLIR by MLIR's own pass manager and runs it: another way from a graph to machine
// code than fl/codegen/cpu, by other people's passes, to hold it against.
//
// Relies on the libraries of MLIR and LLVM, which only Jit.cpp includes; Emitter.h makes the text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fl/base/Shape.h"

namespace fl::codegen::mlir {

// A pipeline as `mlir-opt --pass-pipeline=` takes it; within others its passes are `fl-lower`.
// Whatever is put in its place must leave functions in the LLVM dialect that take a descriptor for
// each parameter and behind them one for each result, and have C wrappers, as
// buffer-results-to-out-params and llvm-request-c-wrappers make them.
extern const char kPipeline[];

// Contiguous, the first dimension fastest.
struct Buffer {
  void* data;
  Shape shape;
};

class Jit {
 public:
  // Lowers and compiles all functions of a module, by LLVM at a level from 0 to 3. Throws
  // std::invalid_argument with MLIR's words for a text or a pipeline that it does not take. Level 2
  // takes some 40 ms a function, level 0 a few.
  Jit(const std::string& text, const std::string& pipeline, int level);
  ~Jit();

  // Runs the function of this name on its parameters and, behind them, where its results go. May
  // run on several threads at once. Throws std::runtime_error if the pipeline left none that takes
  // them, or what LLVM makes of it calls something that is not there.
  void run(const std::string& function, const std::vector<Buffer>& buffers) const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace fl::codegen::mlir
