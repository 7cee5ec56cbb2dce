#include "fl/codegen/cuda/Functions.h"

#include "fl/ir/Philox.h"

namespace fl::codegen::cuda {
namespace {

using ir::Op;
using Values = std::vector<TextValue>;

TextValue drawn(TextBuilder& b, dtype type, const Values& args) {
  const auto& [seed, offset, index] = std::tie(args[0], args[1], args[2]);
  return type == dtype::f64   ? ir::vm::philoxNumber<dtype::f64>(b, seed, offset, index)
         : type == dtype::u32 ? ir::vm::philoxNumber<dtype::u32>(b, seed, offset, index)
                              : ir::vm::philoxNumber<dtype::f32>(b, seed, offset, index);
}

TextValue meaningOf(TextBuilder& b, Op op, const Values& args) {
  const TextValue &x = args[0], &y = args[args.size() > 1 ? 1 : 0],
                  &z = args[args.size() > 2 ? 2 : 0];
  TextValue result;
  ir::withMeaning(op, [&](auto meaning) { result = meaning.apply(b, x, y, z); });
  return result;
}

}  // namespace

void Functions::define(const std::string& name, dtype result, const std::vector<dtype>& args,
                       const std::function<TextValue(TextBuilder&, const Values&)>& body) {
  if (!names_.insert(name).second) return;
  Values parameters;
  std::string declared;
  for (dtype type : args) {
    parameters.push_back({std::string(1, static_cast<char>('x' + parameters.size())), type});
    declared += detail::concat(declared.empty() ? "" : ", ", type, " ", parameters.back().text);
  }
  text_.open("static __device__ ", result, " ", name, "(", declared, ")");
  TextBuilder builder(text_);
  text_.line("return ", builder.bytes(body(builder, parameters)).text, ";");
  text_.close();
}

std::string Functions::ofApply(const ir::KernelValue& value, const std::vector<dtype>& args) {
  if (value.op == Op::Cast) return ofCast(args[0], value.type);
  const bool draws = drawsNumber(value), isNormal = value.op == Op::Random && !draws;
  const dtype type = draws ? value.type : args.back();
  const std::string name = detail::concat(ir::opName(value.op),
                                          isNormal        ? "n"
                                          : value.isShort ? "_short"
                                                          : "",
                                          "_", type);
  define(name, value.type, args, [&](TextBuilder& b, const Values& parameters) {
    b.setShort(value.isShort);
    return draws      ? drawn(b, value.type, parameters)
           : isNormal ? ir::vm::normalNumber(b, parameters[0], parameters[1])
                      : meaningOf(b, value.op, parameters);
  });
  return name;
}

std::string Functions::ofReduce(Op op, dtype type) {
  const std::string name = detail::concat(ir::opName(op), "_", type);
  define(name, type, {type, type},
         [&](TextBuilder& b, const Values& args) { return meaningOf(b, op, args); });
  return name;
}

std::string Functions::ofCast(dtype from, dtype to) {
  const std::string name = detail::concat(from, "_to_", to);
  define(name, to, {from}, [&](TextBuilder& b, const Values& args) { return b.cast(args[0], to); });
  return name;
}

}  // namespace fl::codegen::cuda
