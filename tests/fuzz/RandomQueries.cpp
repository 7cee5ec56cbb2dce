// Statements of random programs that ask about values or order their computation, and that apply
// rows of the op table without a function of their own.
#include <iostream>
#include <sstream>

#include "fl/ir/Inference.h"
#include "tests/fuzz/RandomProgram.h"

namespace fl::testing {
namespace {

Tensor applyRow(ir::Op op, const std::vector<Tensor>& operands, const ir::Attrs& attrs) {
  std::vector<TensorValue> values;
  std::vector<const ir::ValueType*> types;
  for (const Tensor& operand : operands) {
    values.push_back(operand.value());
    types.push_back(&values.back()->valueType());
  }
  ir::ValueType type = ir::inferType(op, types, attrs);
  return Tensor(defaultTensorBackend().apply(op, std::move(values), attrs, std::move(type)));
}

std::string printed(const Tensor& tensor) {
  std::ostringstream os;
  std::streambuf* const terminal = std::cout.rdbuf(os.rdbuf());
  print(tensor);
  std::cout.rdbuf(terminal);
  os << tensor;
  return os.str() + tensor.toString();
}

}  // namespace

void RandomProgram::answer(const std::string& question, const std::string& said, bool exact) {
  text_ += question + "\n";
  reads_.push_back({question, dtype::b8, Shape(), said, exact, 0});
}

// Where values may be off, so may what is said of them; a text shows the sign of zeros, too.
bool RandomProgram::askAny() {
  Variable& x = any();
  const Variable& y = any();
  const Tensor t = x.value.tensor;
  const auto yes = [](bool holds) { return std::string(1, holds ? 1 : 0); };
  const bool exact = x.value.exact, bothExact = exact && y.value.exact;
  const bool printsExact = exact && !isFloating(t.type());
  switch (below(4)) {
    case 0:
      if (tame_ && !bothExact) return false;
      answer("allClose(" + x.name + ", " + y.name + ")", yes(allClose(t, y.value.tensor, 0.5)),
             bothExact);
      return true;
    case 1:
      if (tame_ && !exact) return false;
      answer("isInvalidArray(" + x.name + ")", yes(isInvalidArray(t)), exact);
      return true;
    case 2:
      if ((tame_ && !printsExact) || t.elements() > 300) return false;
      answer("print(" + x.name + ")", printed(t), printsExact);
      return true;
    default:
      x.value.tensor.setContext(this);
      answer("context of " + x.name, yes(x.value.tensor.getContext() == this), true);
      return true;
  }
}

bool RandomProgram::orderAny() {
  const Variable& x = any();
  const Tensor t = x.value.tensor;
  switch (below(4)) {
    case 0:
      text_ += "sync\n";
      sync();
      return true;
    case 1:
      text_ += "the stream waits for " + x.name + "\n";
      relativeSync(t.stream(), std::vector<Tensor>{t});
      return true;
    case 2:
      text_ += x.name + " waits for the stream\n";
      relativeSync(std::vector<Tensor>{t}, t.stream());
      return true;
    default:
      define(Tracker::moved(x.value, t.asContiguousTensor()), x.name + ".asContiguousTensor()");
      return true;
  }
}

// What convolutions, pools and products are defined by, in every dtype: libraries compute those of
// most floats.
bool RandomProgram::applyDefinition() {
  const dtype type = any().value.tensor.type();
  const auto drawn = [&](const Shape& shape) {
    input(shape, type);
    return variables_.back().value;
  };
  if (chance(40)) {
    const Dim inner = 1 + below(40), batch = 1 + below(3);
    const Value x = drawn({inner, 1 + below(9), batch}), y = drawn({inner, 1 + below(9), batch});
    const Tensor result = applyRow(ir::Op::Contract, {x.tensor, y.tensor}, {});
    define(tracker_.products(result, x, y, static_cast<double>(inner)), "contract the last inputs");
    return true;
  }
  const Dim kx = 1 + below(3), ky = 1 + below(3), sx = 1 + below(2), sy = 1 + below(2);
  const Dim dx = 1 + below(2), dy = 1 + below(2);
  const Shape image = {(kx - 1) * dx + 1 + below(5), (ky - 1) * dy + 1 + below(5), 1 + below(3)};
  const Value x = drawn(image);
  const Tensor windows = applyRow(ir::Op::Window, {x.tensor}, {kx, ky, sx, sy, dx, dy});
  if (chance(50)) {
    define(Tracker::moved(x, windows), "windows of the last input");
    return true;
  }
  const Value y = drawn(windows.shape());
  const Tensor folded = applyRow(ir::Op::Fold, {y.tensor}, {sx, sy, dx, dy, image[0], image[1]});
  define(tracker_.sums(folded, y, static_cast<double>(kx * ky)), "fold the last input");
  return true;
}

}  // namespace fl::testing
