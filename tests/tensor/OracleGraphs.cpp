#include "tests/tensor/OracleGraphs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "fl/definitions/GraphRunner.h"

namespace fl::testing {
namespace {

using ir::Op;
using ir::ValueId;
using Role = CaseOperand::Role;

constexpr Device kOracle = {"eager", "ref"};

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

}  // namespace

Recorded recordCell(Op op, const OracleCase& c, dtype type, Layout layout, bool fused) {
  return Recorder(op, c, type, layout, fused).record();
}

std::vector<Elements> Draw::all(const Recorded& recorded, const Scalar* special) {
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

Scalar Draw::one(const CaseOperand& source) {
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
Scalar Draw::value() {
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
             bool magnitudes) {
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

Expected::Expected(Op op, dtype type, Layout layout, const OracleCase& c,
                   const std::vector<Elements>& inputs)
    : op_(op),
      type_(type),
      layout_(layout),
      case_(c),
      exact_(ir::opInfo(op).ulp == 0 || !isFloating(type)) {
  want_ = exact_ ? run(recordCell(op, c, type, layout), inputs, kOracle) : inDouble(inputs, false);
  if (!exact_ && isAccumulating(op_)) {
    scale_ = scaleOf(inputs);
  }
}

std::string Expected::wrong(size_t i, const Scalar& got, double* worst, double slack) const {
  if (exact_) {
    return sameElement(got, want_[i])
               ? ""
               : toString(got) + " differs from " + toString(want_[i]) + " of the oracle";
  }
  const double ulps = error(got, want_[i].real, scale_.empty() ? want_[i].real : scale_[i].real);
  if (worst && std::isfinite(ulps)) {
    *worst = std::max(*worst, ulps);
  }
  return ulps > boundOf(op_, type_) + slack
             ? toString(got) + " is " + std::to_string(ulps) + " ulp from " + toString(want_[i])
             : "";
}

// The oracle's result before it is rounded, of the operands or of their magnitudes.
Elements Expected::inDouble(const std::vector<Elements>& inputs, bool magnitudes) const {
  return run(recordCell(op_, case_, dtype::f64, layout_), inputs, kOracle, magnitudes);
}

// What errors are measured against: sums of magnitudes. Weights of attention are no sums, so that
// its largest result stands for all, of numbers in place of what is none and hides some.
Elements Expected::scaleOf(const std::vector<Elements>& inputs) const {
  if (!isAttention(op_)) {
    return inDouble(inputs, true);
  }
  std::vector<Elements> numbers = inputs;
  for (Scalar& element : numbers[0]) {
    element = std::isfinite(element.real) ? element : realScalar(1, element.type);
  }
  double largest = 0;
  for (const Scalar& element : inDouble(numbers, false)) {
    largest = std::max(largest, std::fabs(element.real));
  }
  return Elements(want_.size(), realScalar(largest, dtype::f64));
}

double Expected::error(const Scalar& got, double want, double scale) const {
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

// The table's bound is that of f32. In f64 the oracle is off itself, by half an ulp of what it
// takes from the C library and by what its sums round; what is rounded once, or adds in the
// oracle's order, has its bits; products are chains as f32's are. 16-bit floats are rounded once
// more, some sums of them at two steps or more.
double boundOf(Op op, dtype type) {
  const double ulp = ir::opInfo(op).ulp;
  if (ulp == 0 || type == dtype::f32) return ulp;
  const bool isInOrder = op == Op::Fold || op == Op::ScatterAdd || op == Op::Cumsum ||
                         op == Op::Pool2dBackward || op == Op::Conv2dBackwardData;
  if (type == dtype::f64) {
    if (ulp == 0.5 || isInOrder) return 0;
    return isAttention(op) || op == Op::Matmul ? ulp : isAccumulating(op) ? 3 : ulp + 0.5;
  }
  const bool roundsSteps = op == Op::ScatterAdd || op == Op::Conv2d || op == Op::Pool2dBackward ||
                           op == Op::Conv2dBackwardData;
  return roundsSteps ? 2 : 0.5 + ulp / 128;
}

}  // namespace fl::testing
