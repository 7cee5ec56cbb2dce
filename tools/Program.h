// What `fl run` runs: a graph, a schedule, or a kernel, on a device, with inputs of the host.
// Relies on fl/definitions/GraphRunner.h for graphs and on fl/runtime for the other two.
//
// A graph runs as a tensor program on a backend, op by op or compiled anew, or with FL_EMITTER=mlir
// through MLIR where it would be compiled. A schedule runs as it
// stands; on the CPU its kernels are compiled first, unless FL_JIT=off. A kernel runs as a schedule
// of one launch: each input operand is a parameter in order, each scalar a number behind them, each
// output operand a result; memory is dense, an axis of stride class 1 fastest.
#pragma once

#include <memory>
#include <new>
#include <string>
#include <vector>

#include "fl/base/Error.h"
#include "fl/kernel/Schedule.h"
#include "tools/npy/Npz.h"

namespace fl::tools {

// A program on a device with its inputs in place.
class LoadedProgram {
 public:
  virtual ~LoadedProgram() = default;
  // Until the results are there. Throws std::invalid_argument for an index out of range.
  virtual void run() = 0;
  // Of the last run.
  virtual std::vector<NpyArray> results() const = 0;
};

class Program {
 public:
  virtual ~Program() = default;
  virtual const std::vector<ir::Parameter>& parameters() const = 0;
  // Of all values, those between operators of a kernel too.
  virtual std::vector<dtype> dtypes() const = 0;
  // Bytes that a run moves: of a graph its inputs and results, of a schedule those of its steps.
  virtual size_t bytes() const = 0;
  // "%3 f32[1000,1000], 4000000 bytes": what to look at where memory does not suffice.
  virtual std::string largestValue() const = 0;
  // Makes drawn inputs fit (FitInputs.h).
  virtual void fitDrawn(const std::vector<bool>& drawn, std::vector<NpyArray>* inputs) const = 0;
  // Inputs have the parameters' types. `backend` is for graphs. Throws std::invalid_argument for a
  // device or backend that does not exist, and for starts whose boxes do not fit.
  virtual std::unique_ptr<LoadedProgram> load(const std::string& backend, const std::string& device,
                                              const std::vector<NpyArray>& inputs) const = 0;
};

std::vector<dtype> dtypesOf(const ir::Graph& graph);

// `text` was read from `path`. A kernel's axes have the extents given, or 16 each if none are.
// Throws std::exception with the words for a user.
std::unique_ptr<Program> parseProgram(const std::string& path, const std::string& text,
                                      const std::vector<Dim>& extents);

// work(), which the program that was read from `path` needs memory for. Throws
// std::invalid_argument that names both, and its largest value, if there is too little.
template <typename Work>
auto withMemory(const std::string& path, const Program& program, Work&& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    throwUser(path, ": its values do not fit into memory; the largest is ", program.largestValue());
  }
}

}  // namespace fl::tools
