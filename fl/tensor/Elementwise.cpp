// Unary and binary functions: each goes to the backend's virtual of the same name.
#include <cmath>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/tensor/Detail.h"

namespace fl {

#define FL_DEFINE(NAME)                         \
  Tensor NAME(const Tensor& tensor) {           \
    FL_API_ENTRY();                             \
    return defaultTensorBackend().NAME(tensor); \
  }
FL_DEFINE(exp)
FL_DEFINE(log)
FL_DEFINE(negative)
FL_DEFINE(logicalNot)
FL_DEFINE(log1p)
FL_DEFINE(sin) FL_DEFINE(cos) FL_DEFINE(sqrt) FL_DEFINE(tanh) FL_DEFINE(floor) FL_DEFINE(ceil)
    FL_DEFINE(rint) FL_DEFINE(absolute) FL_DEFINE(erf) FL_DEFINE(isnan) FL_DEFINE(isinf)
        FL_DEFINE(sign)
#undef FL_DEFINE

            Tensor
            operator-(const Tensor& tensor) {
  FL_API_ENTRY();
  return negative(tensor);
}

Tensor operator!(const Tensor& tensor) {
  FL_API_ENTRY();
  return logicalNot(tensor);
}

Tensor abs(const Tensor& tensor) {
  FL_API_ENTRY();
  return absolute(tensor);
}

Tensor sigmoid(const Tensor& tensor) {
  FL_API_ENTRY();
  // e^-|x| does not overflow, so that results of large negative numbers keep their digits.
  const Tensor power = exp(negative(absolute(tensor)));
  return where(tensor < 0, power, 1.0) / (1 + power);
}

#define FL_DEFINE_SCALAR(FUNC, OP, T)                                                          \
  Tensor FUNC(const Tensor& lhs, const T& rhs) {                                               \
    FL_API_ENTRY();                                                                            \
    const dtype type = detail::scalarType<T>(lhs.type());                                      \
    return defaultTensorBackend().FUNC(lhs, detail::numberTensor(Number::of(rhs).cast(type))); \
  }                                                                                            \
  Tensor FUNC(const T& lhs, const Tensor& rhs) {                                               \
    FL_API_ENTRY();                                                                            \
    const dtype type = detail::scalarType<T>(rhs.type());                                      \
    return defaultTensorBackend().FUNC(detail::numberTensor(Number::of(lhs).cast(type)), rhs); \
  }                                                                                            \
  Tensor operator OP(const Tensor& lhs, const T& rhs) {                                        \
    FL_API_ENTRY();                                                                            \
    return FUNC(lhs, rhs);                                                                     \
  }                                                                                            \
  Tensor operator OP(const T& lhs, const Tensor& rhs) {                                        \
    FL_API_ENTRY();                                                                            \
    return FUNC(lhs, rhs);                                                                     \
  }
#define FL_DEFINE_BINARY(FUNC, OP)                           \
  Tensor FUNC(const Tensor& lhs, const Tensor& rhs) {        \
    FL_API_ENTRY();                                          \
    return defaultTensorBackend().FUNC(lhs, rhs);            \
  }                                                          \
  Tensor operator OP(const Tensor& lhs, const Tensor& rhs) { \
    FL_API_ENTRY();                                          \
    return defaultTensorBackend().FUNC(lhs, rhs);            \
  }                                                          \
  FL_DEFINE_SCALAR(FUNC, OP, bool)                           \
  FL_DEFINE_SCALAR(FUNC, OP, int)                            \
  FL_DEFINE_SCALAR(FUNC, OP, unsigned)                       \
  FL_DEFINE_SCALAR(FUNC, OP, char)                           \
  FL_DEFINE_SCALAR(FUNC, OP, unsigned char)                  \
  FL_DEFINE_SCALAR(FUNC, OP, long)                           \
  FL_DEFINE_SCALAR(FUNC, OP, unsigned long)                  \
  FL_DEFINE_SCALAR(FUNC, OP, long long)                      \
  FL_DEFINE_SCALAR(FUNC, OP, unsigned long long)             \
  FL_DEFINE_SCALAR(FUNC, OP, double)                         \
  FL_DEFINE_SCALAR(FUNC, OP, float)                          \
  FL_DEFINE_SCALAR(FUNC, OP, short)                          \
  FL_DEFINE_SCALAR(FUNC, OP, unsigned short)
FL_FOR_EACH_BINARY_OPERATOR(FL_DEFINE_BINARY)
#undef FL_DEFINE_BINARY
#undef FL_DEFINE_SCALAR

#define FL_DEFINE(NAME)                                          \
  Tensor NAME(const Tensor& lhs, const Tensor& rhs) {            \
    FL_API_ENTRY();                                              \
    return defaultTensorBackend().NAME(lhs, rhs);                \
  }                                                              \
  Tensor NAME(const double& lhs, const Tensor& rhs) {            \
    FL_API_ENTRY();                                              \
    return defaultTensorBackend().NAME(detail::asF32(lhs), rhs); \
  }
FL_DEFINE(minimum)
FL_DEFINE(maximum)
FL_DEFINE(power)
#undef FL_DEFINE

Tensor minimum(const Tensor& lhs, const double& rhs) {
  FL_API_ENTRY();
  return defaultTensorBackend().minimum(lhs, detail::asF32(rhs));
}

Tensor maximum(const Tensor& lhs, const double& rhs) {
  FL_API_ENTRY();
  return defaultTensorBackend().maximum(lhs, detail::asF32(rhs));
}

// The one operator that looks at a number when it records: common exponents are cheaper and exact.
Tensor power(const Tensor& lhs, const double& rhs) {
  FL_API_ENTRY();
  const Tensor base = detail::castTo(lhs, promote(lhs.type(), dtype::f32));
  if (rhs == 2) {
    return base * base;
  }
  if (rhs == 3) {
    return base * base * base;
  }
  if (rhs == -1) {
    return 1.0 / base;
  }
  return defaultTensorBackend().power(base, detail::asF32(rhs));
}

}  // namespace fl
