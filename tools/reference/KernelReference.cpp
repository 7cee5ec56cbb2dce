#include "tools/reference/KernelReference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <optional>
#include <type_traits>
#include <vector>

#include "fl/base/Error.h"

namespace fl::tools {
namespace {

using ir::Kernel;
using ir::KernelOperand;
using ir::KernelStage;
using ir::KernelValue;
using ir::Op;

template <typename T>
T valueOf(const Number& number) {
  T value;
  const uint64_t bits = number.bits();
  std::memcpy(static_cast<void*>(&value), &bits, sizeof(T));
  return value;
}

template <typename T>
Number numberOf(T value, dtype type) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return Number(type, bits);
}

Number boolean(bool value) { return numberOf(static_cast<char>(value), dtype::b8); }

Number castReference(const Number& x, dtype type) {
  const bool narrow = type == dtype::f16 || type == dtype::bf16;
  if (x.type() == type) {
    return x;
  }
  if (computeType(x.type()) != x.type()) {
    return castReference(Number::fromDouble(x.toDouble(), dtype::f32), type);
  }
  if (narrow && x.type() != dtype::f32) {
    return castReference(castReference(x, dtype::f32), type);
  }
  if (type == dtype::b8 || !isFloating(x.type()) || isFloating(type)) {
    return x.cast(type);
  }
  const double value = x.toDouble();
  const int bits = static_cast<int>(getTypeSize(type)) * 8 - isSigned(type);
  const double end = std::ldexp(1, bits);
  if (std::isnan(value)) {
    return Number(type, 0);
  }
  if (value >= end) {
    return Number(type, ~uint64_t{0} >> (64 - bits));
  }
  if (value < (isSigned(type) ? -end : 0)) {
    return isSigned(type) ? Number::fromSigned(static_cast<int64_t>(-end), type) : Number(type, 0);
  }
  return isSigned(type) ? Number::fromSigned(static_cast<int64_t>(value), type)
                        : Number::fromUnsigned(static_cast<uint64_t>(value), type);
}

template <typename T>
T floatReference(Op op, T x, T y) {
  switch (op) {
    case Op::Negative:
      return -x;
    case Op::Absolute:
      return std::fabs(x);
    case Op::Exp:
      return static_cast<T>(std::exp(static_cast<long double>(x)));
    case Op::Log:
      return static_cast<T>(std::log(static_cast<long double>(x)));
    case Op::Log1p:
      return static_cast<T>(std::log1p(static_cast<long double>(x)));
    case Op::Sin:
      return static_cast<T>(std::sin(static_cast<long double>(x)));
    case Op::Cos:
      return static_cast<T>(std::cos(static_cast<long double>(x)));
    case Op::Tanh:
      return static_cast<T>(std::tanh(static_cast<long double>(x)));
    case Op::Erf:
      return static_cast<T>(std::erf(static_cast<long double>(x)));
    case Op::Power:
      return static_cast<T>(std::pow(static_cast<long double>(x), y));
    case Op::Sqrt:
      return std::sqrt(x);
    case Op::Floor:
      return std::floor(x);
    case Op::Ceil:
      return std::ceil(x);
    case Op::Rint:
      return std::nearbyint(x);
    case Op::Sign:
      return x > 0 ? T(1) : x < 0 ? T(-1) : x;
    case Op::Add:
      return x + y;
    case Op::Sub:
      return x - y;
    case Op::Mul:
      return x * y;
    case Op::Div:
      return x / y;
    case Op::Mod:
      return std::fmod(x, y);
    default:
      FL_INTERNAL_CHECK(false, ir::opName(op));
  }
  return x;
}

template <typename T>
T integerReference(Op op, T x, T y) {
  using U = std::make_unsigned_t<T>;
  const auto wrap = [](__int128 value) { return static_cast<T>(static_cast<U>(value)); };
  const int width = 8 * sizeof(T);
  const bool countInRange = y >= 0 && static_cast<U>(y) < width;
  switch (op) {
    case Op::Negative:
      return wrap(-static_cast<__int128>(x));
    case Op::Absolute:
      return wrap(x < 0 ? -static_cast<__int128>(x) : x);
    case Op::Sign:
      return x > 0 ? T(1) : x < 0 ? wrap(-1) : T(0);
    case Op::Add:
      return wrap(static_cast<__int128>(x) + y);
    case Op::Sub:
      return wrap(static_cast<__int128>(x) - y);
    case Op::Mul:
      return wrap(static_cast<__int128>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y)));
    case Op::Div:
      return y == 0 ? T(0) : wrap(static_cast<__int128>(x) / y);
    case Op::Mod:
      return y == 0 ? T(0) : wrap(static_cast<__int128>(x) % y);
    case Op::BitwiseAnd:
      return x & y;
    case Op::BitwiseOr:
      return x | y;
    case Op::BitwiseXor:
      return x ^ y;
    case Op::LShift:
      return countInRange ? wrap(static_cast<__int128>(x) << y) : T(0);
    case Op::RShift:
      return static_cast<T>(x >> (countInRange ? static_cast<int>(y) : width - 1) >>
                            (countInRange || std::is_signed_v<T> ? 0 : 1));
    default:
      FL_INTERNAL_CHECK(false, ir::opName(op));
  }
  return x;
}

