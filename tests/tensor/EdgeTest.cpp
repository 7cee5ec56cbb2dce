// Special values through every elementwise operator and every cast, alone and fused between two
// other operators, at every place of a vector: EdgeRows.h states what must come out.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <optional>

#include "fl/runtime/Counters.h"
#include "tests/tensor/EdgeRows.h"

namespace fl::testing {
namespace {

using ir::Kind;
using ir::Op;

// The largest unrolled body of any instruction set, some whole vectors, and a tail.
constexpr size_t kTail = 5;
constexpr size_t kLength = 256 + 3 * 16 + kTail;
constexpr int kShownFailures = 8;

using Tensors = std::vector<Tensor>;

// Operands of one element; Select has a b8 in front.
using Tuple = std::vector<Scalar>;

// One operator at one dtype. `want` has an element for each tuple.
struct Case {
  std::string name;
  std::function<Tensor(const Tensors&)> apply;
  std::vector<Tuple> tuples;
  std::vector<Scalar> want;
  bool approximated = false;
  bool oneKernel = true;  // one launch, also between two other operators
};

// Runs a case over windows that bring every tuple into the tail and into the body.
class CaseRunner {
 public:
  explicit CaseRunner(const Case& c) : case_(c), first_(c.tuples.size()) {
    for (size_t i = 0; i < c.tuples[0].size(); ++i) {
      types_.push_back(c.tuples[0][i].type);
      std::vector<uint64_t>& column = columns_.emplace_back();
      for (const Tuple& tuple : c.tuples) {
        column.push_back(encode(tuple[i]));
      }
    }
  }

  void run(bool fused) {
    const size_t count = case_.tuples.size();
    for (size_t start = 0; start < count; start += kTail) {
      Tensors operands;
      for (size_t i = 0; i < columns_.size(); ++i) {
        operands.push_back(makeTensor(columns_[i], types_[i], start, kLength));
      }
      const uint64_t launches = runtime::counters().kernelLaunches;
      const Tensor result = fused ? applyFused(operands) : case_.apply(operands);
      const std::vector<uint64_t> bits = bitsOf(result);
      if (case_.oneKernel) {
        expectOneKernel(launches);
      }
      for (size_t i = 0; i < kLength; ++i) {
        check((start + i) % count, decode(bits[i], result.type()), i, fused);
      }
    }
  }

 private:
  Tensor applyFused(Tensors operands) const {
    for (Tensor& operand : operands) {
      operand = timesOne(operand);
    }
    return whereTrue(case_.apply(operands));
  }

  void check(size_t tuple, const Scalar& got, size_t place, bool fused) {
    std::optional<Scalar>& first = first_[tuple];
    if (!first) {
      first = got;
      if (!isRight(tuple, got)) {
        fail(tuple, got, place, fused, "the expected value");
      }
    } else if (!matches(got, *first)) {
      fail(tuple, got, place, fused, "the same bits as elsewhere, " + toString(*first));
    }
  }

  bool isRight(size_t tuple, const Scalar& got) const {
    return matches(got, case_.want[tuple], case_.approximated);
  }

  void fail(size_t tuple, const Scalar& got, size_t place, bool fused, const std::string& rule) {
    if (++failures_ > kShownFailures) {
      return;
    }
    std::string operands;
    for (const Scalar& operand : case_.tuples[tuple]) {
      operands += (operands.empty() ? "" : ", ") + toString(operand);
    }
    ADD_FAILURE() << case_.name << "(" << operands << ") is " << toString(got) << " of " << got.type
                  << ", not " << rule << "; expected " << toString(case_.want[tuple])
                  << "; element " << place << " of " << kLength << (fused ? ", fused" : ", alone");
  }

