// Every row of the op table x device x dtype x layout against the oracle, the interpreter in
// double: values within the row's ulp, types, text, and the same bits fused and alone.
//
// A cell of the table is a small graph around one operator: views that lay the operands out, then
// the operator. OracleCases.h says what it is made of and which cells there are none of; the table
// is printed, and a cell that neither runs nor is skipped for a stated reason fails. Special values
// of the elementwise rows and reductions are EdgeTest.cpp's; here they go through all others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iomanip>
#include <map>
#include <random>

#include "fl/ir/Text.h"
#include "fl/runtime/Counters.h"
#include "fl/definitions/GraphRunner.h"
#include "tests/tensor/EdgeValues.h"
#include "tests/tensor/OracleCases.h"

namespace fl::testing {
namespace {

using ir::Kind;
using ir::Op;
using ir::ValueId;
using Role = CaseOperand::Role;
using Elements = std::vector<Scalar>;

struct Device {
  const char *backend, *name;
};
constexpr Device kDevices[] = {
    {"lazy", "cpu"}, {"eager", "cpu"}, {"lazy", "ref"}, {"lazy", "null"}};
constexpr Device kOracle = {"eager", "ref"};
constexpr int kShownFailures = 5;

// ---- Graphs ----

// A graph, and what each of its parameters holds.
struct Recorded {
  ir::Graph graph;
  std::vector<CaseOperand> sources;
};

class Recorder {
 public:
  Recorder(Op op, const OracleCase& c, dtype type, Layout layout, bool fused)
      : op_(op), case_(c), type_(type), layout_(layout), fused_(fused) {}

  Recorded record() {
    // Parameters come first: each operand's own, then the numbers of the views and neighbours.
    for (const CaseOperand& operand : case_.operands) {
      parameters_.push_back(parameter(operand, operandShape(operand)));
    }
    std::map<Dim, ValueId> starts;  // by extent, for axes that are read backwards
    if (layout_ == Layout::Sliced) {
      evenStarts_ = number(Role::Start, 1);
      for (const CaseOperand& operand : case_.operands) {
        for (int i = 1; isLaidOut(operand) && i < operand.shape.ndim(); i += 2) {
          starts.emplace(operand.shape[i], 0);
        }
      }
      for (auto& [extent, id] : starts) {
        id = number(Role::Start, extent);
      }
    }
    const ValueId one = fused_ ? number(Role::Fill, 1) : -1;
    const ValueId yes = fused_ ? parameter({Role::Condition, Shape(), 1}, Shape()) : -1;
    const ValueId other = fused_ ? number(Role::Fill, 0) : -1;
    std::vector<ValueId> operands;
    for (size_t i = 0; i < case_.operands.size(); ++i) {
      operands.push_back(laidOut(i, starts, one));
    }
    ValueId result = recorded_.graph.addNode(op_, operands, case_.attrs);
    if (fused_ && recorded_.graph.type(result).type == type_) {
      result = recorded_.graph.addNode(Op::Where, {yes, result, other}, {});
    }
    recorded_.graph.setResults({result});
    return std::move(recorded_);
  }

 private:
  static bool isLaidOut(const CaseOperand& operand) {
    return operand.role == Role::Values || operand.role == Role::Condition ||
           operand.role == Role::Indices;
  }

  ValueId parameter(CaseOperand source, const Shape& shape) {
    source.shape = shape;
    recorded_.sources.push_back(source);
    const bool isNumber = !isLaidOut(source) || (shape.ndim() == 0 && source.number != 0);
    return recorded_.graph.addParameter({{typeOf(source.role), shape}, isNumber});
  }
  ValueId number(Role role, Dim value) { return parameter({role, Shape(), value}, Shape()); }

  dtype typeOf(Role role) const {
    switch (role) {
      case Role::Condition:
        return dtype::b8;
      case Role::Indices:
      case Role::Start:
        return dtype::s64;
      case Role::Seed:
        return dtype::u64;
      default:
        return type_;
    }
  }

