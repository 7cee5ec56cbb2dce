// Inputs and results of `fl run` on the host: drawn from a seed, read from NumPy's files, written
// to them, compared. Relies on tools/npy.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fl/ir/Graph.h"
#include "tools/npy/Npz.h"

namespace fl::tools {

// The array with each element replaced by one of the same dtype.
NpyArray mapped(const NpyArray& array, const std::function<Number(const Number&)>& function);
NpyArray cast(const NpyArray& array, dtype type);
// An array of one element.
Number numberOf(const NpyArray& array);
NpyArray arrayOf(const Number& number);

// Floats are normal, integers 0 to 3, b8 either. Throws std::bad_alloc, before it draws any, if
// they do not fit into memory.
std::vector<NpyArray> drawInputs(const std::vector<ir::Parameter>& parameters, uint32_t seed);

// Replaces inputs by those of `files`, separated by commas, and returns which were not replaced.
// Files of .npy are the parameters in order and as many. A .npz, alone, has them under the names
// p0, p1, ..., or arr_0, arr_1, ... as numpy.savez numbers them; it may leave some out. A parameter
// of bf16, which NumPy has not, is read from f32. Throws std::invalid_argument that names the file
// and what does not fit.
std::vector<bool> readInputs(const std::string& files, const std::vector<ir::Parameter>& parameters,
                             std::vector<NpyArray>* inputs);

// Replaces inputs by the numbers of the comment that a dump begins with, "// numbers: p1=0.5 p4=7",
// if `text` does, and returns which were. Throws std::invalid_argument for what is no number.
std::vector<bool> readNumbers(const std::string& text, const std::vector<ir::Parameter>& parameters,
                              std::vector<NpyArray>* inputs);

// A .npz with the results under the names r0, r1, ...; bf16 as f32. Throws std::invalid_argument.
void writeResults(const std::string& path, const std::vector<NpyArray>& results);

double sumOf(const NpyArray& array);

struct Difference {
  double value;  // the largest, relative to the largest finite element expected
  bool accepted;
};
// Results of floats may differ by `tolerance`, or, without one, by what the coarsest dtype of
// floats in the program, which has `dtypes`, explains; infinities and NaN must be the same
// elements. Other dtypes must be equal.
Difference compare(const NpyArray& actual, const NpyArray& expected,
                   const std::vector<dtype>& dtypes, std::optional<double> tolerance);
// The rule in words.
std::string describeRule(std::optional<double> tolerance);

}  // namespace fl::tools
