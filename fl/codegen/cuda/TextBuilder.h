// The meaning of the op table in CUDA C++: a MeaningBuilder whose values are names of constants.
//
// Every operation becomes one line that defines a constant, in terms of C++ operators and the
// prelude (Prelude.h). No contraction is asked for but where the vector math has a fma, so a
// compiler that does not contract either (--fmad=false) computes the bits of the other executors.
// Relies on fl/ir/Meaning.h; Functions.h makes functions of the lines.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <string>

#include "fl/codegen/cuda/CodeText.h"
#include "fl/ir/Meaning.h"

namespace fl::codegen::cuda {

// A name or a literal. A b8 is a byte or, as comparisons make it, a bool; either is accepted
// everywhere. 16-bit floats are held as their bits.
struct TextValue {
  std::string text;
  dtype type = dtype::f32;
  bool isMask = false;
};

// How a number is written; the expression has its dtype's type.
std::string literal(const Number& number);

class TextBuilder : public ir::MeaningBuilder<TextBuilder> {
 public:
  using V = TextValue;
  static constexpr bool kStaticTypes = false;

  explicit TextBuilder(CodeText& code) : code_(code) {}

  V bytes(const V& x);
  V cast(const V& x, dtype type);

  // The primitives that fl/ir/Meaning.h lists.
  V real(const V& like, double number);
  V integer(const V& like, int64_t number);
  bool isDouble(const V& x) const { return x.type == dtype::f64; }
  bool isFloat(const V& x) const { return isFloating(x.type); }
  bool isShort() const { return isShort_; }
  void setShort(bool isShort) { isShort_ = isShort; }
  bool isSigned(const V& x) const { return fl::isSigned(x.type); }
  int width(const V& x) const { return static_cast<int>(getTypeSize(x.type)) * 8; }

  V add(const V& x, const V& y) { return arithmetic("+", "wrapAdd", x, y); }
  V sub(const V& x, const V& y) { return arithmetic("-", "wrapSub", x, y); }
  V mul(const V& x, const V& y) { return arithmetic("*", "wrapMul", x, y); }
  V divide(const V& x, const V& y) { return infix("/", x, y); }
  V divideOrdinary(const V& x, const V& y) {
    return isDouble(x) ? divide(x, y) : call("divideOrdinary", x, {y});
  }
  V fma(const V& x, const V& y, const V& z) { return call("mulAdd", x, {y, z}); }
  V negate(const V& x) { return define(x.type, "-(" + x.text + ")"); }
  V magnitude(const V& x) { return call("magnitude", x); }
  V sqrt(const V& x) { return call("squareRoot", x); }
  V floor(const V& x) { return call("roundDown", x); }
  V ceil(const V& x) { return call("roundUp", x); }
  V rint(const V& x) { return call("roundToEven", x); }
  V divideInteger(const V& x, const V& y) { return infix("/", bytes(x), bytes(y)); }
  V remainderInteger(const V& x, const V& y) { return infix("%", bytes(x), bytes(y)); }

  V bitAnd(const V& x, const V& y) { return infix("&", bytes(x), bytes(y)); }
  V bitOr(const V& x, const V& y) { return infix("|", bytes(x), bytes(y)); }
  V bitXor(const V& x, const V& y) { return infix("^", bytes(x), bytes(y)); }
  V bitNot(const V& x) { return define(x.type, "~" + bytes(x).text); }
  V shl(const V& x, const V& count) { return call("shiftLeft", bytes(x), {bytes(count)}); }
  V lshr(const V& x, const V& count) { return call("shiftRight", bytes(x), {bytes(count)}); }
  V ashr(const V& x, const V& count) { return infix(">>", bytes(x), bytes(count)); }

  V lt(const V& x, const V& y) { return compare("<", x, y); }
  V le(const V& x, const V& y) { return compare("<=", x, y); }
  V eq(const V& x, const V& y) { return compare("==", x, y); }
  V ne(const V& x, const V& y) { return compare("!=", x, y); }
  V maskAnd(const V& x, const V& y) { return mask(truth(x) + " && " + truth(y)); }
  V maskOr(const V& x, const V& y) { return mask(truth(x) + " || " + truth(y)); }
  V maskNot(const V& x) { return mask("!" + truth(x)); }
  V select(const V& condition, V x, V y);

  V bits(const V& x) {
    return define(isDouble(x) ? dtype::s64 : dtype::s32, "bitsOf(" + x.text + ")");
  }
  V fromBits(const V& x) {
    return define(x.type == dtype::s64 ? dtype::f64 : dtype::f32, "fromBits(" + x.text + ")");
  }
  template <dtype type>
  V castTo(const V& x) {
    return cast(x, type);
  }
  // A branch of each thread.
  V rarely(const V& mask, const std::function<V()>& usual, const std::function<V()>& rare);
  // A loop.
  template <int times, size_t n, class Body>
  std::array<V, n> repeat(const std::array<V, n>& start, Body body) {
    std::array<V, n> state = start;
    for (V& each : state) each.text = variable(each);
    code_.open("for (int turn = 0; turn < ", times, "; ++turn)");
    std::array<V, n> next = body(state);
    // What is the state before the turn is read before it is overwritten.
    for (V& each : next) {
      const auto isIt = [&](const V& old) { return old.text == each.text; };
      if (std::any_of(state.begin(), state.end(), isIt)) each = define(each.type, each.text);
    }
    for (size_t i = 0; i < n; ++i) code_.line(state[i].text, " = ", next[i].text, ";");
    code_.close();
    return state;
  }

 private:
  // const `type` t = expression;
  V define(dtype type, const std::string& expression);
  V mask(const std::string& expression);
  // A variable that holds x at first.
  std::string variable(const V& x);
  std::string newName() { return "t" + std::to_string(names_++); }
  std::string truth(const V& x) const { return x.isMask ? x.text : "(" + x.text + " != 0)"; }
  V infix(const char* op, const V& x, const V& y);
  V call(const std::string& function, const V& x, const std::vector<V>& more = {});
  V arithmetic(const char* ifFloat, const char* ifInteger, const V& x, const V& y);
  V compare(const char* op, const V& x, const V& y);

  CodeText& code_;
  bool isShort_ = false;
  int names_ = 0;
};

}  // namespace fl::codegen::cuda
