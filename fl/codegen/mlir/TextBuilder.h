// The meaning of the op table in MLIR's arith, math and scf dialects: a MeaningBuilder whose values
// are names of SSA values.
//
// Every operation becomes one line. None carries a fast-math flag and fma stands only where the
// vector math asks for it, so that what does not reorder sums gives the bits of our own emitters.
// Constants are kept apart, once each, for the beginning of the block. Relies on
// fl/ir/Meaning.h; GraphWriter.h prints the loops around it.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "fl/codegen/cuda/CodeText.h"
#include "fl/ir/Meaning.h"

namespace fl::codegen::mlir {

using cuda::CodeText;

// A b8 is an i8 or, as comparisons make it, an i1: a mask. Either is accepted everywhere. The sign
// of an integer is in `type` alone: MLIR's have none.
struct TextValue {
  std::string name;
  dtype type = dtype::f32;
  bool isMask = false;
};

// "i8" for b8 and u8, "bf16".
std::string typeName(dtype type);
// The number as an attribute with its type: "2.5 : f32".
std::string literal(const Number& number);

class TextBuilder : public ir::MeaningBuilder<TextBuilder> {
 public:
  using V = TextValue;
  static constexpr bool kStaticTypes = false;

  // Names of its values begin with %`prefix`.
  explicit TextBuilder(CodeText& code, std::string prefix = "")
      : code_(code), prefix_(std::move(prefix)) {}

  // The lines of the constants, at `depth`.
  std::string constants(int depth) const;
  V constant(const Number& number);
  // A number of the type index, and a value that has no type of ours.
  std::string indexConstant(Dim number);
  std::string define(const std::string& operation);

  V bytes(const V& x);
  V cast(const V& x, dtype type);
  // The index as an s64, and back.
  V fromIndex(const std::string& index);
  std::string toIndex(const V& x);
  // The value of an op of kind Unary, Binary, Select or Reduce on operands in a type that it is
  // computed in.
  V meaning(ir::Op op, const V& x, const V& y, const V& z);

  // The primitives that fl/ir/Meaning.h lists.
  V real(const V& like, double number) { return constant(Number::fromDouble(number, like.type)); }
  V integer(const V& like, int64_t number);
  bool isDouble(const V& x) const { return x.type == dtype::f64; }
  bool isFloat(const V& x) const { return isFloating(x.type); }
  bool isShort() const { return isShort_; }
  void setShort(bool isShort) { isShort_ = isShort; }
  bool isSigned(const V& x) const { return fl::isSigned(x.type); }
  int width(const V& x) const { return static_cast<int>(getTypeSize(x.type)) * 8; }

  V add(const V& x, const V& y) { return binary("arith.add", sortEnd(x), x, y); }
  V sub(const V& x, const V& y) { return binary("arith.sub", sortEnd(x), x, y); }
  V mul(const V& x, const V& y) { return binary("arith.mul", sortEnd(x), x, y); }
  V divide(const V& x, const V& y) { return binary("arith.div", "f", x, y); }
  V fma(const V& x, const V& y, const V& z);
  V negate(const V& x) { return unary("arith.negf", x); }
  V magnitude(const V& x) { return unary("math.absf", x); }
  V sqrt(const V& x) { return unary("math.sqrt", x); }
  V floor(const V& x) { return unary("math.floor", x); }
  V ceil(const V& x) { return unary("math.ceil", x); }
  V rint(const V& x) { return unary("math.roundeven", x); }
  V divideInteger(const V& x, const V& y) { return binary("arith.div", signEnd(x), x, y); }
  V remainderInteger(const V& x, const V& y) { return binary("arith.rem", signEnd(x), x, y); }

  V bitAnd(const V& x, const V& y) { return binary("arith.and", "i", x, y); }
  V bitOr(const V& x, const V& y) { return binary("arith.or", "i", x, y); }
  V bitXor(const V& x, const V& y) { return binary("arith.xor", "i", x, y); }
  V bitNot(const V& x) { return bitXor(x, integer(x, -1)); }
  V shl(const V& x, const V& count) { return binary("arith.shl", "i", x, count); }
  V lshr(const V& x, const V& count) { return binary("arith.shr", "ui", x, count); }
  V ashr(const V& x, const V& count) { return binary("arith.shr", "si", x, count); }

  V lt(const V& x, const V& y) { return compare("olt", "lt", x, y); }
  V le(const V& x, const V& y) { return compare("ole", "le", x, y); }
  V eq(const V& x, const V& y) { return compare("oeq", "eq", x, y); }
  V ne(const V& x, const V& y) { return compare("une", "ne", x, y); }
  V maskAnd(const V& x, const V& y) { return logical("arith.andi", truth(x), truth(y)); }
  V maskOr(const V& x, const V& y) { return logical("arith.ori", truth(x), truth(y)); }
  V maskNot(const V& x);
  V select(const V& condition, const V& x, const V& y);

  V bits(const V& x) { return convert("arith.bitcast", x, isDouble(x) ? dtype::s64 : dtype::s32); }
  V fromBits(const V& x) {
    return convert("arith.bitcast", x, x.type == dtype::s64 ? dtype::f64 : dtype::f32);
  }
  template <dtype type>
  V castTo(const V& x) {
    return cast(x, type);
  }
  // A branch of each element.
  V rarely(const V& mask, const std::function<V()>& usual, const std::function<V()>& rare);

  CodeText& code() { return code_; }

 private:
  std::string newName() { return "%" + prefix_ + "t" + std::to_string(names_++); }
  // The constant of that attribute, as "0 : i32".
  std::string constantOf(const std::string& attribute);
  V truth(const V& x) { return x.isMask ? x : ne(x, integer(x, 0)); }
  // The ends of operations' names: f or i, si or ui.
  const char* sortEnd(const V& x) const { return isFloat(x) ? "f" : "i"; }
  const char* signEnd(const V& x) const { return isSigned(x) ? "si" : "ui"; }
  V unary(const char* operation, const V& x);
  V binary(const std::string& operation, const char* end, const V& x, const V& y);
  V logical(const char* operation, const V& x, const V& y);
  V compare(const char* ifFloat, const char* ifInteger, const V& x, const V& y);
  V convert(const char* operation, const V& x, dtype type);
  V realToInteger(const V& x, dtype type);

  CodeText& code_;
  const std::string prefix_;
  bool isShort_ = false;
  int names_ = 0;
  std::map<std::string, std::string> constants_;  // names by attribute
};

}  // namespace fl::codegen::mlir
