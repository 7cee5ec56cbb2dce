#include "fl/ir/Op.h"

#include <array>
#include <limits>
#include <unordered_map>

#include "fl/base/Error.h"

namespace fl::ir {
namespace {

// What each kind must state; a row that leaves it out does not compile.
consteval OpInfo checked(OpInfo info) {
  switch (info.kind) {
    case Kind::Unary:
    case Kind::Cast:
    case Kind::View:
      if (info.arity == 0) info.arity = 1;
      break;
    case Kind::Binary:
      info.arity = 2;
      break;
    case Kind::Select:
      info.arity = 3;
      break;
    case Kind::Reduce:
      info.arity = 1;
      if (info.init == Init::None) throw "a reduction states its initial value";
      break;
    case Kind::Source:
      break;
    default:
      if (info.arity == 0) throw "this kind states its arity";
  }
  return info;
}

constexpr std::array<OpInfo, kOpCount> kOps = {{
#define FL_OP(Name, name_, kind_, meaning, ...) \
  checked(OpInfo{.op = Op::Name, .name = #name_, .kind = Kind::kind_ __VA_OPT__(, ) __VA_ARGS__}),
#include "fl/ir/Ops.def"
#undef FL_OP
}};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

}  // namespace

const OpInfo& opInfo(Op op) { return kOps[static_cast<int>(op)]; }

bool isElementwise(Op op) {
  const Kind kind = opKind(op);
  return kind == Kind::Unary || kind == Kind::Binary || kind == Kind::Select || kind == Kind::Cast;
}

bool findOp(const std::string& name, Op* op) {
  static const auto& index = *[] {
    auto* map = new std::unordered_map<std::string, Op>();
    for (const OpInfo& info : kOps) map->emplace(info.name, info.op);
    return map;
  }();
  const auto found = index.find(name);
  if (found == index.end()) return false;
  *op = found->second;
  return true;
}

const std::vector<std::string>& attrNames(Op op) {
  static const auto& names = *[] {
    auto* table = new std::array<std::vector<std::string>, kOpCount>();
    for (const OpInfo& info : kOps) (*table)[static_cast<int>(info.op)] = split(info.attrs);
    return table;
  }();
  return names[static_cast<int>(op)];
}

Number reduceInit(Op op, dtype type) {
  const Init init = opInfo(op).init;
  if (init == Init::Zero) return Number::fromSigned(0, type);
  FL_INTERNAL_CHECK(init != Init::None, opName(op));
  const bool lowest = init == Init::Lowest;
  return dispatchType(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>) {
      const T value = lowest ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
      return type == dtype::b8 ? Number(type, static_cast<uint8_t>(value))
                               : Number::of(value).cast(type);
    } else {
      const double infinity = std::numeric_limits<double>::infinity();
      return Number::fromDouble(lowest ? -infinity : infinity, type);
    }
  });
}

}  // namespace fl::ir