// Ops whose definition is the same for all types; nothing for others.
template <typename T>
std::optional<Number> commonReference(Op op, dtype type, T x, T y) {
  switch (op) {
    case Op::LogicalNot:
      return boolean(x == T(0));
    case Op::LogicalAnd:
      return boolean(x != T(0) && y != T(0));
    case Op::LogicalOr:
      return boolean(x != T(0) || y != T(0));
    case Op::IsNan:
      return boolean(x != x);
    case Op::IsInf:
      return boolean(std::isinf(static_cast<double>(x)));
    case Op::Eq:
      return boolean(x == y);
    case Op::Neq:
      return boolean(x != y);
    case Op::LessThan:
      return boolean(x < y);
    case Op::LessThanEqual:
      return boolean(x <= y);
    case Op::GreaterThan:
      return boolean(x > y);
    case Op::GreaterThanEqual:
      return boolean(x >= y);
    // Of equal numbers (0 and -0) the second; NaN if either is.
    case Op::Minimum:
    case Op::Amin:
      return numberOf(x != x || x < y ? x : y, type);
    case Op::Maximum:
    case Op::Amax:
      return numberOf(x != x || x > y ? x : y, type);
    default:
      return std::nullopt;
  }
}

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
void philox(uint32_t (&counter)[4], uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round, key0 += 0x9E3779B9u, key1 += 0xBB67AE85u) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * counter[2];
    const uint32_t next[] = {
        static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(p1),
        static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(p0)};
    std::copy(std::begin(next), std::end(next), std::begin(counter));
  }
}

// Word index % 4 of block index / 4 is a u32, or makes an f32 in (0, 1] of 24 bits; words
// 2 (index % 2) and the next of block index / 2 make an f64 in (0, 1] of 53.
Number randomReference(dtype type, const std::vector<Number>& args) {
  const uint64_t seed = args[0].bits(), offset = args[1].bits(), index = args[2].bits();
  const uint64_t block = type == dtype::f64 ? index / 2 : index / 4;
  uint32_t words[] = {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                      static_cast<uint32_t>(offset), static_cast<uint32_t>(offset >> 32)};
  philox(words, static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
  if (type == dtype::u32) {
    return Number::fromUnsigned(words[index % 4], type);
  }
  if (type == dtype::f32) {
    return Number::fromDouble(((words[index % 4] >> 8) + 1.0) / (1 << 24), type);
  }
  const uint64_t bits = uint64_t{words[index % 2 * 2]} << 32 | words[index % 2 * 2 + 1];
  return Number::fromDouble(static_cast<double>((bits >> 11) + 1) / (int64_t{1} << 53), type);
}

// Box and Muller's formula.
Number normalReference(dtype type, const std::vector<Number>& args) {
  const double radius = std::sqrt(-2 * std::log(args[0].toDouble()));
  return Number::fromDouble(radius * std::cos(2 * std::numbers::pi * args[1].toDouble()), type);
}

// Op `op` on numbers, giving one of `type`.
Number applyReference(Op op, dtype type, const std::vector<Number>& args) {
  if (op == Op::Cast) {
    return castReference(args[0], type);
  }
  if (op == Op::Random) {
    return args.size() == 3 ? randomReference(type, args) : normalReference(type, args);
  }
  if (op == Op::Where) {
    return args[0].bits() != 0 ? args[1] : args[2];
  }
  if (op == Op::Sum) {
    op = Op::Add;
  }
  return dispatchType(args[0].type(), [&](auto tag) -> Number {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_arithmetic_v<T>) {
      const T x = valueOf<T>(args[0]), y = valueOf<T>(args.size() > 1 ? args[1] : args[0]);
      if (const auto result = commonReference(op, type, x, y)) {
        return *result;
      }
      if constexpr (std::is_floating_point_v<T>) {
        return numberOf(floatReference(op, x, y), type);
      } else {
        return numberOf(integerReference(op, x, y), type);
      }
    }
    FL_INTERNAL_CHECK(false, "arithmetic on ", args[0].type());
  });
}