  const Case& case_;
  std::vector<dtype> types_;
  std::vector<std::vector<uint64_t>> columns_;
  std::vector<std::optional<Scalar>> first_;
  int failures_ = 0;
};

void runCase(const Case& c) {
  SCOPED_TRACE(c.name);
  CaseRunner runner(c);
  runner.run(false);
  runner.run(true);
}

// All pairs of special values, or each alone.
std::vector<Tuple> tuplesOf(Kind kind, dtype type) {
  std::vector<Tuple> tuples;
  const std::vector<Scalar> specials = specialsOf(type);
  for (const Scalar& x : specials) {
    if (kind == Kind::Unary) {
      tuples.push_back({x});
      continue;
    }
    for (const Scalar& y : specials) {
      if (kind == Kind::Binary) {
        tuples.push_back({x, y});
      } else {
        tuples.push_back({wholeScalar(0, dtype::b8), x, y});
        tuples.push_back({wholeScalar(1, dtype::b8), x, y});
      }
    }
  }
  return tuples;
}

template <typename T>
Operands<T> operandsOf(const Tuple& tuple) {
  std::array<T, 3> values{};
  for (size_t i = 0; i < tuple.size(); ++i) {
    values[i] =
        isFloating(tuple[i].type) ? static_cast<T>(tuple[i].real) : static_cast<T>(tuple[i].whole);
  }
  return {values[0], values[1], values[2], widthOf(tuple.back().type)};
}

Scalar expected(Op op, const EdgeRow& row, const Tuple& tuple) {
  const dtype type = tuple.back().type;
  const bool isMask = ir::opInfo(op).result == ir::Result::Bool;
  const dtype result = isMask ? dtype::b8 : type;
  if (!isFloating(type)) {
    return wholeScalar(row.whole(operandsOf<Whole>(tuple)), result);
  }
  const double value = row.real(operandsOf<double>(tuple));
  return isMask ? wholeScalar(static_cast<Whole>(value), result) : realScalar(value, result);
}

Case caseOf(Op op, const EdgeRow& row, dtype type) {
  Case c{.name = row.name + " of " + dtypeToString(type),
         .apply = row.apply,
         .tuples = tuplesOf(ir::opKind(op), type),
         .approximated = row.accuracy == EdgeRow::Approximated};
  for (const Tuple& tuple : c.tuples) {
    c.want.push_back(expected(op, row, tuple));
  }
  return c;
}

Tensor numberOf(const Scalar& value) {
  if (isFloating(value.type)) {
    return fromScalar(value.real, value.type);
  }
  return isSigned(value.type)
             ? fromScalar(static_cast<long long>(value.whole), value.type)
             : fromScalar(static_cast<unsigned long long>(value.whole), value.type);
}

// Every special value as a number on the right and as one broadcast element on the left.
void runUniform(Op op, const EdgeRow& row, dtype type) {
  for (const Scalar& fixed : specialsOf(type)) {
    if (type == dtype::b8 && fixed.whole != 0 && fixed.whole != 1) {
      continue;  // no number of b8
    }
    const std::string name = row.name + " of " + dtypeToString(type) + " and " + toString(fixed);
    Case left{name, [&](const Tensors& v) {
                return row.apply({makeTensor({encode(fixed)}, type, 0, 1), v[0]});
              }};
    Case right{name, [&](const Tensors& v) { return row.apply({v[0], numberOf(fixed)}); }};
    for (Case* c : {&left, &right}) {
      c->approximated = row.accuracy == EdgeRow::Approximated;
      c->tuples = tuplesOf(Kind::Unary, type);
      for (const Tuple& x : c->tuples) {
        c->want.push_back(expected(op, row, c == &left ? Tuple{fixed, x[0]} : Tuple{x[0], fixed}));
      }
      runCase(*c);
    }
  }
}

std::vector<Op> opsWhere(bool (*holds)(Op)) {
  std::vector<Op> ops;
  for (int i = 0; i < ir::kOpCount; ++i) {
    if (holds(static_cast<Op>(i))) {
      ops.push_back(static_cast<Op>(i));
    }
  }
  return ops;
}

bool hasRow(Op op) { return ir::isElementwise(op) && ir::opKind(op) != Kind::Cast; }

class ElementwiseEdges : public ::testing::TestWithParam<Op> {};

// Runs for every row of the op table; one without expected results fails.
TEST_P(ElementwiseEdges, EveryDtype) {
  const Op op = GetParam();
  const EdgeRow* row = findEdgeRow(op);
  ASSERT_NE(row, nullptr) << "add what " << ir::opName(op) << " must give to EdgeRows.cpp";
  const ir::Types types = ir::opInfo(op).types;
  ASSERT_EQ(static_cast<bool>(row->real), types != ir::Types::Integer);
  ASSERT_EQ(static_cast<bool>(row->whole), types != ir::Types::Float);
  for (dtype type : allTypes()) {
    if (isFloating(type) ? row->real != nullptr : row->whole != nullptr) {
      runCase(caseOf(op, *row, type));
      if (ir::opKind(op) == Kind::Binary) {
        runUniform(op, *row, type);
      }
    }
  }
}

std::string opOf(const ::testing::TestParamInfo<Op>& info) { return ir::opName(info.param); }

INSTANTIATE_TEST_SUITE_P(Edge, ElementwiseEdges, ::testing::ValuesIn(opsWhere(hasRow)), opOf);

TEST(Edges, EveryElementwiseKindIsTested) {
  for (Op op : opsWhere(ir::isElementwise)) {
    EXPECT_TRUE(op == Op::Cast || findEdgeRow(op)) << ir::opName(op);
  }
}

class CastEdges : public ::testing::TestWithParam<dtype> {};

TEST_P(CastEdges, ToEveryDtype) {
  const dtype from = GetParam();
  for (dtype to : allTypes()) {
    if (to == from) {
      continue;
    }
    Case c{.name = "astype " + dtypeToString(to) + " of " + dtypeToString(from),
           .apply = [to](const Tensors& operands) { return operands[0].astype(to); }};
    for (const Scalar& value : castOperandsOf(from)) {
      c.tuples.push_back({value});
      c.want.push_back(castScalar(value, to));
    }
    runCase(c);
  }
}

std::string dtypeOf(const ::testing::TestParamInfo<dtype>& info) {
  return dtypeToString(info.param);
}

INSTANTIATE_TEST_SUITE_P(Edge, CastEdges, ::testing::ValuesIn(allTypes()), dtypeOf);

// power with a number rewrites some exponents.
TEST(Edges, PowerOfANumber) {
  for (dtype type : floatTypes()) {
    for (double exponent : {2.0, 3.0, 0.5, -1.0, 0.0, 1.0, -2.0}) {
      Case c{.name = "power " + std::to_string(exponent) + " of " + dtypeToString(type),
             .apply =
                 [=](const Tensors& operands) {
                   return power(operands[0], exponent).astype(operands[0].type());
                 },
             .tuples = tuplesOf(Kind::Unary, type),
             .approximated = true,
             .oneKernel = false};  // the number is f32, and f64 converts it first
      for (const Tuple& tuple : c.tuples) {
        c.want.push_back(realScalar(std::pow(tuple[0].real, exponent), type));
      }
      runCase(c);
    }
  }
}

}  // namespace
}  // namespace fl::testing
