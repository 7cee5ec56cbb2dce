// Evaluation, initialisation, comparison and printing.
#include <iostream>
#include <sstream>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/tensor/Detail.h"
#include "fl/tensor/Init.h"

namespace fl {

void init() { defaultTensorBackend(); }

bool allClose(const Tensor& a, const Tensor& b, const double absTolerance) {
  FL_API_ENTRY();
  if (a.type() != b.type() || a.shape() != b.shape()) {
    return false;
  }
  if (a.isEmpty()) {
    return true;
  }
  return amax(absolute(a.astype(dtype::f64) - b.astype(dtype::f64))).scalar<double>() <
         absTolerance;
}

bool isInvalidArray(const Tensor& tensor) {
  FL_API_ENTRY();
  return any(isnan(tensor) || isinf(tensor)).scalar<char>() != 0;
}

std::string tensorBackendTypeToString(const TensorBackendType type) {
  switch (type) {
    case TensorBackendType::Stub:
      return "Stub";
    case TensorBackendType::Tracer:
      return "Tracer";
    case TensorBackendType::ArrayFire:
      return "ArrayFire";
    case TensorBackendType::OneDnn:
      return "OneDnn";
    case TensorBackendType::Jit:
      return "Jit";
    case TensorBackendType::Eager:
      return "Eager";
  }
  return "unknown";
}

std::ostream& operator<<(std::ostream& os, const TensorBackendType type) {
  return os << tensorBackendTypeToString(type);
}

namespace {

// Rows run along the second dimension, one line a row, one block a matrix.
template <typename T>
void printElements(std::ostream& os, const std::vector<T>& values, const Shape& shape) {
  const Dim rows = shape.ndim() > 0 ? shape[0] : 1;
  const Dim columns = shape.ndim() > 1 ? shape[1] : 1;
  const Dim matrix = std::max<Dim>(rows * columns, 1);
  for (Dim base = 0; base < static_cast<Dim>(values.size()); base += matrix) {
    os << (base ? "\n" : "");
    for (Dim row = 0; row < rows; ++row) {
      for (Dim column = 0; column < columns; ++column) {
        os << (column ? " " : "") << values[base + column * rows + row];
      }
      os << "\n";
    }
  }
}

}  // namespace

std::string Tensor::toString() const {
  FL_API_ENTRY();
  std::ostringstream os;
  os << typeToString(type(), shape()) << "\n";
  if (isFloating(type())) {
    printElements(os, astype(dtype::f64).toHostVector<double>(), shape());
  } else if (type() == dtype::u64) {
    printElements(os, toHostVector<unsigned long long>(), shape());
  } else {
    printElements(os, astype(dtype::s64).toHostVector<long long>(), shape());
  }
  return os.str();
}

std::ostream& operator<<(std::ostream& ostr, const Tensor& tensor) {
  FL_API_ENTRY();
  return ostr << tensor.toString();
}

void print(const Tensor& tensor) {
  FL_API_ENTRY();
  std::cout << tensor << std::endl;
}

}  // namespace fl
