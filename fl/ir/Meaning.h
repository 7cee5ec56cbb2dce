// The meaning of every elementwise op, written once over an abstract builder.
//
// An executor derives its builder from MeaningBuilder and supplies the primitives below; the op
// table's expressions and the vector math (VectorMath.h) are then the same for the tile interpreter
// (C++ scalars that the compiler vectorises), for LLVM IR and for every other executor, operation
// by operation, which is why their results agree bit for bit.
//
// Values carry their type: a C++ builder uses C++ types, a code-emitting builder a handle with a
// dtype. Masks (results of comparisons) are a type of their own. Primitives a builder supplies:
//   real(like, double), integer(like, int64_t)   constants of the type of `like`
//   isDouble(x), isFloat(x), isSigned(x), width(x)   facts of x's type (constexpr where static)
//   add, sub, mul (integers wrap), divide (floats), fma, negate (floats), magnitude (floats),
//   sqrt, floor, ceil, rint
//   divideInteger, remainderInteger  (the divisor is neither 0 nor -1)
//   bitAnd, bitOr, bitXor, bitNot  (integers of one type); shl, lshr, ashr (counts below the width)
//   lt, le, eq (false if unordered), ne (true if unordered)  -> mask
//   maskAnd, maskOr, maskNot; select(mask, x, y)
//   bits(x), fromBits(i)   float and the signed integer of the same width
//   castTo<dtype::t>(x)    op Cast to t, by the rule of its row in Ops.def
//   rarely(mask, usual, rare)   rare() where the mask holds, else usual(); executors may leave out
//   the rare part where they see that no element needs it
// and may supply isShort, whether 16-bit floats are made of results (VectorMath.h), repeat, where a
// loop costs less than its body many times, and scaled, where there is an instruction for it. The
// executor hands Where its condition as a mask.
//
// A builder states kStaticTypes. If true, its values are C++ types of the element's width and it
// has a constexpr isFloatType<V>(); then only the code of the value's own type is instantiated.
#pragma once

#include "fl/ir/Op.h"
#include "fl/ir/VectorMath.h"

namespace fl::ir {

template <class Derived>
class MeaningBuilder {
 public:
  static constexpr bool isShort() { return false; }

  // state = body(state), `times` times; a state is a std::array of values.
  template <int times, class State, class Body>
  State repeat(State state, Body body) {
    for (int i = 0; i < times; ++i) state = body(state);
    return state;
  }

  // x 2^n for a float n that is an integer, rounded once, as usual() computes it.
  template <class V, class Usual>
  V scaled(V, V, Usual usual) {
    return usual();
  }

  template <class V>
  auto isZero(V x) {
    return self().eq(x, self().integer(x, 0));
  }
  template <class V>
  auto isNonZero(V x) {
    return self().ne(x, self().integer(x, 0));
  }

  template <class V>
  V neg(V x) {
    return floatOrInteger(
        x, [&](auto v) { return self().negate(v); },
        [&](auto v) { return self().sub(self().integer(v, 0), v); });
  }
  template <class V>
  V abs(V x) {
    return floatOrInteger(
        x, [&](auto v) { return self().magnitude(v); },
        [&](auto v) {
          const auto zero = self().integer(v, 0);
          return self().select(self().lt(v, zero), self().sub(zero, v), v);
        });
  }
  template <class V>
  V sign(V x) {
    const auto zero = self().integer(x, 0), one = self().integer(x, 1);
    const V negative = self().select(self().lt(x, zero), neg(one), x);
    return self().select(self().lt(zero, x), one, negative);
  }
  template <class V>
  auto isInf(V x) {
    return self().eq(abs(x), self().real(x, __builtin_inf()));
  }
  template <class V>
  auto logicalNot(V x) {
    return isZero(x);
  }
  template <class V>
  auto logicalAnd(V x, V y) {
    return self().maskAnd(isNonZero(x), isNonZero(y));
  }
  template <class V>
  auto logicalOr(V x, V y) {
    return self().maskOr(isNonZero(x), isNonZero(y));
  }

  // NaN is sticky: the first operand if it is NaN, else the second if it is.
  template <class V>
  V max(V x, V y) {
    return self().select(self().maskOr(self().lt(y, x), self().ne(x, x)), x, y);
  }
  template <class V>
  V min(V x, V y) {
    return self().select(self().maskOr(self().lt(x, y), self().ne(x, x)), x, y);
  }

