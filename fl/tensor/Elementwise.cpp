// The public operators, and the definitions of the elementwise ones.
#include <cmath>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/tensor/Composite.h"
#include "fl/tensor/Detail.h"

namespace fl {

namespace {

Tensor unary(ir::Op op, const Tensor& tensor) {
  const bool isOfFloats = op == ir::Op::IsNan || op == ir::Op::IsInf;
  if (isOfFloats && !isFloating(tensor.type())) return full(tensor.shape(), 0, dtype::b8);
  const bool toFloat = ir::opInfo(op).types == ir::Types::Float && !isFloating(tensor.type());
  return toFloat ? detail::applyOp(op, {tensor.astype(dtype::f32)}) : detail::applyOp(op, {tensor});
}

}  // namespace

#define FL_UNARY(Name, name) \
  Tensor TensorBackend::name(const Tensor& tensor) { return unary(ir::Op::Name, tensor); }
#define FL_BINARY(Name, name)                                        \
  Tensor TensorBackend::name(const Tensor& lhs, const Tensor& rhs) { \
    return detail::binary(ir::Op::Name, lhs, rhs);                   \
  }
#define FL_REDUCE(Name, name)
#include "fl/tensor/Functions.def"

// The public function of every operator goes to the virtual of this thread's backend, which is
// offered those that are made of others as one.
#define FL_EXPAND(...) __VA_ARGS__
#define FL_CALL_Primitive_Tensor(name, arguments) defaultTensorBackend().name arguments
#define FL_CALL_Library_Tensor FL_CALL_Primitive_Tensor
#define FL_CALL_Composite_void FL_CALL_Primitive_Tensor
#define FL_CALL_Composite_Tensor(name, arguments)                                        \
  composite(                                                                             \
      #name, [](const auto&... given) { return defaultTensorBackend().name(given...); }, \
      FL_EXPAND arguments)
#define FL_FUNCTION(Kind, Result, name, parameters, arguments) \
  Result name parameters {                                     \
    FL_API_ENTRY_OF(FL_EXPAND arguments);                      \
    return FL_CALL_##Kind##_##Result(name, arguments);         \
  }
#include "fl/tensor/Functions.def"

#define FL_DEFINE_ALIAS(ALIAS, name)   \
  Tensor ALIAS(const Tensor& tensor) { \
    FL_API_ENTRY();                    \
    return name(tensor);               \
  }
FL_DEFINE_ALIAS(operator-, negative)
FL_DEFINE_ALIAS(operator!, logicalNot)
FL_DEFINE_ALIAS(abs, absolute)
#undef FL_DEFINE_ALIAS

Tensor TensorBackend::sigmoid(const Tensor& tensor) {
  const dtype type = isFloating(tensor.type()) ? tensor.type() : dtype::f32;
  // 16-bit floats are rounded once.
  const Tensor x = detail::castTo(tensor, computeType(type));
  // e^-|x| does not overflow, so that results of large negative numbers keep their digits.
  const Tensor power = exp(negative(absolute(x)));
  return detail::castTo(fl::where(x < 0, power, 1.0) / (1 + power), type);
}

#define FL_DEFINE_SCALAR(T, FUNC, OP)                                                          \
  Tensor FUNC(const Tensor& lhs, const T& rhs) {                                               \
    FL_API_ENTRY_OF(lhs, detail::NumberOperand{dtype_traits<T>::ctype});                       \
    const dtype type = detail::scalarType<T>(lhs.type());                                      \
    return defaultTensorBackend().FUNC(lhs, detail::numberTensor(Number::of(rhs).cast(type))); \
  }                                                                                            \
  Tensor FUNC(const T& lhs, const Tensor& rhs) {                                               \
    FL_API_ENTRY_OF(detail::NumberOperand{dtype_traits<T>::ctype}, rhs);                       \
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
  Tensor operator OP(const Tensor& lhs, const Tensor& rhs) { \
    FL_API_ENTRY_OF(lhs, rhs);                               \
    return defaultTensorBackend().FUNC(lhs, rhs);            \
  }                                                          \
  FL_FOR_EACH_SCALAR_TYPE(FL_DEFINE_SCALAR, FUNC, OP)
FL_FOR_EACH_BINARY_OPERATOR(FL_DEFINE_BINARY)
#undef FL_DEFINE_BINARY
#undef FL_DEFINE_SCALAR

#define FL_DEFINE(NAME, L, R, lhsOperand, rhsOperand)           \
  Tensor NAME(const L& lhs, const R& rhs) {                     \
    FL_API_ENTRY();                                             \
    return defaultTensorBackend().NAME(lhsOperand, rhsOperand); \
  }
FL_DEFINE(minimum, double, Tensor, detail::asF32(lhs), rhs)
FL_DEFINE(minimum, Tensor, double, lhs, detail::asF32(rhs))
FL_DEFINE(maximum, double, Tensor, detail::asF32(lhs), rhs)
FL_DEFINE(maximum, Tensor, double, lhs, detail::asF32(rhs))
FL_DEFINE(power, double, Tensor, detail::asF32(lhs), rhs)
#undef FL_DEFINE

// The one operator that looks at a number when it records: common exponents are cheaper and exact.
// 0.5 is no square root, which is another number where x is -0 or negative infinity.
Tensor power(const Tensor& lhs, const double& rhs) {
  FL_API_ENTRY();
  const Tensor base = detail::castTo(lhs, promote(lhs.type(), dtype::f32));
  if (rhs == 2) return base * base;
  if (rhs == 3) return base * base * base;
  if (rhs == -1) return 1.0 / base;
  return defaultTensorBackend().power(base, detail::asF32(rhs));
}

}  // namespace fl