  // The shape in memory of what the layout turns into the operand's shape.
  Shape operandShape(const CaseOperand& operand) const {
    Shape shape = operand.shape;
    for (int i = 0; isLaidOut(operand) && i < shape.ndim(); ++i) {
      switch (layout_) {
        case Layout::Transposed:
          shape[i] = operand.shape[shape.ndim() - 1 - i];
          break;
        case Layout::Broadcast:
          shape[i] = i == broadcastAxis() ? 1 : operand.shape[i];
          break;
        case Layout::Sliced:
          shape[i] = i % 2 == 0 ? 2 * operand.shape[i] + 1 : operand.shape[i] + 1;
          break;
        default:
          break;
      }
    }
    return shape;
  }
  // Operands in turn repeat along their first, second ... dimension.
  int broadcastAxis() const { return static_cast<int>(parameters_.size()) % 3; }

  ValueId laidOut(size_t i, const std::map<Dim, ValueId>& starts, ValueId one) {
    const CaseOperand& operand = case_.operands[i];
    if (!isLaidOut(operand)) {
      return parameters_[i];
    }
    const ValueId view = viewOf(parameters_[i], operand.shape, starts);
    const bool isNeutral = fused_ && operand.role == Role::Values;
    return isNeutral ? recorded_.graph.addNode(Op::Mul, {view, one}, {}) : view;
  }

  ValueId viewOf(ValueId x, const Shape& shape, const std::map<Dim, ValueId>& starts) {
    const int rank = shape.ndim();
    std::vector<Dim> attrs;
    std::vector<ValueId> operands = {x};
    switch (layout_) {
      case Layout::Transposed:
        for (int i = 0; i < rank; ++i) {
          attrs.push_back(rank - 1 - i);
        }
        return recorded_.graph.addNode(Op::Transpose, operands, ir::Attrs(attrs));
      case Layout::Broadcast:
        return recorded_.graph.addNode(Op::Broadcast, operands, ir::Attrs(shape.get()));
      case Layout::Sliced:
        attrs = {rank};
        attrs.insert(attrs.end(), shape.get().begin(), shape.get().end());
        for (int i = 0; i < rank; ++i) {
          operands.push_back(i % 2 == 0 ? evenStarts_ : starts.at(shape[i]));
          attrs.push_back(i % 2 == 0 ? 2 : -1);
        }
        return recorded_.graph.addNode(Op::Slice, operands, ir::Attrs(attrs));
      default:
        return x;
    }
  }

  const Op op_;
  const OracleCase& case_;
  const dtype type_;
  const Layout layout_;
  const bool fused_;
  Recorded recorded_;
  std::vector<ValueId> parameters_;
  ValueId evenStarts_ = -1;
};

// print(parse(print(g))) is print(g), and the parsed graph is the graph.
void checkText(const ir::Graph& graph) {
  const std::string text = ir::printGraph(graph, "f");
  const ir::Graph parsed = ir::parseGraph(text);
  EXPECT_EQ(ir::printGraph(parsed, "f"), text);
  EXPECT_TRUE(parsed.sameStructure(graph)) << text;
}

// ---- Elements ----

bool isAttention(Op op) { return op == Op::Attention || op == Op::AttentionBackward; }

bool isAccumulating(Op op) {
  const Kind kind = ir::opKind(op);
  return op == Op::Sum || op == Op::ScatterAdd || op == Op::Fold || kind == Kind::Scan ||
         kind == Kind::Contract || kind == Kind::Library;
}

// Special values go where EdgeTest.cpp has no rows: all of them through what moves elements, one at
// a time, for which one layout is enough, through what adds them up. The exponential of a score in
// f32 is near the one in double for small scores only.
bool takesSpecials(Op op, Layout layout) {
  const bool elsewhere = ir::isElementwise(op) || ir::opKind(op) == Kind::Reduce ||
                         ir::opKind(op) == Kind::Source || ir::opKind(op) == Kind::Random;
  return !elsewhere && !isAttention(op) && (layout == Layout::Contiguous || !isAccumulating(op));
}

class Draw {
 public:
  Draw(Op op, dtype type) : info_(ir::opInfo(op)), type_(type), random_(29) {}