  // Of floats: y and the quotient are far from overflow and, but for an x of 0, from underflow. A
  // builder may have something faster for it than for all numbers, with the same bits.
  template <class V>
  V divideOrdinary(V x, V y) {
    return self().divide(x, y);
  }
  template <class V>
  V div(V x, V y) {
    return floatOrInteger(
        x, [&](auto v) { return self().divide(v, y); },
        [&](auto v) {
          const auto safe = safeDivisor(y);
          auto quotient = self().divideInteger(v, safe);
          quotient = self().select(isMinusOne(y), neg(v), quotient);
          return self().select(isZero(y), self().integer(v, 0), quotient);
        });
  }
  template <class V>
  V mod(V x, V y) {
    return floatOrInteger(
        x, [&](auto v) { return vm::fmod(self(), v, y); },
        [&](auto v) {
          const auto zero = self().integer(v, 0);
          const auto rest = self().remainderInteger(v, safeDivisor(y));
          return self().select(self().maskOr(isZero(y), isMinusOne(y)), zero, rest);
        });
  }
  template <class V>
  V shiftLeft(V x, V count) {
    const auto inRange = isCount(count);
    const auto zero = self().integer(x, 0);
    const auto safe = self().select(inRange, count, zero);
    return self().select(inRange, self().shl(x, safe), zero);
  }
  template <class V>
  V shiftRight(V x, V count) {
    const auto inRange = isCount(count);
    const auto safe = self().select(inRange, count, self().integer(x, self().width(x) - 1));
    if (self().isSigned(x)) {
      return self().ashr(x, safe);
    }
    return self().select(inRange, self().lshr(x, safe), self().integer(x, 0));
  }

  template <class V>
  V exp(V x) {
    return vm::exp(self(), x);
  }
  template <class V>
  V log(V x) {
    return vm::log(self(), x);
  }
  template <class V>
  V log1p(V x) {
    return vm::log1p(self(), x);
  }
  template <class V>
  V sin(V x) {
    return vm::sin(self(), x);
  }
  template <class V>
  V cos(V x) {
    return vm::cos(self(), x);
  }
  template <class V>
  V tanh(V x) {
    return vm::tanh(self(), x);
  }
  template <class V>
  V erf(V x) {
    return vm::erf(self(), x);
  }
  template <class V>
  V pow(V x, V y) {
    return vm::pow(self(), x, y);
  }

 private:
  Derived& self() { return static_cast<Derived&>(*this); }

  // Runs one of two generic functions by the type of x. A builder whose types are C++ types has a
  // constexpr isFloat and instantiates one; others decide at run time.
  template <class V, class F, class I>
  auto floatOrInteger(V x, F&& ifFloat, I&& ifInteger) {
    if constexpr (Derived::kStaticTypes) {
      if constexpr (Derived::template isFloatType<V>()) {
        return ifFloat(x);
      } else {
        return ifInteger(x);
      }
    } else {
      return self().isFloat(x) ? ifFloat(x) : ifInteger(x);
    }
  }
  // True where y is -1 of a signed type, the divisor that may overflow.
  template <class V>
  auto isMinusOne(V y) {
    const auto equal = self().eq(y, self().integer(y, -1));
    return self().isSigned(y) ? equal : self().ne(y, y);
  }
  template <class V>
  V safeDivisor(V y) {
    return self().select(self().maskOr(isZero(y), isMinusOne(y)), self().integer(y, 1), y);
  }
  // True where a shift count is below the width.
  template <class V>
  auto isCount(V count) {
    return self().maskAnd(self().le(self().integer(count, 0), count),
                          self().lt(count, self().integer(count, self().width(count))));
  }
};

// The table's expression of one op, for builders that know the op at compile time.
template <Op op>
struct Meaning;

#define FL_NONE x
#define FL_OP(Name, name_, kind_, meaning, ...)                                          \
  template <>                                                                            \
  struct Meaning<Op::Name> {                                                             \
    static constexpr OpInfo info{                                                        \
        .op = Op::Name, .name = #name_, .kind = Kind::kind_ __VA_OPT__(, ) __VA_ARGS__}; \
    template <class B, class X, class Y, class Z>                                        \
    static auto apply(B& b, X x, Y y, Z z) {                                             \
      (void)b, (void)y, (void)z;                                                         \
      return meaning;                                                                    \
    }                                                                                    \
  };
#include "fl/ir/Ops.def"
#undef FL_OP
#undef FL_NONE

// For builders that learn the op at run time: calls f(Meaning<op>{}) for the elementwise kinds that
// have a meaning (Unary, Binary, Select) and for Reduce, whose meaning combines two values.
template <class F>
void withMeaning(Op op, F&& f) {
  switch (op) {
#define FL_OP(Name, ...)    \
  case Op::Name:            \
    f(Meaning<Op::Name>{}); \
    break;
#include "fl/ir/Ops.def"
#undef FL_OP
  }
}

}  // namespace fl::ir
