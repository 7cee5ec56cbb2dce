// The suite of operators on a backend from outside: one that divides by multiplying with the
// reciprocal, which rounds twice. The suite says where.
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fl/fl.h"
#include "fl/research.h"
#include "tests/tensor/OpSuite.h"

class Reciprocal final : public fl::ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;

  std::string name() const override { return "reciprocal"; }

  fl::TensorValue apply(fl::ir::Op op, std::vector<fl::TensorValue> operands,
                        const fl::ir::Attrs& attrs, fl::ir::ValueType type) override {
    if (op == fl::ir::Op::Div && fl::isFloating(type.type)) {
      const fl::TensorValue one = fromNumber(fl::Number::of(1.0, type.type));
      const fl::ir::ValueType ofDivisor = operands[1]->valueType();
      operands[1] = ForwardingBackend::apply(op, {one, operands[1]}, attrs, ofDivisor);
      op = fl::ir::Op::Mul;
    }
    return ForwardingBackend::apply(op, std::move(operands), attrs, std::move(type));
  }
};

int main() {
  fl::registerBackend("reciprocal", [](const std::string& device) {
    return std::make_unique<Reciprocal>(fl::getBackend("eager", device));
  });
  const fl::testing::BackendReport report = fl::testing::checkBackend("reciprocal");
  std::set<std::string> operators;
  for (const std::string& line : report.wrong) {
    std::cout << line << '\n';
    operators.insert(line.substr(0, line.find(' ')));
  }
  std::cout << report.wrong.size() << " of " << report.cells << " cells are wrong, of";
  for (const std::string& op : operators) std::cout << ' ' << op;
  std::cout << '\n';
}
