// A value's extents. The first dimension is contiguous (column-major), as everywhere in the API.
#pragma once

#include <initializer_list>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "fl/base/Types.h"

namespace fl {

// `Shape{}` is a scalar: no dimensions, one element. Dimensions of size 0 are allowed;
// (3, 1) and (3) are different shapes.
class Shape {
 public:
  // Any rank.
  static constexpr size_t kMaxDims = std::numeric_limits<size_t>::max();

  Shape() = default;
  explicit Shape(std::vector<Dim> dims) : dims_(std::move(dims)) {}
  Shape(std::initializer_list<Dim> dims) : dims_(dims) {}

  // The product of the dimensions. Throws std::invalid_argument if it does not fit.
  Dim elements() const;
  int ndim() const { return static_cast<int>(dims_.size()); }
  // Throws std::invalid_argument when `dim` is not below ndim().
  Dim dim(size_t dim) const;
  Dim& operator[](size_t dim);
  const Dim& operator[](size_t dim) const;

  bool operator==(const Shape& other) const { return dims_ == other.dims_; }
  bool operator!=(const Shape& other) const { return dims_ != other.dims_; }
  bool operator==(const std::initializer_list<Dim>& other) const {
    return dims_ == std::vector<Dim>(other);
  }
  bool operator!=(const std::initializer_list<Dim>& other) const { return !(*this == other); }

  const std::vector<Dim>& get() const { return dims_; }
  std::vector<Dim>& get() { return dims_; }
  // "(3, 4)"
  std::string toString() const;

 private:
  // `caller` is the line to blame when no public function of the library has been entered.
  void check(size_t dim, const void* caller) const;
  std::vector<Dim> dims_;
};

std::ostream& operator<<(std::ostream& os, const Shape& shape);

// "f32[3,4]", the form of a type in error messages and in IR text.
std::string typeToString(dtype type, const Shape& shape);

// `shape` without dimensions of size 1.
Shape squeezed(const Shape& shape);

// Bytes of the elements of a value.
size_t bytesOf(dtype type, const Shape& shape);

// Strides in elements of the contiguous column-major layout: {1, d0, d0 * d1, ...}.
std::vector<Dim> contiguousStrides(const Shape& shape);

}  // namespace fl
