// Every module: outputs and gradients against PyTorch's, and what all modules have in common. None
// reads a value on the host.
#include <optional>
#include <sstream>

#include "fl/autograd/Functions.h"
#include "fl/autograd/OptimMode.h"
#include "fl/nn/Init.h"
#include "fl/nn/Serialization.h"
#include "tests/CountingBackend.h"
#include "tests/ModuleCopies.h"
#include "tests/nn/ModuleCases.h"
#include "tests/nn/ModuleChecks.h"
#include "tests/nn/ModuleNames.h"
#include "tests/reference/References.h"

namespace fl::test {
namespace {

constexpr double kTolerance = 1e-5;

Variable numbered(const ReferenceCase& c, const char* kind, int i) {
  const Tensor tensor = c.input(c.op() + "_" + kind + std::to_string(i));
  return Variable(tensor, isFloating(tensor.type()));
}

void setParameters(const ReferenceCase& c, Module& module) {
  for (int i = 0; i < module.numParamTensors(); ++i) {
    const Variable parameter = numbered(c, "p", i);
    EXPECT_EQ(module.param(i).shape(), parameter.shape()) << c.op() << ": parameter " << i;
    EXPECT_EQ(module.param(i).type(), dtype::f32);
    module.setParams(parameter, i);
  }
}

std::vector<Variable> inputsOf(const ReferenceCase& c) {
  std::vector<Variable> inputs;
  for (size_t i = 0; i < c.tensors("x").size(); ++i) {
    inputs.push_back(numbered(c, "x", static_cast<int>(i)));
  }
  return inputs;
}

void expectGradient(ReferenceCase& c, const std::string& name, const Variable& variable,
                    double tolerance) {
  const Tensor gradient = variable.grad().tensor();
  if (c.has("zeros") && c.text("zeros") == name) {
    EXPECT_LE(amax(absolute(gradient)).scalar<float>(), tolerance) << c.op() << ": " << name;
  } else {
    c.expectNear(name, gradient, tolerance);
  }
}

void expectEvaluation(ReferenceCase& c, Module& module, double tolerance) {
  if (c.has("eval")) {
    const Tensor result = module.forward(inputsOf(c))[0].tensor();
    c.expectNear("eval", result.astype(dtype::f32), tolerance);
  }
}

void expectOutputsAndGradients(ReferenceCase& c, Module& module, double tolerance) {
  const std::vector<Variable> inputs = inputsOf(c);
  testing::CountingBackend backend(defaultTensorBackend());
  std::optional<BackendScope> scope(std::in_place, backend);
  const std::vector<Variable> outputs = module(inputs);
  Variable total(full(Shape(), 0.0), false);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Variable weights = input(numbered(c, "g", static_cast<int>(i)).tensor());
    total = total + sum(outputs[i].astype(dtype::f32) * weights, {}).astype(dtype::f32);
  }
  total.backward();
  EXPECT_EQ(backend.reads, 0) << c.op();
  scope.reset();
  for (size_t i = 0; i < outputs.size(); ++i) {
    c.expectNear("y" + std::to_string(i), outputs[i].tensor().astype(dtype::f32), tolerance);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].isCalcGrad()) {
      expectGradient(c, "dx" + std::to_string(i), inputs[i], tolerance);
    }
  }
  for (int i = 0; i < module.numParamTensors(); ++i) {
    expectGradient(c, "dp" + std::to_string(i), module.param(i), tolerance);
  }
}

ModulePtr throughAnArchive(const ModulePtr& module) {
  std::stringstream stream;
  save(stream, module);
  ModulePtr loaded;
  load(stream, loaded);
  return loaded;
}

void checkModule(ReferenceCase& c) {
  const ModuleCase& entry = moduleCases().at(c.op());
  const ModulePtr module = entry.make();
  EXPECT_EQ(module->prettyString(), entry.pretty);
  setParameters(c, *module);
  expectOutputsAndGradients(c, *module, kTolerance);

  module->eval();
  expectEvaluation(c, *module, kTolerance);
  const auto expectCopy = [&](const char* how, Module& copy) {
    SCOPED_TRACE(c.op() + " " + how);
    expectIndependentCopy(*module, copy, inputsOf(c));
  };
  expectCopy("cloned", *module->clone());
  expectCopy("saved and loaded", *throughAnArchive(module));
  const ModulePtr assigned = entry.make();
  entry.assign(*assigned, *module);
  expectCopy("assigned", *assigned);
}

TEST(Modules, AgreeWithPyTorchAndCopy) {
  ReferenceHandlers handlers;
  for (const auto& [name, entry] : moduleCases()) {
    handlers[name] = checkModule;
  }
  runReferences("modules", handlers);
}

// Whatever each level of mixed precision casts, a module combines types that fit, and no gradient
// is lost: in 16 bits of either kind, all are within a tenth of the largest.
void checkLevels(ReferenceCase& c) {
  const OptimMode before = OptimMode::get();
  for (const OptimLevel level : {OptimLevel::O1, OptimLevel::O2, OptimLevel::O3}) {
    for (const dtype type : {dtype::f16, dtype::bf16}) {
      SCOPED_TRACE(c.op() + " at O" + std::to_string(static_cast<int>(level)));
      const ModulePtr module = moduleCases().at(c.op()).make();
      setParameters(c, *module);
      OptimMode::get().setType(type);
      OptimMode::get().setOptimLevel(level);
      expectOutputsAndGradients(c, *module, 1);
      module->eval();
      expectEvaluation(c, *module, 1);
      OptimMode::get() = before;
    }
  }
}

TEST(Modules, TakeEveryLevelOfMixedPrecision) {
  ReferenceHandlers handlers;
  for (const auto& [name, entry] : moduleCases()) {
    handlers[name] = checkLevels;
  }
  runReferences("modules", handlers);
}

// The name of a case begins with that of its module. A Transform computes nothing of its own.
TEST(Modules, AllAreCompared) {
  for (const std::string& name : modulesOf("fl/nn")) {
    const auto entry = moduleCases().lower_bound(name);
    EXPECT_TRUE(name == "Transform" ||
                (entry != moduleCases().end() && entry->first.starts_with(name)))
        << name;
  }
}

}  // namespace
}  // namespace fl::test
