#include "fl/autograd/Internal.h"

#include <algorithm>
#include <numeric>

#include "fl/base/CallSite.h"

namespace fl::detail {

bool areVariableTypesEqual(const Variable& a, const Variable& b) { return a.type() == b.type(); }

Shape expandedShapeFromReducedDims(const Tensor& input, const std::vector<int>& axes,
                                   bool keepDims) {
  FL_API_ENTRY();
  if (keepDims) return input.shape();
  std::vector<int> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  std::vector<Dim> dims = input.shape().get();
  int last = -1;
  for (int axis : sorted) {
    FL_USER_CHECK(axis > last && axis <= static_cast<int>(dims.size()),
                  "expandedShapeFromReducedDims: no reduction over dimension ", axis, " leaves ",
                  typeToString(input.type(), input.shape()));
    dims.insert(dims.begin() + axis, 1);
    last = axis;
  }
  return Shape(dims);
}

Tensor sumAs(const Tensor& input, const Shape& shape) {
  FL_API_ENTRY();
  if (input.shape() == shape) return input;
  std::vector<int> axes;
  for (int i = 0; i < input.ndim(); ++i) {
    const Dim wanted = i < shape.ndim() ? shape[i] : 1;
    if (input.dim(i) != wanted) {
      FL_USER_CHECK(wanted == 1, "sumAs: ", typeToString(input.type(), input.shape()),
                    " does not reduce to shape ", shape, ": dimension ", i, " must be 1 or equal");
      axes.push_back(i);
    }
  }
  const bool keepDims = shape.ndim() == input.ndim();
  const Tensor result = axes.empty() ? input : toType(sum(input, axes, keepDims), input.type());
  return result.shape() == shape ? result : reshape(result, shape);
}

Tensor repeatTo(const Tensor& reduced, const Shape& shape, const std::vector<int>& axes) {
  if (reduced.shape() == shape) return reduced;
  Shape counts(std::vector<Dim>(shape.ndim(), 1));
  for (int axis : axes) counts[axis] = shape[axis];
  return tile(reshape(reduced, withOnes(shape, axes)), counts);
}

std::vector<int> normalizedAxes(const char* function, const Shape& shape,
                                const std::vector<int>& axes) {
  std::vector<int> result = axes;
  if (axes.empty() || shape.ndim() == 0) {
    result.resize(shape.ndim());
    std::iota(result.begin(), result.end(), 0);
  }
  for (int axis : result) {
    FL_USER_CHECK(axis >= 0 && axis < shape.ndim(), function, ": no dimension ", axis, " in shape ",
                  shape);
  }
  return result;
}

Shape withOnes(Shape shape, const std::vector<int>& axes) {
  for (int axis : axes) shape[axis] = 1;
  return shape;
}

}  // namespace fl::detail
