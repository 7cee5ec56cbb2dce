#include "tests/tensor/Misuse.h"

#include <algorithm>
#include <array>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "fl/base/Error.h"
#include "fl/ir/Op.h"
#include "tests/ExactTypes.h"

namespace fl::testing {
namespace {

using Kinds = std::set<MisuseKind>;

struct Row {
  Kinds needed;                             // by its signatures
  std::map<MisuseKind, std::string> taken;  // with the reason
  std::map<MisuseKind, int> filled;         // how often
};

std::map<std::string, Row>& table() {
  static auto& rows = *new std::map<std::string, Row>();
  return rows;
}

// ---- What a signature says ----

// "fl::detail::conv2d" is a form of "conv2d", "Tensor::host<int>" of "host".
std::string rowOfFunction(std::string name) {
  std::erase_if(name, [](char c) { return c == '(' || c == ')' || c == ' '; });
  for (const std::string prefix : {"fl::", "detail::", "Tensor::"}) {
    if (name.starts_with(prefix)) name = name.substr(prefix.size());
  }
  if (name == "operator") return "operator()";
  return name.find("operator") == std::string::npos ? name.substr(0, name.find('<')) : name;
}

// The parameters' types in "R (C::*)(A, B) const".
std::vector<std::string> parametersOf(const std::string& type) {
  const size_t begin = type.find("*)(") + 3, end = type.rfind(')');
  std::vector<std::string> parameters(1);
  int depth = 0;
  for (size_t i = begin; i < end; ++i) {
    const char c = type[i];
    depth += c == '<' || c == '(' ? 1 : c == '>' || c == ')' ? -1 : 0;
    if (c == ',' && depth == 0) {
      parameters.emplace_back();
    } else if (c != ' ' || !parameters.back().empty()) {
      parameters.back() += c;
    }
  }
  return parameters;
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// What can be wrong about arguments of this type, beside tensors; `operands` are how many of these
// there are.
Kinds kindsOf(const std::string& type, int operands) {
  using enum MisuseKind;
  const bool number = type.ends_with("int") || type.ends_with("double") ||
                      type.ends_with("float") || type.ends_with("long");
  if (contains(type, "*")) return {Null};
  if (contains(type, "Shape")) return {NegativeSize, TooLarge};
  if (contains(type, "Index")) return {BadIndex, IndexInData};
  if (contains(type, "pair")) return {NegativeSize};
  if (type == "Axes") return {AxisAbove, AxisBelow, AxisTwice};
  if (type == "const Dim") {
    return operands > 0 ? Kinds{AxisAbove, AxisBelow} : Kinds{NegativeSize, TooLarge};
  }
  if (type == "const unsigned" || type == "unsigned") return {AxisAbove};
  if (type == "const size_t") return {operands > 0 ? AxisAbove : Value};
  if (type == "const dtype" || type == "dtype") return {NoDtype};
  for (const char* chosen : {"Mode", "PadType", "MatrixProperty", "StorageType"}) {
    if (contains(type, chosen)) return {Value};
  }
  return number || contains(type, "string") ? Kinds{Value} : Kinds{};
}

Kinds kindsOf(const std::string& name, const std::string& type) {
  using enum MisuseKind;
  const std::vector<std::string> parameters = parametersOf(type);
  int operands = contains(type, "(Tensor::*)") ? 1 : 0;
  for (const std::string& each : parameters) {
    operands += each == "T" ? 1 : each == "const std::vector<Tensor>&" ? 2 : 0;
  }
  Kinds kinds;
  if (operands > 0) kinds.insert({Rank, Dtype, Empty});
  if (operands > 1) kinds.insert({Shapes, DtypesDiffer});
  const bool isAlong = operands > 0 || name == "arange";  // which has an axis of a shape
  for (const std::string& each : parameters) kinds.merge(kindsOf(each, isAlong));
  return kinds;
}

// Functions of other classes have their tests in tests/base, tests/tensor/DeviceTest.cpp and
// tests/runtime.
bool noteSignature(const char* function, const char* type) {
  const std::string name = rowOfFunction(function);
  if (!contains(name, "::")) table()[name].needed.merge(kindsOf(name, type));
  return true;
}

}  // namespace

#undef FL_SIGNATURE
#undef FL_METHOD
#define FL_JOIN_NAMES(x, y) x##y
#define FL_JOIN(x, y) FL_JOIN_NAMES(x, y)
#define FL_SIGNATURE(name, ...)                                     \
  [[maybe_unused]] static const bool FL_JOIN(kNoted, __COUNTER__) = \
      noteSignature(#name, #__VA_ARGS__)
#define FL_METHOD FL_SIGNATURE

}  // namespace fl::testing

#include "tests/tensor/Signatures.h"

namespace fl::testing {
namespace {

// Constructors have no address.
[[maybe_unused]] const bool kConstructorsNoted =
    noteSignature("Tensor", "(*)(const Shape&, dtype)") &&
    noteSignature("Tensor", "(*)(std::unique_ptr<TensorAdapterBase>*)") &&
    noteSignature("Tensor", "(*)(Dim, Dim, T, T, T, StorageType)");

// ---- What functions take ----

struct Taken {
  Kinds kinds;
  std::string functions;
  const char* reason;
};

using enum MisuseKind;

std::vector<Taken> tableTaken() {
  std::string unary, binary, anyDtype, reductions;
  const auto addBinary = [&](const std::string& name, ir::Op op) {
    binary += name + " ";
    anyDtype += ir::opInfo(op).types == ir::Types::Integer ? "" : name + " ";
  };
#define FL_UNARY(Name, name) unary += #name " ";
#define FL_BINARY(Name, name) addBinary(#name, ir::Op::Name);
#define FL_REDUCE(Name, name) reductions += #name " ";
#include "fl/tensor/Functions.def"
#define FL_OPERATOR(name, op) \
  if (ir::Op found; ir::findOp(#name, &found)) addBinary("operator" #op, found);
  FL_FOR_EACH_BINARY_OPERATOR(FL_OPERATOR)
#undef FL_OPERATOR
  const std::string order = "sort argsort topk cumsum flip roll ";
  const std::string extremes = "min max argmin argmax ";
  reductions += "mean var std norm countNonzero any all ";
  return {
      {{Rank, Dtype, Empty}, unary + "abs sigmoid operator!", "of each element alone"},
      {{Rank, Empty},
       binary + "clip where",
       "ranks broadcast, and nothing has a result of nothing"},
      {{Dtype}, anyDtype + "clip", "every dtype is computed with, floats for functions of floats"},
      {{DtypesDiffer}, binary + "clip", "operands meet in their common dtype"},
      {{Rank, Dtype}, reductions + order + extremes + "median", "along axes of any tensor"},
      {{Empty}, reductions, "of no elements: 0, NaN, or the least that holds for none"},
      {{Empty},
       "sort argsort cumsum flip roll tril triu reshape transpose tile nonzero concatenate "
       "matmul",
       "the result has no elements, or sums of none"},
      {{Dtype},
       "tril triu reshape transpose tile nonzero concatenate pad matmul",
       "elements are moved, or computed in their dtype"},
      {{Rank}, "reshape tile nonzero concatenate pad", "dimensions that are missing are 1"},
  };
}

std::vector<Taken> otherTaken() {
  return {
      {{NegativeSize, TooLarge}, "transpose", "its Shape names axes"},
      {{Value}, "roll norm", "any number of places, any power"},
      {{Value}, "setSeed", "any seed"},
      {{Shapes, Rank, Dtype, DtypesDiffer, Empty, Value}, "allClose", "says no"},
      {{Shapes, Rank, Dtype, DtypesDiffer, Empty},
       "areTensorTypesEqual areBackendsEqual",
       "says no"},
      {{Rank, Dtype, Empty}, "print isInvalidArray toString", "of every tensor"},
      {{NegativeSize, TooLarge}, "operator<<", "any Shape is printed"},
      {{NegativeSize, TooLarge}, "toTensor", "what makes a value is the given type's own"},
      {{Shapes, Rank, Dtype, DtypesDiffer, Empty}, "relativeSync", "looks at no element"},
      {{Null}, "getMemMgrInfo setMemMgrLogStream", "null is no stream, which is written to"},
      {{Null}, "withTensorType", "a function to call"},
      {{Rank, Dtype, Empty},
       "copy shape location elements dim ndim isEmpty hasAdapter bytes type isSparse strides "
       "stream "
       "astype flatten asContiguousTensor backendType getAdapter backend unlock isLocked "
       "isContiguous setContext getContext",
       "of every tensor"},
      {{Null}, "setContext", "null is no context"},
      {{Rank, Dtype, Empty},
       "operator() flat",
       "any tensor is indexed; what is empty has no index"},
      {{Shapes, DtypesDiffer}, "operator()", "an index is flattened, and of any dtype"},
      {{Rank}, "scalar asScalar device host toHostVector", "elements in a line"},
      {{Dtype}, "asScalar", "casts"},
      {{Empty}, "device host toHostVector", "no memory for no elements"},
      {{Null}, "device", "where the pointer is put, as any T&"},
      {{Rank, Dtype, Empty},
       "operator= operator+= operator-= operator*= operator/=",
       "any tensor is assigned to"},
      {{DtypesDiffer},
       "operator= operator+= operator-= operator*= operator/=",
       "casts, or has the common dtype"},
      {{Rank, Empty}, "Tensor", "a sparse matrix's parts are flattened"},
      {{DtypesDiffer}, "Tensor", "each index has its dtype"},
      {{Rank}, "batchnorm batchnormBackward", "axes of any tensor"},
      {{Empty}, "batchnorm batchnormBackward", "means of no elements are NaN, weights may be none"},
      {{Value}, "batchnormBackward", "any epsilon"},
      {{DtypesDiffer}, "batchnormBackward", "operands meet in their common dtype"},
  };
}

// Ops that no public function has the name of.
const std::map<std::string, const char*> kUnnamedOps = {
    {"broadcast", "full() and what broadcasts"},
    {"slice", "indexing, flip()"},
    {"window", "definitions alone (fl/definitions)"},
    {"fold", "definitions alone"},
    {"contract", "definitions alone"},
    {"gather", "indexing"},
    {"update", "assignment"},
    {"scatter", "assignment"},
    {"scatterAdd", "assignment"},
    {"conv2dBackwardFilter", "conv2dBackwardFilterBias()"},
    {"attention", "fl::scaledDotProductAttention(), tests/autograd/AttentionTest.cpp"},
    {"attentionBackward", "its gradient"},
};

void take(const Taken& taken) {
  std::istringstream names(taken.functions);
  for (std::string name; names >> name;) {
    EXPECT_TRUE(table().contains(name)) << name << " is no function";
    for (MisuseKind kind : taken.kinds) table()[name].taken.emplace(kind, taken.reason);
  }
}

// ---- The table ----

const char* nameOf(MisuseKind kind) {
  static constexpr const char* kNames[] = {
#define FL_NAME(name) #name,
      FL_FOR_EACH_MISUSE(FL_NAME)
#undef FL_NAME
  };
  return kNames[static_cast<int>(kind)];
}

std::string wordsOf(absl::FunctionRef<void()> call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  } catch (const std::runtime_error& error) {  // of devices, as in Flashlight
    return error.what();
  } catch (const OutOfMemory& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("no error of the user's: ") + typeid(error).name() + ": " + error.what();
  }
  return "nothing is thrown";
}

}  // namespace

void expectMisuse(const std::string& row, MisuseKind kind, absl::FunctionRef<void()> call,
                  const std::string& message, const char* file, int line) {
  ++table()[row].filled[kind];
  const std::string got = wordsOf(call);
  const std::string want = message + ", at " + file + ":" + std::to_string(line);
  if (got != want) {
    ADD_FAILURE_AT(file, line) << nameOf(kind) << " of " << row << " throws\n  " << got
                               << "\nand not\n  " << want;
  }
}

std::string rowOfMessage(const std::string& message) {
  const std::string name = message.substr(0, message.find(':'));
  if (name == "index") return "operator()";
  if (name == "assignment") return "operator=";
  return name.ends_with("=") ? "operator" + name : name;
}

namespace {

// One of a row's cells; returns how it stands.
enum class Cell { None, Taken, Filled };
Cell checkCell(const std::string& name, const Row& row, MisuseKind kind) {
  const bool needed = row.needed.contains(kind), taken = row.taken.contains(kind);
  const bool filled = row.filled.contains(kind);
  EXPECT_TRUE(!needed || taken || filled)
      << name << ": no test of " << nameOf(kind) << ", nor a reason why it is no misuse";
  EXPECT_FALSE(taken && filled) << name << ": " << nameOf(kind) << " is an error, and taken";
  EXPECT_TRUE(needed || !taken) << name << ": " << nameOf(kind) << " is taken, but cannot be given";
  return filled ? Cell::Filled : taken ? Cell::Taken : Cell::None;
}

void printTaken() {
  std::map<std::pair<std::string, MisuseKind>, std::string> functions;
  for (const auto& [name, row] : table()) {
    for (const auto& [kind, reason] : row.taken) functions[{reason, kind}] += " " + name;
  }
  for (const auto& [cells, names] : functions) {
    std::cout << nameOf(cells.second) << " is no misuse (" << cells.first << "):" << names << "\n";
  }
}

void checkOps() {
#define FL_OP(Name, name, ...)                                    \
  EXPECT_NE(table().contains(#name), kUnnamedOps.contains(#name)) \
      << #name ": has no functions in Signatures.h or kUnnamedOps, or stands in both";
#include "fl/ir/Ops.def"
#undef FL_OP
#define FL_FUNCTION(Kind, Result, name, parameters, arguments) \
  EXPECT_TRUE(table().contains(#name)) << #name << " does not stand in Signatures.h";
#include "fl/tensor/Functions.def"
}

}  // namespace

void Misuse::TearDownTestSuite() {
  if (GTEST_FLAG_GET(filter) != "*") return;
  for (const auto& list : {tableTaken(), otherTaken()}) {
    for (const Taken& taken : list) take(taken);
  }
  checkOps();
  std::map<Cell, int> cells;
  int errors = 0, kinds = 0;
#define FL_COUNT(kind)                                         \
  ++kinds;                                                     \
  for (const auto& [name, row] : table()) {                    \
    ++cells[checkCell(name, row, MisuseKind::kind)];           \
    const auto filled = row.filled.find(MisuseKind::kind);     \
    errors += filled == row.filled.end() ? 0 : filled->second; \
  }
  FL_FOR_EACH_MISUSE(FL_COUNT)
#undef FL_COUNT
  printTaken();
  std::cout << table().size() << " functions x " << kinds
            << " kinds of misuse: " << cells[Cell::Filled] << " cells with " << errors
            << " errors, " << cells[Cell::Taken] << " where it is no misuse, " << cells[Cell::None]
            << " without such an argument\n";
}

}  // namespace fl::testing
