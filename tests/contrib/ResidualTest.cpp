// Residual against the sums and products it stands for.
#include "fl/autograd/Functions.h"
#include "tests/contrib/Checks.h"

namespace fl::test {
namespace {

// y = factor * x + shift, with a name.
Transform line(double factor, double shift) {
  return Transform([factor, shift](const Variable& x) { return x * factor + shift; },
                   "line " + std::to_string(static_cast<int>(factor)));
}

Linear times(double factor) { return Linear(param(full(Shape({1, 1}), factor))); }

// Layers 2 x + 1, 3 x, 5 x - 2 with shortcuts, projections and scales.
Residual example() {
  Residual residual;
  residual.add(line(2, 1));
  residual.add(line(3, 0));
  residual.addShortcut(0, 2);
  residual.addShortcut(0, 3, times(10));
  residual.add(line(5, -2));
  residual.addScale(3, 0.5);
  residual.addShortcut(1, 3, std::make_shared<Linear>(times(100)));
  residual.addShortcut(2, 4);
  residual.addShortcut(1, 4);
  residual.addScale(4, 0.25);
  return residual;
}

double expected(double x) {
  const double first = 2 * x + 1;
  const double second = 3 * (first + x);
  const double third = 5 * (second + 10 * x + 100 * first) * 0.5 - 2;
  return (third + second + first) * 0.25;
}

TEST(Residual, AddsAndScales) {
  Residual residual = example();
  const Variable x = param(Tensor::fromVector(Shape({1, 3}), std::vector<float>{-1, 0, 4}));
  Variable y = residual.forward(x);
  EXPECT_EQ(valuesOf(y),
            (std::vector<float>{static_cast<float>(expected(-1)), static_cast<float>(expected(0)),
                                static_cast<float>(expected(4))}));
  y.backward();
  const auto slope = static_cast<float>(expected(1) - expected(0));
  EXPECT_EQ(valuesOf(x.grad()), (std::vector<float>{slope, slope, slope}));
  // The first projection's weight meets x / 2, then 5, and a quarter at the end.
  EXPECT_EQ(valuesOf(residual.module(2)->param(0).grad()),
            std::vector<float>{3 * 0.5f * 5 * 0.25f});
  EXPECT_EQ(residual.getProjectionsIndices(), (std::unordered_set<int>{2, 4}));
  EXPECT_EQ(valuesOf(residual(std::vector<Variable>{x})[0]), valuesOf(y));
}

TEST(Residual, WithoutShortcutsIsASequence) {
  Residual residual;
  const Variable x = input(rand({4, 2}));
  EXPECT_EQ(valuesOf(residual.forward(x)), valuesOf(x));
  residual.add(line(2, 0));
  EXPECT_EQ(valuesOf(residual.forward(x)), valuesOf(x * 2.0));
  EXPECT_EQ(
      residual.prettyString(),
      "\n\tRes(0): Input\n\tRes(1): " + residual.module(0)->prettyString() + "\n\tRes(2): Output;");
}

TEST(Residual, SaysWhatGoesWhere) {
  const Residual residual = example();
  const auto name = [&](int id) { return residual.module(id)->prettyString(); };
  EXPECT_EQ(
      residual.prettyString(),
      "\n\tRes(0): Input; skip connection to layer Res(2) layer Res(3) with transformation: " +
          name(2) + "; \n\tRes(1): " + name(0) +
          "; skip connection to layer Res(3) with transformation: " + name(4) +
          "; output \n\tRes(2): " + name(1) + "; skip connection to output \n\tRes(3): " + name(3) +
          " with scale (before layer is applied) 0.5;" +
          "\n\tRes(4): Output; with scale (before layer is applied) 0.25;");
}

TEST(Residual, Errors) {
  Residual residual;
  residual.add(line(2, 0));
  residual.add(line(3, 0));
  residual.addShortcut(0, 3);
  residual.addScale(1, 2);
  expectError(
      "Residual: no shortcut goes from layer 1 to 2: it must skip at least one of the 2 "
      "layers, from 0, the input, to 3, the output",
      [&] { residual.addShortcut(1, 2); });
  expectError("no shortcut goes from layer -1 to 2", [&] { residual.addShortcut(-1, 2); });
  expectError("no shortcut goes from layer 0 to 4", [&] { residual.addShortcut(0, 4, times(2)); });
  expectError("Residual: the shortcut from layer 0 to 3 is there already",
              [&] { residual.addShortcut(0, 3); });
  expectError("Residual: no layer 4 to scale the input of among 2 layers and the output 3",
              [&] { residual.addScale(4, 1); });
  expectError("Residual: the input of layer 1 has a scale already",
              [&] { residual.addScale(1, 1); });
  expectError("Residual: takes one input, not 0", [&] { residual(std::vector<Variable>{}); });
  EXPECT_EQ(residual.modules().size(), 2u);
}

}  // namespace
}  // namespace fl::test
