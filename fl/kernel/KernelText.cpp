// Text of kernels:
//
//   kernel @k rank=2 reduced=[0] {
//     operand input f32 [1,*]
//     operand output f32 [0,1]
//     scalar f32
//     %0 = load 0 : f32
//     %1 = scalar 0 : f32
//     %2 = mul %0, %1 : f32
//     %3 = total 0 : f32
//     sweep { reduce sum %2 }
//     stage { store 1 %3 }
//   }
#include "fl/base/Text.h"
#include "fl/kernel/Kernel.h"

namespace fl::ir {
namespace {

const char* roleName(KernelOperand::Role role) {
  switch (role) {
    case KernelOperand::Role::Input:
      return "input";
    case KernelOperand::Role::Output:
      return "output";
    case KernelOperand::Role::Index:
      return "index";
  }
  __builtin_unreachable();
}

const char* strideName(Stride stride) {
  return stride == Stride::Zero ? "0" : stride == Stride::One ? "1" : "*";
}

std::string printOperand(const KernelOperand& operand) {
  std::string text =
      std::string("  operand ") + roleName(operand.role) + " " + dtypeToString(operand.type) + " [";
  for (size_t i = 0; i < operand.strides.size(); ++i)
    text += std::string(i ? "," : "") + strideName(operand.strides[i]);
  return text + "]\n";
}

std::string valueList(const std::vector<int>& values) {
  std::string text;
  for (int value : values) text += (text.empty() ? "%" : ", %") + std::to_string(value);
  return text;
}

std::string printValue(const KernelValue& value, size_t index) {
  std::string text = "  %" + std::to_string(index) + " = ";
  switch (value.form) {
    case KernelValue::Form::Load:
      text += "load " + std::to_string(value.index);
      break;
    case KernelValue::Form::Scalar:
      text += "scalar " + std::to_string(value.index);
      break;
    case KernelValue::Form::Total:
      text += "total " + std::to_string(value.index);
      break;
    case KernelValue::Form::Gather:
      text += "gather " + std::to_string(value.index) + " " + valueList(value.args);
      break;
    case KernelValue::Form::Apply:
      text += opName(value.op) + (" " + valueList(value.args)) + (value.isShort ? " short" : "");
  }
  return text + " : " + dtypeToString(value.type) + "\n";
}

std::string printStage(const KernelStage& stage) {
  std::string text = stage.sweep ? "  sweep {" : "  stage {";
  for (const KernelStage::Store& store : stage.stores)
    text += " store " + std::to_string(store.operand) + " %" + std::to_string(store.value);
  for (const KernelStage::Reduce& reduce : stage.reduces)
    text += std::string(" reduce ") + opName(reduce.op) + " %" + std::to_string(reduce.value);
  return text + " }\n";
}

int takeValue(Lexer& lexer) { return lexer.takeNumbered('%', "a value"); }

KernelOperand parseOperand(Lexer& lexer) {
  KernelOperand operand;
  if (lexer.accept("output")) {
    operand.role = KernelOperand::Role::Output;
  } else if (lexer.accept("index")) {
    operand.role = KernelOperand::Role::Index;
  } else {
    lexer.expect("input");
  }
  operand.type = lexer.takeDtype();
  lexer.expect("[");
  while (!lexer.accept("]")) {
    operand.strides.push_back(lexer.accept("0")   ? Stride::Zero
                              : lexer.accept("1") ? Stride::One
                                                  : (lexer.expect("*"), Stride::Any));
    lexer.accept(",");
  }
  return operand;
}

std::vector<int> takeValues(Lexer& lexer) {
  std::vector<int> values;
  do {
    values.push_back(takeValue(lexer));
  } while (lexer.accept(","));
  return values;
}

KernelValue parseValue(Lexer& lexer) {
  KernelValue value;
  const size_t position = lexer.position();
  const std::string what = lexer.takeName("an op");
  if (what == "load" || what == "scalar" || what == "total") {
    value.form = what == "load"     ? KernelValue::Form::Load
                 : what == "scalar" ? KernelValue::Form::Scalar
                                    : KernelValue::Form::Total;
    value.index = lexer.takeIndex();
  } else if (what == "gather") {
    value.form = KernelValue::Form::Gather;
    value.index = lexer.takeIndex();
    value.args = takeValues(lexer);
  } else {
    value.form = KernelValue::Form::Apply;
    if (!findOp(what, &value.op)) lexer.failAt(position, "\"" + what + "\" is no op");
    value.args = takeValues(lexer);
    value.isShort = lexer.accept("short");
  }
  lexer.expect(":");
  value.type = lexer.takeDtype();
  return value;
}

KernelStage parseStage(Lexer& lexer, bool sweep, int* reductions) {
  KernelStage stage;
  stage.sweep = sweep;
  lexer.expect("{");
  while (!lexer.accept("}")) {
    if (lexer.accept("store")) {
      const int operand = lexer.takeIndex();
      stage.stores.push_back({operand, takeValue(lexer)});
    } else {
      lexer.expect("reduce");
      KernelStage::Reduce reduce{};
      const size_t position = lexer.position();
      const std::string name = lexer.takeName("a reduction");
      if (!findOp(name, &reduce.op)) lexer.failAt(position, "\"" + name + "\" is no op");
      reduce.value = takeValue(lexer);
      reduce.index = (*reductions)++;
      stage.reduces.push_back(reduce);
    }
  }
  return stage;
}

int takeRank(Lexer& lexer) {
  lexer.expect("rank");
  lexer.expect("=");
  return lexer.takeIndex();
}

}  // namespace

std::string printKernel(const Kernel& kernel, const std::string& name) {
  std::vector<Dim> reduced;
  for (int axis = 0; axis < kernel.rank; ++axis) {
    if (kernel.isReduced(axis)) reduced.push_back(axis);
  }
  std::string text = "kernel @" + name + " rank=" + std::to_string(kernel.rank) +
                     " reduced=" + listToString(reduced) + " {\n";
  for (const KernelOperand& operand : kernel.operands) text += printOperand(operand);
  for (dtype scalar : kernel.scalars) text += "  scalar " + dtypeToString(scalar) + "\n";
  for (size_t i = 0; i < kernel.values.size(); ++i) text += printValue(kernel.values[i], i);
  for (const KernelStage& stage : kernel.stages) text += printStage(stage);
  return text + "}\n";
}

Kernel parseKernel(Lexer& lexer) {
  Kernel kernel;
  int reductions = 0;
  kernel.rank = takeRank(lexer);
  const size_t position = lexer.position();
  for (Dim axis : lexer.takeListField("reduced")) {
    if (axis < 0 || axis >= kernel.rank || axis >= kMaxRank ||
        kernel.isReduced(static_cast<int>(axis))) {
      lexer.failAt(position, "axis " + std::to_string(axis) + " is out of range or given twice");
    }
    kernel.reduced |= 1u << axis;
  }
  lexer.expect("{");
  while (!lexer.accept("}")) {
    if (lexer.accept("operand")) {
      kernel.operands.push_back(parseOperand(lexer));
    } else if (lexer.accept("scalar")) {
      kernel.scalars.push_back(lexer.takeDtype());
    } else if (lexer.accept("sweep")) {
      kernel.stages.push_back(parseStage(lexer, true, &reductions));
    } else if (lexer.accept("stage")) {
      kernel.stages.push_back(parseStage(lexer, false, &reductions));
    } else {
      const size_t position = lexer.position();
      if (takeValue(lexer) != static_cast<int>(kernel.values.size())) {
        lexer.failAt(position, "values are numbered in order: expected %" +
                                   std::to_string(kernel.values.size()));
      }
      lexer.expect("=");
      kernel.values.push_back(parseValue(lexer));
    }
  }
  verify(kernel);
  return kernel;
}

Kernel parseKernel(const std::string& text) {
  Lexer lexer(text);
  lexer.expect("kernel");
  lexer.takeSigil('@', "the kernel's name");
  Kernel kernel = parseKernel(lexer);
  if (!lexer.atEnd()) lexer.fail("expected the end");
  return kernel;
}

}  // namespace fl::ir
