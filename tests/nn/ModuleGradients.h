// Gradients of modules against differences, in f64: of every input and of every parameter.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fl/autograd/Functions.h"
#include "fl/nn/modules/Module.h"
#include "fl/tensor/Random.h"
#include "tests/autograd/GradientCheck.h"
#include "tests/nn/ModuleNames.h"

namespace fl::test {

using Inputs = std::vector<Tensor>;

struct GradientCase {
  std::string module;  // its class
  std::function<ModulePtr()> make;
  // What forward() is given, in one run or more. Tensors of f64 are differentiated.
  std::vector<Inputs> runs;
  // Else in training mode alone, where both modes compute the same.
  bool bothModes = false;
};

// The first two members of a GradientCase: the class and what it is made with.
#define FL_MODULE(Class, ...) #Class, [=] { return std::make_shared<Class>(__VA_ARGS__); }

// Runs with one input of each shape.
inline std::vector<Inputs> each(const std::vector<Shape>& shapes, double low = -1,
                                double high = 1) {
  std::vector<Inputs> runs;
  for (const Shape& shape : shapes) {
    runs.push_back({spreadTensor(shape, low, high)});
  }
  return runs;
}

namespace detail {

// All outputs in one, each element of which counts.
inline Variable joined(const std::vector<Variable>& outputs) {
  std::vector<Variable> parts;
  for (const Variable& output : outputs) {
    parts.push_back(flat(output));
  }
  return concatenate(parts, 0);
}

// `next` are the inputs of f64 and then the parameters of `module`.
inline Variable outputsOf(Module& module, const Inputs& run,
                          std::vector<Variable>::const_iterator next) {
  std::vector<Variable> inputs;
  for (const Tensor& input : run) {
    inputs.push_back(input.type() == dtype::f64 ? *next++ : Variable(input, false));
  }
  for (int i = 0; i < module.numParamTensors(); ++i) {
    module.setParams(*next++, i);
  }
  return joined(module.forward(inputs));
}

// Each evaluation is one of a fresh copy, from one seed: it draws what the others draw.
inline void expectModuleGradients(const Module& module, const Inputs& run) {
  Inputs values;
  std::vector<Variable> asTheyAre;
  for (const Tensor& input : run) {
    asTheyAre.emplace_back(input, false);
    if (input.type() == dtype::f64) {
      values.push_back(input);
    }
  }
  // An input of f64 decides, whatever the parameters are.
  const dtype type = values.empty() ? dtype::f32 : dtype::f64;
  EXPECT_EQ(joined(module.clone()->forward(asTheyAre)).type(), type);
  for (const Variable& parameter : module.params()) {
    values.push_back(randomTensor(parameter.shape()));
  }
  expectGradients(
      [&](const std::vector<Variable>& v) {
        setSeed(3);
        return outputsOf(*module.clone(), run, v.begin());
      },
      values);
}

}  // namespace detail

inline void expectGradients(const GradientCase& c) {
  for (const bool train : {true, false}) {
    if (!train && !c.bothModes) {
      continue;
    }
    for (const Inputs& run : c.runs) {
      const ModulePtr module = c.make();
      train ? module->train() : module->eval();
      SCOPED_TRACE(module->prettyString() + (train ? ", training, " : ", evaluating, ") +
                   run[0].shape().toString());
      detail::expectModuleGradients(*module, run);
    }
  }
}

// Cases of one kind; a test program is a list of these.
using Part = std::vector<GradientCase> (*)();

class ModuleGradients : public ::testing::TestWithParam<Part> {};

template <typename Parts>
std::set<std::string> modulesIn(const Parts& parts) {
  std::set<std::string> names;
  for (const Part part : parts) {
    for (const GradientCase& c : part()) {
      names.insert(c.module);
    }
  }
  return names;
}

}  // namespace fl::test