  // Elements of every parameter; `special` is put among the first one's.
  std::vector<Elements> all(const Recorded& recorded, const Scalar* special = nullptr) {
    std::vector<Elements> result;
    for (size_t i = 0; i < recorded.sources.size(); ++i) {
      const Dim count = recorded.graph.parameter(static_cast<ValueId>(i)).type.shape.elements();
      Elements& elements = result.emplace_back();
      for (Dim k = 0; k < count; ++k) {
        elements.push_back(one(recorded.sources[i]));
      }
      if (special && i == 0 && count > 0) {
        elements[random_() % elements.size()] = *special;
      }
    }
    return result;
  }

 private:
  Scalar one(const CaseOperand& source) {
    switch (source.role) {
      case Role::Condition:
        return wholeScalar(source.number != 0 || random_() % 2, dtype::b8);
      case Role::Indices:
        return wholeScalar(static_cast<Whole>(random_() % std::max<Dim>(source.number, 1)),
                           dtype::s64);
      case Role::Start:
        return wholeScalar(source.number, dtype::s64);
      case Role::Seed:
        return wholeScalar(source.number, dtype::u64);
      case Role::Fill:
        return isFloating(type_) ? realScalar(static_cast<double>(source.number), type_)
                                 : wholeScalar(source.number, type_);
      default:
        return value();
    }
  }

  // Floats where the row asks for them, some of them whole; integers small or of any size.
  Scalar value() {
    if (!isFloating(type_)) {
      const Whole small = static_cast<Whole>(random_() % 9) - 4;
      const bool any = random_() % 2 && type_ != dtype::b8;
      return wholeScalar(type_ == dtype::b8 ? small > 0
                         : any              ? static_cast<Whole>(random_())
                                            : small,
                         type_);
    }
    double x = std::uniform_real_distribution<double>(info_.lo, info_.hi)(random_);
    const double whole = std::nearbyint(x);
    return realScalar(random_() % 8 == 0 && whole >= info_.lo ? whole : x, type_);
  }

  const ir::OpInfo& info_;
  const dtype type_;
  std::mt19937_64 random_;
};

std::vector<uint64_t> bitsOf(const Elements& elements, dtype type, bool magnitudes) {
  std::vector<uint64_t> bits;
  for (Scalar element : elements) {
    if (isFloating(element.type)) {
      element = realScalar(magnitudes ? std::fabs(element.real) : element.real, type);
    }
    bits.push_back(encode(element));
  }
  return bits;
}

Elements run(const Recorded& recorded, const std::vector<Elements>& inputs, const Device& device,
             bool magnitudes = false) {
  const BackendScope scope(device.backend, device.name);
  const Op op = recorded.graph.nodes().back().op;
  std::vector<Tensor> parameters;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto [parameter, isNumber] = recorded.graph.parameter(static_cast<ValueId>(i));
    // The places of maxima stay what they are.
    const bool selects = i > 0 && op == Op::Pool2dBackward;
    const auto bits = bitsOf(inputs[i], parameter.type, magnitudes && !selects);
    parameters.push_back(
        isNumber ? Tensor(defaultTensorBackend().fromNumber(Number(parameter.type, bits[0])))
                 : makeTensor(parameter.shape, bits, parameter.type));
  }
  const Tensor result = runGraph(recorded.graph, parameters)[0];
  const ir::ValueType& type = recorded.graph.type(recorded.graph.results()[0]);
  EXPECT_EQ(result.shape(), type.shape);
  EXPECT_EQ(result.type(), type.type);
  Elements elements;
  for (uint64_t bits : fl::testing::bitsOf(result)) {
    elements.push_back(decode(bits, result.type()));
  }
  return elements;
}

bool sameElement(const Scalar& x, const Scalar& y) {
  return x.type == y.type && (encode(x) == encode(y) ||
                              (isFloating(x.type) && std::isnan(x.real) && std::isnan(y.real)));
}

// ---- Cells ----

class Cell {
 public:
  Cell(Op op, dtype type, Layout layout, const OracleCase& c, double* worst)
      : op_(op), type_(type), layout_(layout), case_(c), worst_(worst) {}

