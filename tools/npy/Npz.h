// Arrays in NumPy's .npy and .npz files, read and written without NumPy.
// Relies on libzip for .npz; the format is NumPy's "NPY format", versions 1.0 to 3.0:
// numpy.org/doc/stable/reference/generated/numpy.lib.format.html. tests/reference reads its answers
// with it.
//
// NumPy's shape is ours and equal indices name equal elements. Our elements lie in column-major
// order, so those of a file in C order are moved. NumPy's bool is b8; it has no bf16, and we have
// no int8, complex numbers, strings, records or big-endian elements.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fl/base/Shape.h"

namespace fl {

struct NpyArray {
  dtype type = dtype::f32;
  Shape shape;
  std::vector<uint8_t> bytes;  // the elements in column-major order

  bool operator==(const NpyArray&) const = default;
};

// All of these throw std::invalid_argument that names the file and what is wrong with it. They cost
// a copy or two of the bytes.

NpyArray readNpy(const std::string& path);
// The arrays by their names, which are the members' without ".npy".
std::map<std::string, NpyArray> readNpz(const std::string& path);
// The same, where check(name, type, shape) may throw before an array's elements are read: those of
// a small archive may be more than memory holds.
using NpyCheck = std::function<void(const std::string& name, dtype type, const Shape& shape)>;
std::map<std::string, NpyArray> readNpz(const std::string& path, const NpyCheck& check);
// Replaces the file. Throws for bf16, and if bytes are not as many as type and shape need.
void writeNpy(const std::string& path, const NpyArray& array);
// The same for an archive of arrays by their names, uncompressed as numpy.savez writes it; none
// leave no file.
void writeNpz(const std::string& path, const std::map<std::string, NpyArray>& arrays);

}  // namespace fl
