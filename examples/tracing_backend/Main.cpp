// A backend around another one that notes every operator: what a program calls, with shapes and the
// line that called it, and how often.
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fl/fl.h"
#include "fl/research.h"

class Tracer final : public fl::ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;

  std::string name() const override { return "tracer"; }
  fl::TensorBackendType backendType() const override { return fl::TensorBackendType::Tracer; }

  fl::TensorValue apply(fl::ir::Op op, std::vector<fl::TensorValue> operands,
                        const fl::ir::Attrs& attrs, fl::ir::ValueType type) override {
    std::string line = fl::ir::opName(op);
    for (const fl::TensorValue& operand : operands) {
      line += " " + operand->valueType().toString();
    }
    line += " -> " + type.toString() + " at " + fl::currentCallSite().toString();
    lines.push_back(line);
    ++counts[fl::ir::opName(op)];
    return ForwardingBackend::apply(op, std::move(operands), attrs, std::move(type));
  }
  void toHost(const fl::TensorValue& value, void* data) override {
    lines.push_back("read " + value->valueType().toString() + " at " +
                    fl::currentCallSite().toString());
    ForwardingBackend::toHost(value, data);
  }

  std::vector<std::string> lines;
  std::map<std::string, int> counts;
};

int main() {
  Tracer tracer(fl::defaultTensorBackend());
  float loss = 0;
  {
    const fl::BackendScope scope(tracer);
    fl::Linear model(4, 2);
    auto error = fl::MeanSquaredError()(model(fl::noGrad(fl::rand({4, 8}))),
                                        fl::noGrad(fl::full({2, 8}, 1.0)));
    error.backward();
    loss = error.scalar<float>();
  }
  for (const std::string& line : tracer.lines) {
    std::cout << line << '\n';
  }
  for (const auto& [op, count] : tracer.counts) {
    std::cout << count << ' ' << op << '\n';
  }
  std::cout << "loss " << loss << '\n';
}