  // Text, ordinary numbers on every device, the same bits fused and alone.
  void check() {
    const Recorded alone = record(type_, false), fused = record(type_, true);
    checkText(alone.graph);
    checkText(fused.graph);
    // The same numbers are drawn for both: what fusion adds comes last and is not drawn.
    const Elements computed = checkValues(alone, Draw(op_, type_).all(alone));
    compareRuns(run(fused, Draw(op_, type_).all(fused), kDevices[0]), computed, kDevices[0],
                "alone");
  }

  void checkSpecials() {
    const Recorded alone = record(type_, false);
    Draw draw(op_, type_);
    for (const Scalar& special : specialsOf(type_)) {
      if (!std::isfinite(special.real) && finiteReason(op_, case_)) {
        continue;
      }
      checkValues(alone, draw.all(alone, &special));
    }
  }

 private:
  Recorded record(dtype type, bool fused) const {
    return Recorder(op_, case_, type, layout_, fused).record();
  }

  // Returns what the first device gave.
  Elements checkValues(const Recorded& alone, const std::vector<Elements>& inputs) {
    const bool exact = ir::opInfo(op_).ulp == 0 || !isFloating(type_);
    const Elements want = exact ? run(alone, inputs, kOracle) : inDouble(inputs, false);
    const Elements scale = !exact && isAccumulating(op_) ? scaleOf(inputs, want) : Elements();
    Elements first;
    for (const Device& device : kDevices) {
      const Elements got = run(alone, inputs, device);
      if (std::string(device.name) == "null") {
        continue;  // computes nothing; types are checked
      }
      exact ? compareBits(got, want, device, "the oracle") : compare(got, want, scale, device);
      if (std::string(device.name) == "cpu") {
        first.empty() ? void(first = got) : compareRuns(got, first, device, "lazy");
      }
    }
    return first;
  }

  void compareRuns(const Elements& got, const Elements& want, const Device& device,
                   const char* other) {
    if (!bitsReason(op_, layout_)) {
      compareBits(got, want, device, other);
    }
  }

  // The oracle's result before it is rounded, of the operands or of their magnitudes.
  Elements inDouble(const std::vector<Elements>& inputs, bool magnitudes) const {
    return run(record(dtype::f64, false), inputs, kOracle, magnitudes);
  }

  // What errors are measured against: sums of magnitudes. Weights of attention are no sums, so that
  // its largest result stands for all.
  Elements scaleOf(const std::vector<Elements>& inputs, const Elements& want) const {
    if (!isAttention(op_)) {
      return inDouble(inputs, true);
    }
    double largest = 0;
    for (const Scalar& element : want) {
      largest = std::max(largest, std::fabs(element.real));
    }
    return Elements(want.size(), realScalar(largest, dtype::f64));
  }

