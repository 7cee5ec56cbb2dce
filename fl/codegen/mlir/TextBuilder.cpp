#include "fl/codegen/mlir/TextBuilder.h"

#include <charconv>
#include <cmath>

namespace fl::codegen::mlir {

using V = TextValue;

namespace {

// The shortest that reads back to the same bits; MLIR wants a point in it.
std::string decimal(double value, dtype type) {
  char text[64];
  const auto end =
      type == dtype::f32
          ? std::to_chars(text, text + 64, static_cast<float>(value), std::chars_format::scientific)
          : std::to_chars(text, text + 64, value, std::chars_format::scientific);
  std::string digits(text, end.ptr);
  if (digits.find('.') == std::string::npos) digits.insert(digits.find('e'), ".0");
  const size_t exponent = digits.find("e+00");
  return exponent == std::string::npos ? digits : digits.substr(0, exponent);
}

std::string typeOf(const V& x) { return x.isMask ? "i1" : typeName(x.type); }

bool isHalf(dtype type) { return type == dtype::f16 || type == dtype::bf16; }

}  // namespace

std::string typeName(dtype type) {
  return isFloating(type) ? dtypeToString(type) : "i" + std::to_string(8 * getTypeSize(type));
}

std::string literal(const Number& number) {
  const dtype type = number.type();
  const int unused = 64 - 8 * static_cast<int>(getTypeSize(type));
  if (!isFloating(type)) {
    const int64_t value = static_cast<int64_t>(number.bits() << unused) >> unused;
    return detail::concat(value, " : ", typeName(type));
  }
  if (!isHalf(type) && std::isfinite(number.toDouble())) {
    return decimal(number.toDouble(), type) + " : " + typeName(type);
  }
  char bits[32];
  const auto end = std::to_chars(bits, bits + 32, number.bits(), 16);
  return detail::concat("0x", std::string(bits, end.ptr), " : ", typeName(type));
}

std::string TextBuilder::constantOf(const std::string& attribute) {
  const std::string name = "%" + prefix_ + "c" + std::to_string(constants_.size());
  return constants_.emplace(attribute, name).first->second;
}

std::string TextBuilder::constants(int depth) const {
  std::map<std::pair<size_t, std::string>, std::string> byName;
  for (const auto& [attribute, name] : constants_) byName[{name.size(), name}] = attribute;
  CodeText lines(depth);
  for (const auto& [name, attribute] : byName) {
    lines.line(name.second, " = arith.constant ", attribute);
  }
  return lines.take();
}

V TextBuilder::constant(const Number& number) {
  return {constantOf(literal(number)), number.type()};
}

std::string TextBuilder::indexConstant(Dim number) {
  return constantOf(detail::concat(number, " : index"));
}

std::string TextBuilder::define(const std::string& operation) {
  const std::string name = newName();
  code_.line(name, " = ", operation);
  return name;
}

V TextBuilder::bytes(const V& x) {
  return x.isMask ? V{define("arith.extui " + x.name + " : i1 to i8"), dtype::b8} : x;
}

V TextBuilder::fromIndex(const std::string& index) {
  return {define("arith.index_cast " + index + " : index to i64"), dtype::s64};
}

std::string TextBuilder::toIndex(const V& x) {
  return define("arith.index_cast " + x.name + " : i64 to index");
}

V TextBuilder::meaning(ir::Op op, const V& x, const V& y, const V& z) {
  V result;
  ir::withMeaning(op, [&](auto meaning) { result = meaning.apply(*this, x, y, z); });
  return result;
}

V TextBuilder::integer(const V& like, int64_t number) {
  if (isFloat(like)) return real(like, static_cast<double>(number));
  const uint64_t all = ~uint64_t{0} >> (64 - width(like));
  return constant(Number(like.type, static_cast<uint64_t>(number) & all));
}

V TextBuilder::fma(const V& x, const V& y, const V& z) {
  return {define(detail::concat("math.fma ", x.name, ", ", y.name, ", ", z.name, " : ", typeOf(x))),
          x.type};
}

V TextBuilder::unary(const char* operation, const V& x) {
  return {define(detail::concat(operation, " ", x.name, " : ", typeOf(x))), x.type};
}

V TextBuilder::binary(const std::string& operation, const char* end, const V& x, const V& y) {
  const V left = bytes(x), right = bytes(y);
  return {define(operation + end + " " + left.name + ", " + right.name + " : " + typeOf(left)),
          left.type};
}

V TextBuilder::logical(const char* operation, const V& x, const V& y) {
  return {define(detail::concat(operation, " ", x.name, ", ", y.name, " : i1")), dtype::b8, true};
}

V TextBuilder::maskNot(const V& x) {
  return logical("arith.xori", truth(x), {constantOf("true"), dtype::b8, true});
}

V TextBuilder::compare(const char* ifFloat, const char* ifInteger, const V& x, const V& y) {
  const V left = bytes(x), right = bytes(y);
  const bool ordered = ifInteger[0] == 'l';  // lt, le
  const std::string predicate =
      isFloat(left) ? std::string("f ") + ifFloat
                    : std::string("i ") + (ordered ? isSigned(left) ? "s" : "u" : "") + ifInteger;
  return {define(detail::concat("arith.cmp", predicate, ", ", left.name, ", ", right.name, " : ",
                                typeOf(left))),
          dtype::b8, true};
}

V TextBuilder::select(const V& condition, const V& x, const V& y) {
  const bool masks = x.isMask && y.isMask;
  const V mask = truth(condition), left = masks ? x : bytes(x), right = masks ? y : bytes(y);
  return {define(detail::concat("arith.select ", mask.name, ", ", left.name, ", ", right.name,
                                " : ", typeOf(left))),
          left.type, masks};
}

V TextBuilder::rarely(const V& mask, const std::function<V()>& usual,
                      const std::function<V()>& rare) {
  const std::string condition = truth(mask).name, name = newName();
  V result;
  CodeText outer(code_.depth() + 1);
  std::swap(code_, outer);
  const auto block = [&](const std::function<V()>& value) {
    result = bytes(value());
    code_.line("scf.yield ", result.name, " : ", typeOf(result));
    return code_.take();
  };
  const std::string rareLines = block(rare), usualLines = block(usual);
  std::swap(code_, outer);
  code_.open(name, " = scf.if ", condition, " -> (", typeOf(result), ")");
  code_.append(rareLines);
  code_.label("} else {");
  code_.append(usualLines);
  code_.close();
  return {name, result.type};
}

V TextBuilder::convert(const char* operation, const V& x, dtype type) {
  return {define(detail::concat(operation, " ", x.name, " : ", typeOf(x), " to ", typeName(type))),
          type};
}

// The limits are powers of two or 0, which every float holds; the largest number is one below.
V TextBuilder::realToInteger(const V& x, dtype type) {
  const int bits = static_cast<int>(getTypeSize(type)) * 8;
  const bool hasSign = fl::isSigned(type);
  const V low = real(x, hasSign ? -std::ldexp(1.0, bits - 1) : 0.0);
  const V end = real(x, std::ldexp(1.0, hasSign ? bits - 1 : bits));
  const V inRange = select(maskAnd(le(low, x), lt(x, end)), x, real(x, 0));
  const V exact = convert(hasSign ? "arith.fptosi" : "arith.fptoui", inRange, type);
  const int64_t smallest = hasSign ? static_cast<int64_t>(uint64_t{1} << (bits - 1)) : 0;
  const int64_t largest = static_cast<int64_t>(~uint64_t{0} >> (64 - bits + hasSign));
  const V below = select(lt(x, low), integer(exact, smallest), exact);
  return select(le(end, x), integer(exact, largest), below);
}

// The rule stands at Cast in fl/ir/Ops.def.
V TextBuilder::cast(const V& x, dtype type) {
  if (x.type == type) return x;
  if (isHalf(x.type)) return cast(convert("arith.extf", x, dtype::f32), type);
  if (type == dtype::b8) return ne(x, integer(x, 0));
  if (isHalf(type)) return convert("arith.truncf", cast(x, dtype::f32), type);
  const V from = bytes(x);
  const int fromWidth = width(from), toWidth = static_cast<int>(getTypeSize(type)) * 8;
  if (isFloat(from) && isFloating(type)) {
    return convert(fromWidth < toWidth ? "arith.extf" : "arith.truncf", from, type);
  }
  if (isFloat(from)) return realToInteger(from, type);
  if (isFloating(type)) {
    return convert(isSigned(from) ? "arith.sitofp" : "arith.uitofp", from, type);
  }
  if (fromWidth == toWidth) return {from.name, type};
  const char* widen = isSigned(from) ? "arith.extsi" : "arith.extui";
  return convert(fromWidth > toWidth ? "arith.trunci" : widen, from, type);
}

}  // namespace fl::codegen::mlir