class Runner {
 public:
  Runner(const Kernel& kernel, const ir::KernelArgs& args)
      : kernel_(kernel), args_(args), index_(kernel_.rank) {}

  int64_t run(int64_t begin, int64_t end) {
    for (int64_t position = begin; position < end && badGather_ < 0; ++position) {
      int64_t rest = position;
      for (int axis = 0; axis < kernel_.rank; ++axis) {
        if (kernel_.isReduced(axis)) {
          continue;
        }
        index_[axis] = rest % args_.extents[axis];
        rest /= args_.extents[axis];
      }
      totals_.clear();
      for (const KernelStage& stage : kernel_.stages) {
        runStage(stage);
      }
    }
    return badGather_;
  }

 private:
  void runStage(const KernelStage& stage) {
    if (!stage.sweep) {
      return visit(stage);
    }
    std::vector<Number> totals;
    for (const auto& reduce : stage.reduces) {
      totals.push_back(ir::reduceInit(reduce.op, ir::totalType(reduce.op, typeOf(reduce))));
    }
    const int lowest = __builtin_ctz(kernel_.reduced);
    const int64_t length = args_.extents[lowest], turns = countTurns(lowest);
    const int64_t chunk = kernel_.rows() ? ir::kRowChunk : ir::kColumnChunk;
    const int64_t together = ir::turnsTogether(length, chunk);
    for (int64_t turn = 0; turn < turns; turn += together) {
      for (int64_t begin = 0; begin < length; begin += chunk) {
        const Part part{turn, std::min(turns, turn + together), begin,
                        std::min(length, begin + chunk)};
        const std::vector<Number> results =
            kernel_.rows() ? rowPart(stage, part) : columnPart(stage, part);
        for (size_t r = 0; r < totals.size(); ++r) {
          totals[r] = combine(stage.reduces[r], totals[r], results[r].cast(totals[r].type()));
        }
      }
    }
    for (size_t r = 0; r < totals.size(); ++r) {
      totals_.push_back(totals[r].cast(typeOf(stage.reduces[r])));
    }
  }

  // Turns and indices of the lowest reduced axis.
  struct Part {
    int64_t firstTurn, lastTurn;
    int64_t begin, end;
  };

  std::vector<Number> rowPart(const KernelStage& stage, const Part& part) {
    const int64_t length = part.end - part.begin, whole = length / 32 * 32;
    std::vector<std::vector<Number>> a, t;
    for (const auto& reduce : stage.reduces) {
      a.emplace_back(32, initial(reduce));
      t.emplace_back(16, initial(reduce));
    }
    visitPart(stage, part, 0, [&](int64_t i, size_t r, const Number& value) {
      Number& sum = i < whole ? a[r][i % 32] : t[r][(i - whole) % 16];
      sum = combine(stage.reduces[r], sum, value);
    });
    std::vector<Number> results;
    for (size_t r = 0; r < stage.reduces.size(); ++r) {
      const auto op = [&](Number x, Number y) { return combine(stage.reduces[r], x, y); };
      for (int l = 0; l < 16; ++l) {
        a[r][l] = op(op(a[r][l], a[r][l + 16]), t[r][l]);
      }
      for (int w = 8; w >= 1; w /= 2) {
        for (int l = 0; l < w; ++l) {
          a[r][l] = op(a[r][l], a[r][l + w]);
        }
      }
      results.push_back(a[r][0]);
    }
    return results;
  }

  std::vector<Number> columnPart(const KernelStage& stage, const Part& part) {
    std::vector<Number> results;
    for (const auto& reduce : stage.reduces) {
      results.push_back(initial(reduce));
    }
    visitPart(stage, part, __builtin_ctz(kernel_.reduced),
              [&](int64_t, size_t r, const Number& value) {
                results[r] = combine(stage.reduces[r], results[r], value);
              });
    return results;
  }

  // Calls take(i, r, value) with the values that reduction r takes, where i is the index of axis
  // `lowest` in the part.
  template <typename F>
  void visitPart(const KernelStage& stage, const Part& part, int lowest, F&& take) {
    for (int64_t turn = part.firstTurn; turn < part.lastTurn; ++turn) {
      int64_t rest = turn;
      for (int axis = lowest + 1; axis < kernel_.rank; ++axis) {
        if (kernel_.isReduced(axis)) {
          index_[axis] = rest % args_.extents[axis];
          rest /= args_.extents[axis];
        }
      }
      for (int64_t i = part.begin; i < part.end; ++i) {
        index_[lowest] = i;
        visit(stage);
        for (size_t r = 0; r < stage.reduces.size(); ++r) {
          take(i - part.begin, r, current_[stage.reduces[r].value]);
        }
      }
    }
  }

