#include "fl/autograd/Functions.h"
#include "fl/autograd/Internal.h"
#include "fl/base/CallSite.h"

namespace fl {

using detail::binaryResult;
using detail::checkSameType;
using detail::keptIf;
using detail::toType;
using detail::unaryResult;

namespace {

// max and min: the gradient goes where `takesLhs`, a b8 tensor function of both, says.
template <typename TakesLhs>
Variable extreme(Tensor result, const Variable& lhs, const Variable& rhs, TakesLhs takesLhs) {
  const Tensor x = lhs.tensor();
  const Tensor y = rhs.tensor();
  return binaryResult(
      std::move(result), lhs, rhs,
      [x, y, takesLhs](const Tensor& grad) { return where(takesLhs(x, y), grad, 0.0); },
      [x, y, takesLhs](const Tensor& grad) { return where(!takesLhs(x, y), grad, 0.0); });
}

}  // namespace

Variable operator+(const Variable& lhs, const Variable& rhs) {
  FL_API_ENTRY();
  checkSameType("operator+", lhs, rhs);
  const auto pass = [](const Tensor& grad) { return grad; };
  return binaryResult(lhs.tensor() + rhs.tensor(), lhs, rhs, pass, pass);
}

Variable operator+(const Variable& lhs, const double& rhs) {
  FL_API_ENTRY();
  return unaryResult(toType(lhs.tensor() + rhs, lhs.type()), lhs,
                     [](const Tensor& grad) { return grad; });
}

Variable operator+(const double& lhs, const Variable& rhs) {
  FL_API_ENTRY();
  return rhs + lhs;
}

Variable operator-(const Variable& lhs, const Variable& rhs) {
  FL_API_ENTRY();
  checkSameType("operator-", lhs, rhs);
  return binaryResult(
      lhs.tensor() - rhs.tensor(), lhs, rhs, [](const Tensor& grad) { return grad; },
      [](const Tensor& grad) { return -grad; });
}

Variable operator-(const Variable& lhs, const double& rhs) {
  FL_API_ENTRY();
  return unaryResult(toType(lhs.tensor() - rhs, lhs.type()), lhs,
                     [](const Tensor& grad) { return grad; });
}

Variable operator-(const double& lhs, const Variable& rhs) {
  FL_API_ENTRY();
  return unaryResult(toType(lhs - rhs.tensor(), rhs.type()), rhs,
                     [](const Tensor& grad) { return -grad; });
}

Variable operator*(const Variable& lhs, const Variable& rhs) {
  FL_API_ENTRY();
  checkSameType("operator*", lhs, rhs);
  return binaryResult(
      lhs.tensor() * rhs.tensor(), lhs, rhs,
      [y = keptIf(lhs.isCalcGrad(), rhs.tensor())](const Tensor& grad) { return grad * *y; },
      [x = keptIf(rhs.isCalcGrad(), lhs.tensor())](const Tensor& grad) { return grad * *x; });
}

Variable operator*(const Variable& lhs, const double& rhs) {
  FL_API_ENTRY();
  return unaryResult(toType(lhs.tensor() * rhs, lhs.type()), lhs,
                     [rhs](const Tensor& grad) { return grad * rhs; });
}

Variable operator*(const double& lhs, const Variable& rhs) {
  FL_API_ENTRY();
  return rhs * lhs;
}

Variable operator/(const Variable& lhs, const Variable& rhs) {
  FL_API_ENTRY();
  checkSameType("operator/", lhs, rhs);
  const Tensor y = rhs.tensor();
  const Tensor result = lhs.tensor() / y;
  return binaryResult(
      result, lhs, rhs, [y](const Tensor& grad) { return grad / y; },
      [y, result = keptIf(rhs.isCalcGrad(), result)](const Tensor& grad) {
        return -(grad * *result / y);
      });
}

Variable operator/(const Variable& lhs, const double& rhs) {
  FL_API_ENTRY();
  return unaryResult(toType(lhs.tensor() / rhs, lhs.type()), lhs,
                     [rhs](const Tensor& grad) { return grad / rhs; });
}

Variable operator/(const double& lhs, const Variable& rhs) {
  FL_API_ENTRY();
  const Tensor x = rhs.tensor();
  const Tensor result = toType(lhs / x, rhs.type());
  // Not by x * x, which may be too large where the result is not.
  return unaryResult(result, rhs,
                     [x, result](const Tensor& grad) { return -(grad * (result / x)); });
}

#define FL_DEFINE_COMPARISON(OP)                                     \
  Variable operator OP(const Variable& lhs, const Variable& rhs) {   \
    FL_API_ENTRY();                                                  \
    checkSameType("operator" #OP, lhs, rhs);                         \
    return Variable(lhs.tensor() OP rhs.tensor(), false);            \
  }                                                                  \
  Variable operator OP(const Variable& lhs, const double& rhs) {     \
    FL_API_ENTRY();                                                  \
    return Variable(toType(lhs.tensor() OP rhs, lhs.type()), false); \
  }                                                                  \
  Variable operator OP(const double& lhs, const Variable& rhs) {     \
    FL_API_ENTRY();                                                  \
    return Variable(toType(lhs OP rhs.tensor(), rhs.type()), false); \
  }
FL_DEFINE_COMPARISON(>)
FL_DEFINE_COMPARISON(<)
FL_DEFINE_COMPARISON(>=)
FL_DEFINE_COMPARISON(<=)
#undef FL_DEFINE_COMPARISON

Variable operator&&(const Variable& lhs, const Variable& rhs) {
  FL_API_ENTRY();
  checkSameType("operator&&", lhs, rhs);
  return Variable(lhs.tensor() && rhs.tensor(), false);
}

Variable max(const Variable& lhs, const Variable& rhs) {
  FL_API_ENTRY();
  checkSameType("max", lhs, rhs);
  return extreme(maximum(lhs.tensor(), rhs.tensor()), lhs, rhs,
                 [](const Tensor& x, const Tensor& y) { return x > y; });
}

Variable max(const Variable& lhs, const double& rhs) {
  FL_API_ENTRY();
  const Tensor limit = fromScalar(rhs, lhs.type());
  return unaryResult(
      maximum(lhs.tensor(), limit), lhs,
      [x = lhs.tensor(), limit](const Tensor& grad) { return where(x > limit, grad, 0.0); });
}

Variable max(const double& lhs, const Variable& rhs) {
  FL_API_ENTRY();
  return max(rhs, lhs);
}

Variable min(const Variable& lhs, const Variable& rhs) {
  FL_API_ENTRY();
  checkSameType("min", lhs, rhs);
  return extreme(minimum(lhs.tensor(), rhs.tensor()), lhs, rhs,
                 [](const Tensor& x, const Tensor& y) { return x < y; });
}

Variable min(const Variable& lhs, const double& rhs) {
  FL_API_ENTRY();
  const Tensor limit = fromScalar(rhs, lhs.type());
  return unaryResult(
      minimum(lhs.tensor(), limit), lhs,
      [x = lhs.tensor(), limit](const Tensor& grad) { return where(x < limit, grad, 0.0); });
}

Variable min(const double& lhs, const Variable& rhs) {
  FL_API_ENTRY();
  return min(rhs, lhs);
}

}  // namespace fl
