// The op table as data: enum, kinds and facts of every operator. Ops.def holds the rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fl/base/Types.h"

namespace fl::ir {

enum class Op : uint8_t {
#define FL_OP(Name, ...) Name,
#include "fl/ir/Ops.def"
#undef FL_OP
};

inline constexpr int kOpCount = 0
#define FL_OP(...) +1
#include "fl/ir/Ops.def"
#undef FL_OP
    ;

enum class Kind : uint8_t {
  Source,
  Random,
  Unary,
  Binary,
  Select,
  Cast,
  View,
  Index,
  Join,
  Update,
  Reduce,
  Scan,
  Order,
  Contract,
  Library,
};

enum class Types : uint8_t { All, Float, Integer };
enum class Result : uint8_t { Same, Bool };
// The value that a reduction starts from.
enum class Init : uint8_t { None, Zero, Lowest, Highest };

struct OpInfo {
  Op op;
  const char* name;
  Kind kind;
  // Number of operands; -n means n or more. 0 stands for the kind's own number.
  int arity = 0;
  const char* attrs = "";
  Types types = Types::All;
  Result result = Result::Same;
  Init init = Init::None;
  bool commutes = false;
  bool normal = false;
  double lo = -4;
  double hi = 4;
  double ulp = 0;
  const char* doc = "";
};

const OpInfo& opInfo(Op op);
inline const char* opName(Op op) { return opInfo(op).name; }
inline Kind opKind(Op op) { return opInfo(op).kind; }
// True for the kinds whose result is a function of one element of each operand.
bool isElementwise(Op op);
// Finds an op by its text name; false if there is none.
bool findOp(const std::string& name, Op* op);
// The names in `attrs`, split; a trailing * or ? is kept.
const std::vector<std::string>& attrNames(Op op);

// The value a reduction of `op` over elements of `type` starts from.
Number reduceInit(Op op, dtype type);

}  // namespace fl::ir
