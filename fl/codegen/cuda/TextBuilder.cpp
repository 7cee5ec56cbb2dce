#include "fl/codegen/cuda/TextBuilder.h"

#include <cmath>
#include <cstdio>

namespace fl::codegen::cuda {

using V = TextValue;

namespace {

std::string hexadecimal(uint64_t bits) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(bits));
  return text;
}

// Short numbers are written as people do, others in hexadecimal, which loses no bit.
std::string realLiteral(double value, dtype type) {
  constexpr double kShort = 1e6;
  const bool isZero = value == 0 && !std::signbit(value);
  const bool isShort = isZero || (value != 0 && std::fabs(value) < kShort);
  char text[64];
  std::snprintf(text, sizeof(text), isShort && value == std::trunc(value) ? "%.1f" : "%a", value);
  return text + std::string(type == dtype::f32 ? "f" : "");
}

}  // namespace

std::string literal(const Number& number) {
  const std::string type = dtypeToString(number.type());
  if (number.type() == dtype::f16 || number.type() == dtype::bf16) {
    return type + "(" + hexadecimal(number.bits()) + ")";
  }
  if (isFloating(number.type())) {
    const double value = number.toDouble();
    if (std::isfinite(value)) return realLiteral(value, number.type());
    const char* word = number.type() == dtype::f64 ? "s64" : "s32";
    return std::string("fromBits(") + word + "(" + hexadecimal(number.bits()) + "))";
  }
  const bool isShort = number.bits() < 1000000;
  const std::string digits = isShort ? std::to_string(number.bits()) : hexadecimal(number.bits());
  return type + "(" + digits + ")";
}

V TextBuilder::define(dtype type, const std::string& expression) {
  const V result{newName(), type};
  code_.line("const ", type, " ", result.text, " = ", expression, ";");
  return result;
}

V TextBuilder::mask(const std::string& expression) {
  const V result{newName(), dtype::b8, true};
  code_.line("const bool ", result.text, " = ", expression, ";");
  return result;
}

std::string TextBuilder::variable(const V& x) {
  const std::string name = newName();
  code_.line(x.type, " ", name, " = ", bytes(x).text, ";");
  return name;
}

V TextBuilder::bytes(const V& x) { return x.isMask ? V{"b8(" + x.text + ")", dtype::b8} : x; }

V TextBuilder::real(const V& like, double number) {
  return {literal(Number::fromDouble(number, like.type)), like.type};
}

V TextBuilder::integer(const V& like, int64_t number) {
  if (isFloat(like)) return real(like, static_cast<double>(number));
  const uint64_t all = ~uint64_t{0} >> (64 - width(like));
  return {literal(Number(like.type, static_cast<uint64_t>(number) & all)), like.type};
}

V TextBuilder::infix(const char* op, const V& x, const V& y) {
  return define(x.type, x.text + " " + op + " " + y.text);
}

V TextBuilder::call(const std::string& function, const V& x, const std::vector<V>& more) {
  std::string args = x.text;
  for (const V& each : more) args += ", " + each.text;
  return define(x.type, function + "(" + args + ")");
}

V TextBuilder::arithmetic(const char* ifFloat, const char* ifInteger, const V& x, const V& y) {
  return isFloat(x) ? infix(ifFloat, x, y) : call(ifInteger, bytes(x), {bytes(y)});
}

V TextBuilder::compare(const char* op, const V& x, const V& y) {
  return mask(bytes(x).text + " " + op + " " + bytes(y).text);
}

V TextBuilder::select(const V& condition, V x, V y) {
  const std::string choice = truth(condition) + " ? ";
  if (x.isMask && y.isMask) return mask(choice + x.text + " : " + y.text);
  return define(x.type, choice + bytes(x).text + " : " + bytes(y).text);
}

V TextBuilder::rarely(const V& mask, const std::function<V()>& usual,
                      const std::function<V()>& rare) {
  const std::string name = newName();
  dtype type = dtype::f32;
  CodeText outer(code_.depth() + 1);
  std::swap(code_, outer);
  const auto assignment = [&](const std::function<V()>& value) {
    const V result = value();
    type = result.type;
    code_.line(name, " = ", bytes(result).text, ";");
    return code_.take();
  };
  const std::string usualLines = assignment(usual), rareLines = assignment(rare);
  std::swap(code_, outer);
  code_.line(type, " ", name, ";");
  code_.open("if (", truth(mask), ")");
  code_.append(rareLines);
  code_.close();
  code_.open("else");
  code_.append(usualLines);
  code_.close();
  return {name, type};
}

// The rule stands at Cast in fl/ir/Ops.def.
V TextBuilder::cast(const V& x, dtype type) {
  const std::string to = dtypeToString(type);
  if (x.type == type) return x;
  if (x.type == dtype::f16) return cast(define(dtype::f32, "widenHalf(" + x.text + ")"), type);
  if (x.type == dtype::bf16) return cast(define(dtype::f32, "widenBfloat16(" + x.text + ")"), type);
  if (type == dtype::b8) return ne(x, integer(x, 0));
  if (type == dtype::f16) return define(type, "narrowToHalf(" + cast(x, dtype::f32).text + ")");
  if (type == dtype::bf16) {
    return define(type, "narrowToBfloat16(" + cast(x, dtype::f32).text + ")");
  }
  const bool saturates = isFloat(x) && !isFloating(type);
  return define(type, (saturates ? "saturate<" + to + ">(" : to + "(") + x.text + ")");
}

}  // namespace fl::codegen::cuda