  void compareBits(const Elements& got, const Elements& want, const Device& device,
                   const char* other) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      if (!sameElement(got[i], want[i])) {
        fail(i, device, toString(got[i]) + " differs from " + toString(want[i]) + " of " + other);
      }
    }
  }

  // `want` is the result in double. Errors count in units of the result, or of the sum of what was
  // added up.
  void compare(const Elements& got, const Elements& want, const Elements& scale,
               const Device& device) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const double ulps = error(got[i], want[i].real, scale.empty() ? want[i].real : scale[i].real);
      if (type_ == dtype::f32 && std::isfinite(ulps)) {
        *worst_ = std::max(*worst_, ulps);
      }
      if (ulps > bound()) {
        fail(i, device,
             toString(got[i]) + " is " + std::to_string(ulps) + " ulp from " + toString(want[i]));
      }
    }
  }

  double error(const Scalar& got, double want, double scale) const {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (sameElement(got, realScalar(want, type_)) && (!std::isfinite(got.real) || want == 0)) {
      return 0;
    }
    if (!std::isfinite(got.real) || !std::isfinite(want)) {
      // What adds up to more than the dtype holds may overflow on the way, either way.
      const bool overflows = std::isinf(realScalar(scale, type_).real) && std::isfinite(scale);
      return overflows && !std::isfinite(got.real) ? 0 : kInfinity;
    }
    const double size = std::max(std::fabs(want), std::isfinite(scale) ? scale : 0);
    return std::fabs(got.real - want) / unitOf(size, type_);
  }

  // The table's bound is that of f32. 16-bit floats are rounded once more, or at every step of an
  // update. The double that f64 is held to is off itself, the more the longer it adds.
  double bound() const {
    const double ulp = ir::opInfo(op_).ulp;
    switch (type_) {
      case dtype::f32:
        return ulp;
      case dtype::f64:
        return ulp + (isAccumulating(op_) ? 16 : 1);
      default:
        return isAccumulating(op_) && op_ != Op::Sum ? ulp : 0.5 + ulp / 128;
    }
  }

  void fail(size_t place, const Device& device, const std::string& what) {
    if (++failures_ <= kShownFailures) {
      ADD_FAILURE() << ir::opName(op_) << " of " << type_ << ", " << layoutName(layout_) << ", "
                    << device.backend << " on " << device.name << ", element " << place << ": "
                    << what << "\n"
                    << ir::printGraph(record(type_, false).graph, "f");
    }
  }

  const Op op_;
  const dtype type_;
  const Layout layout_;
  const OracleCase& case_;
  double* worst_;  // of the f32 cells, in ulps
  int failures_ = 0;
};

class Oracle : public ::testing::TestWithParam<Op> {};

TEST_P(Oracle, EveryCell) {
  const Op op = GetParam();
  double worst = 0;  // of the f32 cells, in ulps
  int ran = 0;
  for (dtype type : allTypes()) {
    for (Layout layout : kLayouts) {
      if (skipReason(op, type, layout)) {
        continue;
      }
      Extents extents = extentsOf(layout);
      if (ir::isElementwise(op) && type == dtype::f32 && layout == Layout::Contiguous) {
        extents.a = 1001;  // a sample in which the worst is not far from the bound
      }
      const std::vector<OracleCase> cases = casesOf(op, type, extents);
      ASSERT_FALSE(cases.empty()) << "add a case of " << ir::opName(op) << " to OracleCases.cpp";
      for (const OracleCase& c : cases) {
        Cell cell(op, type, layout, c, &worst);
        cell.check();
        if (takesSpecials(op, layout)) {
          cell.checkSpecials();
        }
      }
      ++ran;
    }
  }
  EXPECT_GT(ran, 0);
  const double bound = ir::opInfo(op).ulp;
  std::cout << ir::opName(op) << ": worst " << worst << " of " << bound << " ulp\n";
  EXPECT_GE(worst, bound / 3) << "the table's ulp of " << ir::opName(op) << " is too large";
}