  int64_t countTurns(int lowest) const {
    int64_t turns = 1;
    for (int axis = lowest + 1; axis < kernel_.rank; ++axis) {
      turns *= kernel_.isReduced(axis) ? args_.extents[axis] : 1;
    }
    return turns;
  }

  // Computes all values that can be known and stores the stage's.
  void visit(const KernelStage& stage) {
    std::vector<bool> needed(kernel_.values.size());
    for (const auto& store : stage.stores) {
      needed[store.value] = true;
    }
    for (const auto& reduce : stage.reduces) {
      needed[reduce.value] = true;
    }
    for (size_t i = needed.size(); i-- > 0;) {
      for (int arg : kernel_.values[i].args) {
        needed[arg] = needed[arg] || needed[i];
      }
    }
    current_.assign(kernel_.values.size(), Number());
    for (size_t i = 0; i < needed.size(); ++i) {
      if (needed[i]) {
        current_[i] = evaluate(static_cast<int>(i));
      }
    }
    for (const auto& store : stage.stores) {
      const uint64_t bits = current_[store.value].bits();
      std::memcpy(elementOf(store.operand), &bits, getTypeSize(current_[store.value].type()));
    }
  }

  Number evaluate(int number) {
    const KernelValue& value = kernel_.values[number];
    switch (value.form) {
      case KernelValue::Form::Scalar:
        return Number(value.type, args_.scalars[value.index]);
      case KernelValue::Form::Total:
        return totals_.at(value.index);
      case KernelValue::Form::Load:
        return load(value.index);
      case KernelValue::Form::Gather:
        return gather(value, kernel_.gatherNumber(number));
      case KernelValue::Form::Apply:
        break;
    }
    std::vector<Number> args;
    for (int arg : value.args) {
      args.push_back(current_[arg]);
    }
    return applyReference(value.op, value.type, args);
  }

  Number gather(const KernelValue& value, int number) {
    const int64_t index = current_[value.args[1]].toInt(), bound = current_[value.args[2]].toInt();
    if (index >= 0 && index < bound) {
      return element(value.index, current_[value.args[0]].toInt());
    }
    if (badGather_ < 0) {
      badGather_ = number;
      *args_.badIndex = {index, bound};
    }
    return Number(value.type, 0);
  }

  Number load(int operand) {
    if (kernel_.operands[operand].role == KernelOperand::Role::Index) {
      const auto base = reinterpret_cast<int64_t>(args_.data[operand]);
      return Number::fromSigned(base + offset(operand), dtype::s64);
    }
    return element(operand, offset(operand));
  }
  Number element(int operand, int64_t offset) {
    const dtype type = kernel_.operands[operand].type;
    uint64_t bits = 0;
    std::memcpy(
        &bits,
        static_cast<char*>(args_.data[operand]) + offset * static_cast<int64_t>(getTypeSize(type)),
        getTypeSize(type));
    return Number(type, bits);
  }

  int64_t offset(int operand) const {
    int64_t offset = 0;
    for (int axis = 0; axis < kernel_.rank; ++axis) {
      offset += index_[axis] * args_.strides[operand * kernel_.rank + axis];
    }
    return offset;
  }
  char* elementOf(int operand) const {
    const auto size = static_cast<int64_t>(getTypeSize(kernel_.operands[operand].type));
    return static_cast<char*>(args_.data[operand]) + offset(operand) * size;
  }

  dtype typeOf(const KernelStage::Reduce& reduce) const {
    return kernel_.values[reduce.value].type;
  }
  Number initial(const KernelStage::Reduce& reduce) const {
    return ir::reduceInit(reduce.op, typeOf(reduce));
  }
  static Number combine(const KernelStage::Reduce& reduce, const Number& x, const Number& y) {
    return applyReference(reduce.op, x.type(), {x, y});
  }

  const Kernel& kernel_;
  const ir::KernelArgs& args_;
  int64_t badGather_ = -1;
  std::vector<int64_t> index_;
  std::vector<Number> totals_;
  std::vector<Number> current_;
};

}  // namespace

int64_t interpretKernel(const Kernel& kernel, const ir::KernelArgs& args, int64_t begin,
                        int64_t end) {
  return Runner(kernel, args).run(begin, end);
}

}  // namespace fl::tools
