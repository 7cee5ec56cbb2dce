// Programs with FL_POISON=1 have the bits that they have without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "fl/base/Flags.h"
#include "fl/custom/Operator.h"
#include "fl/fl.h"

namespace fl::testing {
namespace {

using Bits = std::vector<std::vector<float>>;

// Its losses, then its parameters.
Bits train(Sequential model, const Tensor& x, const Tensor& y) {
  AdamOptimizer optimizer(model.params(), 1e-2);
  Bits bits(1);
  for (int i = 0; i < 4; ++i, optimizer.zeroGrad()) {
    const Variable loss = categoricalCrossEntropy(model(noGrad(x)), noGrad(y));
    Variable(loss).backward();
    optimizer.step();
    bits[0].push_back(loss.scalar<float>());
  }
  for (const Variable& each : model.params()) bits.push_back(each.tensor().toHostVector<float>());
  return bits;
}

Tensor labels(Dim count) { return (rand({count}) * 9.99).astype(dtype::s32); }

Bits perceptron() {
  Sequential model;
  for (int i = 0; i < 6; ++i) {
    model.add(Linear(32, 32));
    model.add(Tanh());
    model.add(Dropout(0.2));
  }
  model.add(Linear(32, 10));
  model.add(LogSoftmax());
  return train(model, rand({32, 64}), labels(64));
}

// The temporaries of a step are some 120 kB.
Bits perceptronWithinABudget() {
  setMemoryBudget(60'000);
  Bits bits = perceptron();
  setMemoryBudget(0);
  return bits;
}

Bits convolutions() {
  Sequential model;
  model.add(Conv2D(3, 8, 3, 3, 1, 1, 1, 1));
  model.add(BatchNorm(2, 8));
  model.add(ReLU());
  model.add(Pool2D(2, 2, 2, 2));
  model.add(Conv2D(8, 8, 3, 3, 2, 2));
  model.add(ReLU());
  model.add(View({72, -1}));
  model.add(Linear(72, 10));
  model.add(LogSoftmax());
  return train(model, rand({16, 16, 3, 8}), labels(8));
}

Bits sequences() {
  Sequential model;
  model.add(Embedding(16, 20));
  model.add(LayerNorm(0, 1e-5, true, 16));
  model.add(GatedLinearUnit(0));
  model.add(Linear(8, 10));
  model.add(LogSoftmax());
  return train(model, (rand({12, 8}) * 19.9).astype(dtype::s32),
               (rand({12, 8}) * 9.99).astype(dtype::s32));
}

Bits tensors() {
  const Tensor x = rand({40, 30});
  Tensor y = cumsum(sort(x, 0), 1) + transpose(rand({30, 40}));
  y(range(3, 9)) = matmul(y(range(3, 9)), matmul(transpose(y), y) * 0.01);
  y(argmax(x, 1)) += 1;
  const Tensor last = concatenate(std::vector<Tensor>{y, tile(sum(y, {0}, true), {2, 1})}, 0);
  return {last.toHostVector<float>(), std::vector<float>(1, median(y, {0, 1}).scalar<float>())};
}

Bits ofACustomOperator() {
  const CustomOperator cube{.name = "cube",
                            .type = [](const auto& operands) { return operands[0]; },
                            .reference = [](const auto& x) { return x[0].values; },
                            .compute = [](const auto& x) { return x[0] * x[0] * x[0]; }};
  const Variable x(rand({50, 20}), /*calcGrad=*/true);
  Variable y = cube(cube(x) + 1);
  y.backward();
  return {y.tensor().toHostVector<float>(), x.grad().tensor().toHostVector<float>()};
}

const std::map<std::string, std::function<Bits()>> programs = {
    {"perceptron", perceptron},     {"perceptronWithinABudget", perceptronWithinABudget},
    {"convolutions", convolutions}, {"sequences", sequences},
    {"tensors", tensors},           {"ofACustomOperator", ofACustomOperator}};

Bits run(const std::string& program, const std::string& backend, const std::string& poison) {
  const std::string before = std::exchange(flags().poison, poison);
  Bits bits;
  {
    const BackendScope scope(backend, "cpu");
    setSeed(7);
    bits = programs.at(program)();
  }
  flags().poison = before;
  return bits;
}

class PoisonBits : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

INSTANTIATE_TEST_SUITE_P(
    Programs, PoisonBits,
    ::testing::Combine(::testing::Values("perceptron", "perceptronWithinABudget", "convolutions",
                                         "sequences", "tensors", "ofACustomOperator"),
                       ::testing::Values("lazy", "eager")),
    [](const auto& test) { return std::get<0>(test.param) + "_" + std::get<1>(test.param); });

TEST_P(PoisonBits, AreThoseWithoutIt) {
  const auto [program, backend] = GetParam();
  const Bits plain = run(program, backend, "0"), poisoned = run(program, backend, "1");
  ASSERT_EQ(poisoned.size(), plain.size());
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_THAT(plain[i], ::testing::Each(::testing::Truly([](float x) { return x == x; })));
    ASSERT_EQ(poisoned[i].size(), plain[i].size());
    EXPECT_EQ(std::memcmp(poisoned[i].data(), plain[i].data(), plain[i].size() * sizeof(float)), 0)
        << "result " << i;
  }
}

}  // namespace
}  // namespace fl::testing
