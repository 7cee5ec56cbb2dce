#include <cmath>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/tensor/Detail.h"

namespace fl {
namespace {

// Computed in T, as Flashlight does: index * step + start. Integers are counted where they do not
// overflow.
template <typename T>
Tensor arangeOf(T start, T end, T step, dtype type) {
  using Wide = std::conditional_t<std::is_integral_v<T>, __int128, T>;
  FL_USER_CHECK(step != T(0), calledAs("arange"), ": the step is 0");
  const Wide count = (Wide(end) - Wide(start)) / Wide(step);
  FL_USER_CHECK(count > -1 && count < 0x1p63, calledAs("arange"), ": ", start, " to ", end, " by ",
                step, count <= -1 ? " is empty" : " has no number of elements");
  return arange(Shape({static_cast<Dim>(count)}), 0, type) * step + start;
}

}  // namespace

#define FL_DEFINE(T)                                                             \
  template <>                                                                    \
  Tensor fromScalar(const T& value, const dtype type) {                          \
    FL_API_ENTRY();                                                              \
    return detail::numberTensor(detail::stored(Number::of(value), type));        \
  }                                                                              \
  template <>                                                                    \
  Tensor full(const Shape& dims, const T& value, const dtype type) {             \
    FL_API_ENTRY_OF();                                                           \
    return detail::filled(dims, detail::stored(Number::of(value), type));        \
  }                                                                              \
  template <>                                                                    \
  Tensor arange(const T& start, const T& end, const T& step, const dtype type) { \
    FL_API_ENTRY();                                                              \
    return arangeOf(start, end, step, type);                                     \
  }
FL_FOR_EACH_SCALAR_TYPE(FL_DEFINE)
#undef FL_DEFINE

Tensor TensorBackend::arange(const Shape& shape, const Dim seqDim, const dtype type) {
  FL_USER_CHECK(seqDim >= 0 && seqDim < shape.ndim(), calledAs("arange"), ": dimension ", seqDim,
                " of ", shape, ", which has ", shape.ndim());
  const Tensor index(
      detail::applyOp(ir::Op::Iota, std::vector<TensorValue>{},
                      ir::Attrs({static_cast<Dim>(computeType(type)), seqDim}, shape.get())));
  return detail::castTo(index, type);
}

Tensor TensorBackend::iota(const Shape& dims, const Shape& tileDims, const dtype type) {
  return tile(reshape(arange(Shape({dims.elements()}), 0, type), dims), tileDims);
}

Tensor TensorBackend::identity(const Dim dim, const dtype type) {
  FL_USER_CHECK(dim >= 0, calledAs("identity"), ": a dimension of ", dim);
  const Shape square = {dim, dim};
  bytesOf(type, square);  // throws if they cannot be counted
  return detail::castTo(arange(square, 0, dtype::s32) == arange(square, 1, dtype::s32), type);
}

}  // namespace fl