// What was compiled for some extents serves all of their class (1, up to 16, larger), and is right
// there.
TEST_P(Oracle, KernelsServeOtherExtents) {
  const Op op = GetParam();
  const bool takesF32 = !skipReason(op, dtype::f32, Layout::Contiguous);
  const dtype type = takesF32 ? dtype::f32 : dtype::s32;
  ASSERT_FALSE(skipReason(op, type, Layout::Contiguous));
  constexpr Extents kExtents[] = {{37, 5, 3, 9, 7, 4, 2},
                                  {38, 6, 4, 10, 8, 6, 3},
                                  {53, 7, 5, 11, 9, 8, 4},
                                  {64, 9, 3, 12, 5, 2, 5},
                                  {41, 11, 13, 13, 11, 10, 6}};
  uint64_t compiled = 0;
  for (const Extents& extents : kExtents) {
    double worst = 0;
    for (const OracleCase& c : casesOf(op, type, extents)) {
      Cell(op, type, Layout::Contiguous, c, &worst).check();
    }
    const uint64_t now = runtime::counters().kernelsCompiled;
    EXPECT_TRUE(&extents == kExtents || now == compiled)
        << now - compiled << " kernels compiled for extents of the same class";
    compiled = now;
  }
}

std::vector<Op> allOps() {
  std::vector<Op> ops;
  for (int i = 0; i < ir::kOpCount; ++i) {
    ops.push_back(static_cast<Op>(i));
  }
  return ops;
}
std::string nameOf(const ::testing::TestParamInfo<Op>& info) { return ir::opName(info.param); }
INSTANTIATE_TEST_SUITE_P(Rows, Oracle, ::testing::ValuesIn(allOps()), nameOf);

// Of the cases of a cell that would take special values.
std::vector<const char*> finiteReasons(Op op, dtype type, Layout layout) {
  std::vector<const char*> reasons;
  if (takesSpecials(op, layout) && isFloating(type)) {
    for (const OracleCase& c : casesOf(op, type, extentsOf(layout))) {
      if (const char* reason = finiteReason(op, c)) {
        reasons.push_back(reason);
      }
    }
  }
  return reasons;
}

// Prints the table: cells that run and cells that are skipped, by row and reason, and the cases
// that no infinity goes through.
TEST(OracleTable, EveryCellRunsOrIsSkippedForAReason) {
  const int devices = std::size(kDevices), dtypes = static_cast<int>(allTypes().size());
  const int layouts = std::size(kLayouts);
  int allRun = 0, allSkipped = 0, allFinite = 0;
  std::map<std::string, int> reasons;
  for (Op op : allOps()) {
    int run = 0;
    std::map<std::string, int> skipped, finite, near;
    for (dtype type : allTypes()) {
      for (Layout layout : kLayouts) {
        const char* reason = skipReason(op, type, layout);
        reason ? ++skipped[reason] : ++run;
        if (const char* bits = reason ? nullptr : bitsReason(op, layout)) {
          near[bits] += devices;
        }
        for (const char* each : finiteReasons(op, type, layout)) {
          finite[each] += devices;
          allFinite += devices;
        }
      }
    }
    std::cout << std::setw(22) << ir::opName(op) << std::setw(5) << run * devices << " cells";
    for (const auto& [reason, count] : skipped) {
      std::cout << "; " << count * devices << " skipped: " << reason;
      reasons[reason] += count * devices;
      allSkipped += count * devices;
    }
    for (const auto& [reason, count] : finite) {
      std::cout << "; " << count << " cases of finite numbers alone: " << reason;
    }
    for (const auto& [reason, count] : near) {
      std::cout << "; " << count << " cells without the same bits everywhere: " << reason;
    }
    std::cout << "\n";
    allRun += run * devices;
    EXPECT_GT(run, 0) << ir::opName(op);
    EXPECT_FALSE(casesOf(op, dtype::f32, extentsOf(Layout::One)).empty()) << ir::opName(op);
  }
  std::cout << allRun << " cells run, " << allSkipped << " are skipped, " << allFinite
            << " cases take finite numbers alone\n";
  EXPECT_EQ(allRun + allSkipped, ir::kOpCount * devices * dtypes * layouts);
  EXPECT_EQ(reasons.size(), skipReasons().size()) << "a reason that skips nothing";
  EXPECT_LT(allSkipped, allRun);
}

}  // namespace
}  // namespace fl::testing
