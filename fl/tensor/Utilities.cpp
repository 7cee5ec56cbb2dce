// Evaluation, initialisation, comparison and printing.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/tensor/Detail.h"
#include "fl/tensor/Init.h"

namespace fl {

void init() {
  FL_API_ENTRY();
  defaultTensorBackend();
}

namespace {

// |a - b| in f64. Integers are subtracted modulo 2^64, which is exact: f64 takes neighbours beyond
// 2^53 for equal.
Tensor distances(const Tensor& a, const Tensor& b) {
  if (isFloating(a.type())) return absolute(a.astype(dtype::f64) - b.astype(dtype::f64));
  return (maximum(a, b).astype(dtype::u64) - minimum(a, b).astype(dtype::u64)).astype(dtype::f64);
}

}  // namespace

bool allClose(const Tensor& a, const Tensor& b, const double absTolerance) {
  FL_API_ENTRY();
  if (a.type() != b.type() || a.shape() != b.shape()) return false;
  if (a.isEmpty()) return true;
  return amax(distances(a, b)).scalar<double>() < absTolerance;
}

bool isInvalidArray(const Tensor& tensor) {
  FL_API_ENTRY();
  return any(isnan(tensor) || isinf(tensor)).scalar<char>() != 0;
}

std::string tensorBackendTypeToString(const TensorBackendType type) {
  static constexpr const char* kNames[] = {"Stub", "Tracer", "ArrayFire", "OneDnn", "Jit", "Eager"};
  const auto index = static_cast<size_t>(type);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

std::ostream& operator<<(std::ostream& os, const TensorBackendType type) {
  return os << tensorBackendTypeToString(type);
}

bool detail::areBackendsEqual(const Tensor& a, const Tensor& b) {
  return &a.backend() == &b.backend();
}

bool detail::areTensorTypesEqual(const Tensor& a, const Tensor& b) { return a.type() == b.type(); }

void detail::throwDtypesDiffer(const char* function, const std::vector<Tensor>& tensors) {
  throwUser(function, ": ", TensorOperands(function, tensors).toString(), ": dtypes differ");
}

namespace {

template <typename T>
std::vector<std::string> wordsOf(const std::vector<T>& values) {
  std::vector<std::string> words;
  for (const T& value : values)
    words.push_back(value != value ? "nan" : detail::concat(value));  // of either sign
  return words;
}

// The elements as text, integers in full and floats to six digits.
std::vector<std::string> elementWords(const Tensor& tensor) {
  if (isFloating(tensor.type())) return wordsOf(tensor.astype(dtype::f64).toHostVector<double>());
  if (tensor.type() == dtype::u64) return wordsOf(tensor.toHostVector<unsigned long long>());
  return wordsOf(tensor.astype(dtype::s64).toHostVector<long long>());
}

// "(:, :, 1, 0)", the place of a matrix in a tensor of more than two dimensions.
std::string matrixPlace(const Shape& shape, Dim number) {
  std::string place = "(:, :";
  for (int i = 2; i < shape.ndim(); ++i) {
    place += detail::concat(", ", number % shape[i]);
    number /= shape[i];
  }
  return place + ")";
}

}  // namespace

// Rows run along the second dimension, a line each; columns are aligned; a matrix is a block.
std::string Tensor::toString() const {
  FL_API_ENTRY();
  const std::vector<std::string> words = elementWords(*this);
  size_t width = 0;
  for (const std::string& word : words) width = std::max(width, word.size());
  const Dim rows = ndim() > 0 ? dim(0) : 1, columns = ndim() > 1 ? dim(1) : 1;
  std::ostringstream os;
  os << typeToString(type(), shape()) << "\n";
  for (size_t base = 0; base < words.size(); base += rows * columns) {
    if (ndim() > 2) os << matrixPlace(shape(), base / (rows * columns)) << "\n";
    for (Dim row = 0; row < rows; ++row) {
      for (Dim column = 0; column < columns; ++column)
        os << (column ? " " : "") << std::setw(static_cast<int>(width))
           << words[base + column * rows + row];
      os << "\n";
    }
  }
  return os.str();
}

std::ostream& Tensor::operator<<(std::ostream& ostr) const { return ostr << toString(); }

std::ostream& operator<<(std::ostream& ostr, const Tensor& tensor) {
  FL_API_ENTRY();
  return ostr << tensor.toString();
}

void print(const Tensor& tensor) {
  FL_API_ENTRY();
  std::cout << tensor << std::endl;
}

}  // namespace fl
