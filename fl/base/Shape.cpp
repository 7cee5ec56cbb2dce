#include "fl/base/Shape.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/base/Text.h"

namespace fl {

Dim Shape::elements() const {
  if (std::find(dims_.begin(), dims_.end(), 0) != dims_.end()) return 0;
  Dim product = 1;
  for (Dim dim : dims_) {
    if (__builtin_mul_overflow(product, dim, &product)) {
      const std::string called = calledAs("");
      throwUser(called.empty() ? "Shape: " : called, toString(), " has too many elements");
    }
  }
  return product;
}

void Shape::check(size_t dim, const void* caller) const {
  if (dim >= dims_.size()) {
    const detail::CallSiteScope site(caller, "Shape");
    // A negative number became a large one.
    throwUser("Shape: dimension ", static_cast<Dim>(dim), " of ", toString(), ", which has ",
              dims_.size());
  }
}

Dim Shape::dim(size_t dim) const {
  check(dim, __builtin_return_address(0));
  return dims_[dim];
}

Dim& Shape::operator[](size_t dim) {
  check(dim, __builtin_return_address(0));
  return dims_[dim];
}

const Dim& Shape::operator[](size_t dim) const {
  check(dim, __builtin_return_address(0));
  return dims_[dim];
}

std::string Shape::toString() const { return "(" + absl::StrJoin(dims_, ", ") + ")"; }

std::ostream& operator<<(std::ostream& os, const Shape& shape) { return os << shape.toString(); }

std::string typeToString(dtype type, const Shape& shape) {
  return dtypeToString(type) + listToString(shape.get());
}

Shape squeezed(const Shape& shape) {
  Shape result;
  for (Dim dim : shape.get())
    if (dim != 1) result.get().push_back(dim);
  return result;
}

size_t bytesOf(dtype type, const Shape& shape) {
  Dim bytes;
  if (__builtin_mul_overflow(shape.elements(), getTypeSize(type), &bytes))
    throwUser(calledAs(typeToString(type, shape)), " has more bytes than can be counted");
  return static_cast<size_t>(bytes);
}

std::vector<Dim> contiguousStrides(const Shape& shape) {
  std::vector<Dim> strides;
  strides.reserve(shape.ndim());
  Dim stride = 1;
  for (Dim dim : shape.get()) {
    strides.push_back(stride);
    // Wraps only beside a dimension of 0, where nothing lies at any stride.
    __builtin_mul_overflow(stride, dim, &stride);
  }
  return strides;
}

}  // namespace fl
