// Mixed precision: the type that each function computes in at each level.
#include "fl/autograd/Functions.h"
#include "fl/autograd/OptimMode.h"
#include "tests/CountingBackend.h"
#include "tests/autograd/GradientCheck.h"

namespace fl::test {
namespace {

constexpr OptimLevel kLevels[] = {OptimLevel::DEFAULT, OptimLevel::O1, OptimLevel::O2,
                                  OptimLevel::O3};

class OptimModeTest : public ::testing::Test {
 protected:
  void TearDown() override {
    OptimMode::get().setOptimLevel(OptimLevel::DEFAULT);
    OptimMode::get().setType(dtype::f16);
  }
};

// What a function computes in. Given: what it is given. Short: 16 bits at all levels but DEFAULT.
// LongAtO1 and LongAtO2: the same, but 32 bits at O1, or at O1 and O2. Long: as LongAtO1, but the
// result never has 16 bits.
enum Kind { Given, Short, LongAtO1, LongAtO2, Long };

struct Row {
  const char* name;
  Kind kind;
  Variable (*function)(const Variable& x);  // of a (4, 4), all in (0, 1)
};

Variable none(const Variable& x) { return Variable(Tensor(x.type()), false); }
Variable images(const Variable& x) { return moddims(x, {4, 2, 2, 1}); }
Variable sequences(const Variable& x) { return moddims(x, {2, 4, 2}); }
Variable classes() { return Variable(full(Shape({4}), 1, dtype::s32), false); }

const Row kRows[] = {
    {"+", Given, [](const Variable& x) { return x + 2.0 + x; }},
    {"-", Given, [](const Variable& x) { return 2.0 - x - 1.0 - x; }},
    {"*", Given, [](const Variable& x) { return x * 2.0 * x; }},
    {"/", Given, [](const Variable& x) { return 2.0 / x / 3.0 / x; }},
    {"negate", Given, negate},
    {"reciprocal", LongAtO1, reciprocal},
    {"exp", LongAtO1, exp},
    {"log", LongAtO1, log},
    {"pow", LongAtO1, [](const Variable& x) { return pow(x, 3); }},
    {"log1p", LongAtO1, log1p},
    {"sin", Given, sin},
    {"cos", Given, cos},
    {"sqrt", Given, sqrt},
    {"tanh", Given, tanh},
    {"clamp", Given, [](const Variable& x) { return clamp(x, -1, 2); }},
    {"sigmoid", Given, sigmoid},
    {"swish", Given, [](const Variable& x) { return swish(x, 1.5); }},
    {"erf", LongAtO1, erf},
    {"abs", Given, [](const Variable& x) { return abs(x); }},
    {"relu", Given, relu},
    {"gelu", LongAtO1, gelu},
    {"exactGelu", LongAtO1, exactGelu},
    {"max", Given, [](const Variable& x) { return max(max(x, -1.0), x - 1.0); }},
    {"min", Given, [](const Variable& x) { return min(min(x, 2.0), x + 1.0); }},
    {"transpose", Given, [](const Variable& x) { return transpose(x); }},
    {"reorder", Given, [](const Variable& x) { return reorder(x, {1, 0}); }},
    {"tileAs", Given, [](const Variable& x) { return tileAs(x, Shape({4, 8})); }},
    {"sumAs", Given, [](const Variable& x) { return sumAs(x, Shape({4, 1})); }},
    {"concatenate", Given, [](const Variable& x) { return concatenate({x, x}, 1); }},
    {"split", Given, [](const Variable& x) { return split(x, 4, 1)[0]; }},
    {"tile", Given, [](const Variable& x) { return tile(x, {1, 2}); }},
    {"flat", Given, flat},
    {"moddims", Given, [](const Variable& x) { return moddims(x, {8, 2}); }},
    {"padding", Given, [](const Variable& x) { return padding(x, {{1, 0}}, 2); }},
    {"sum", LongAtO1, [](const Variable& x) { return sum(x, {0}); }},
    {"mean", LongAtO1, [](const Variable& x) { return mean(x, {0}); }},
    {"var", LongAtO1, [](const Variable& x) { return var(x, {0}); }},
    {"norm", LongAtO1, [](const Variable& x) { return norm(x, {0}); }},
    {"normalize", LongAtO1, [](const Variable& x) { return normalize(x, {0}); }},
    {"softmax", Long, [](const Variable& x) { return softmax(x, 0); }},
    {"logSoftmax", Long, [](const Variable& x) { return logSoftmax(x, 0); }},
    {"matmul", Given, [](const Variable& x) { return matmul(x, x); }},
    {"matmulTN", Given, [](const Variable& x) { return matmulTN(x, x); }},
    {"matmulNT", Given, [](const Variable& x) { return matmulNT(x, x); }},
    {"linear", Short, [](const Variable& x) { return linear(x, x, flat(x(0))); }},
    {"linear without bias", Short, [](const Variable& x) { return linear(x, x); }},
    {"conv2d", Short,
     [](const Variable& x) {
       return conv2d(images(x), moddims(x, {2, 2, 2, 2}), moddims(x(0)(range(2)), {1, 1, 2, 1}));
     }},
    {"conv2d without bias", Short,
     [](const Variable& x) { return conv2d(images(x), moddims(x, {2, 2, 2, 2})); }},
    {"pool2d", Given, [](const Variable& x) { return pool2d(images(x), 2, 2); }},
    {"batchnorm", LongAtO2,
     [](const Variable& x) {
       Variable mean = none(x), variance = none(x);
       return batchnorm(images(x), none(x), none(x), mean, variance, {2}, true, 0, 1e-3);
     }},
    {"rnn", Given,
     [](const Variable& x) {
       return std::get<0>(
           rnn(moddims(x, {4, 2, 2}), none(x), none(x), flat(x), 2, 1, RnnMode::TANH, false, 0));
     }},
    {"embedding", Given, [](const Variable& x) { return embedding(classes(), x); }},
    {"dropout", Given, [](const Variable& x) { return dropout(x, 0.0) + dropout(x, 1.0); }},
    {"gatedlinearunit", Given, [](const Variable& x) { return gatedlinearunit(x, 1); }},
    {"relativePositionalEmbeddingRotate", Given, relativePositionalEmbeddingRotate},
    {"multiheadAttention", Given,
     [](const Variable& x) {
       const Variable y = sequences(x);
       return multiheadAttention(y, y, y, moddims(x, {8, 2}), none(x), none(x), 2, 0);
     }},
    {"binaryCrossEntropy", LongAtO1, [](const Variable& x) { return binaryCrossEntropy(x, x); }},
    {"categoricalCrossEntropy", LongAtO1,
     [](const Variable& x) { return categoricalCrossEntropy(x, classes()); }},
    {"weightedCategoricalCrossEntropy", Given,
     [](const Variable& x) { return weightedCategoricalCrossEntropy(x, classes(), x(0), -1); }},
};

// The type of the result for an input of type `given`, written out once more.
dtype expected(Kind kind, OptimLevel level, dtype given, dtype chosen) {
  if (kind == Long) {
    const dtype computed = expected(LongAtO1, level, given, chosen);
    return computed == dtype::f16 || computed == dtype::bf16 ? dtype::f32 : computed;
  }
  if (level == OptimLevel::DEFAULT || kind == Given) {
    return given;
  }
  const bool isLong =
      (level == OptimLevel::O1 && kind != Short) || (level == OptimLevel::O2 && kind == LongAtO2);
  if (!isLong) {
    return chosen;
  }
  return given == dtype::f16 || given == dtype::bf16 ? dtype::f32 : given;
}

// Forward and backward only record: nothing is read.
TEST_F(OptimModeTest, TypesOfResultsAndGradients) {
  testing::CountingBackend backend(defaultTensorBackend());
  const BackendScope scope(backend);
  for (dtype chosen : {dtype::f16, dtype::bf16}) {
    OptimMode::get().setType(chosen);
    for (OptimLevel level : kLevels) {
      for (dtype given : {dtype::f16, dtype::bf16, dtype::f32, dtype::f64}) {
        for (const Row& row : kRows) {
          SCOPED_TRACE(std::string(row.name) + " of " + dtypeToString(given) + " at level " +
                       std::to_string(static_cast<int>(level)));
          OptimMode::get().setOptimLevel(level);
          Variable x(full(Shape({4, 4}), 0.5, given), true);
          Variable y = row.function(x);
          EXPECT_EQ(y.type(), expected(row.kind, level, given, chosen));
          y.backward();
          EXPECT_EQ(x.grad().type(), given);
          EXPECT_EQ(backend.reads, 0);
        }
      }
    }
  }
  EXPECT_EQ(Variable(full(Shape({2}), 1.5), false).scalar<float>(), 1.5);
  EXPECT_GT(backend.reads, 0);
}

// What is computed in 16 bits is near what is computed in 64.
TEST_F(OptimModeTest, ValuesAndGradients) {
  const Tensor input = randomTensor({4, 4}, 0.4, 0.9);
  for (const Row& row : kRows) {
    Variable exact(input, true);
    OptimMode::get().setOptimLevel(OptimLevel::DEFAULT);
    Variable wanted = row.function(exact);
    // Equal weights would leave nothing of the gradients of what is normalised.
    const Tensor weights = randomTensor(wanted.shape(), 0.5, 1.5);
    wanted.backward(Variable(weights, false));
    for (auto [level, type, tolerance] :
         {std::tuple(OptimLevel::O1, dtype::f16, 0.01), {OptimLevel::O3, dtype::bf16, 0.08}}) {
      SCOPED_TRACE(std::string(row.name) + " in " + dtypeToString(type));
      OptimMode::get().setOptimLevel(level);
      OptimMode::get().setType(type);
      Variable x(input.astype(dtype::f32), true);
      Variable y = row.function(x);
      y.backward(Variable(weights.astype(y.type()), false));
      expectNear(valuesOf(y.tensor()), valuesOf(wanted.tensor()), tolerance);
      expectNear(valuesOf(x.grad().tensor()), valuesOf(exact.grad().tensor()), tolerance);
    }
  }
}

TEST_F(OptimModeTest, OnlyFloatsAreCast) {
  OptimMode::get().setOptimLevel(OptimLevel::O3);
  const Variable x(full(Shape({300}), 300, dtype::s32), false);
  EXPECT_EQ(sum(x, {}).type(), dtype::s32);
  EXPECT_EQ(sum(x, {}).scalar<int>(), 90000);
}

TEST_F(OptimModeTest, NothingHappensByDefault) {
  const Variable x(full(Shape({2}), 0.5), true);
  EXPECT_EQ(&fl::detail::adjustInputType(x, "exp").tensor(), &x.tensor());
  EXPECT_EQ(fl::detail::adjustInputType(x.tensor(), "exp").type(), dtype::f32);
  OptimMode::get().setOptimLevel(OptimLevel::O1);
  EXPECT_EQ(&fl::detail::adjustInputType(x, "exp").tensor(), &x.tensor());
  EXPECT_EQ(fl::detail::adjustInputType(x.tensor(), "linear").type(), dtype::f16);
}

// The user's own functions take part under their names.
Variable doubled(const Variable& in) { return FL_ADJUST_INPUT_TYPE(in) * 2.0; }

TEST_F(OptimModeTest, FunctionsOfTheUser) {
  Variable x(full(Shape({2}), 0.5), true);
  EXPECT_EQ(doubled(x).type(), dtype::f32);
  OptimMode::get().setOptimLevel(OptimLevel::O1);
  Variable y = doubled(x);
  EXPECT_EQ(y.type(), dtype::f16);
  y.backward();
  EXPECT_EQ(x.grad().type(), dtype::f32);
  expectNear(valuesOf(x.grad().tensor()), {2, 2}, 0);
}

// Types are compared after the cast: activations of 16 bits meet parameters of 32.
TEST_F(OptimModeTest, ParametersOf32Bits) {
  const Tensor input = randomTensor({4, 6}).astype(dtype::f32);
  const Variable targets(Tensor::fromVector(std::vector<int>{0, 2, 1, 0, 1, 2}), false);
  Variable w1(randomTensor({5, 4}).astype(dtype::f32), true);
  Variable w2(randomTensor({3, 5}).astype(dtype::f32), true);
  const auto loss = [&] {
    const Variable hidden = relu(linear(Variable(input, false), w1));
    return categoricalCrossEntropy(logSoftmax(linear(hidden, w2), 0), targets);
  };
  loss().backward();
  const std::vector<double> wanted1 = valuesOf(w1.grad().tensor());
  const std::vector<double> wanted2 = valuesOf(w2.grad().tensor());
  for (OptimLevel level : {OptimLevel::O1, OptimLevel::O2, OptimLevel::O3}) {
    OptimMode::get().setOptimLevel(level);
    w1.zeroGrad();
    w2.zeroGrad();
    loss().backward();
    EXPECT_EQ(w1.grad().type(), dtype::f32);
    expectNear(valuesOf(w1.grad().tensor()), wanted1, 0.01);
    expectNear(valuesOf(w2.grad().tensor()), wanted2, 0.01);
  }
  OptimMode::get().setOptimLevel(OptimLevel::DEFAULT);
  EXPECT_THROW(linear(Variable(input.astype(dtype::f16), false), w1), std::invalid_argument);
}

TEST_F(OptimModeTest, LevelsByName) {
  EXPECT_EQ(OptimMode::get().getOptimLevel(), OptimLevel::DEFAULT);
  EXPECT_EQ(OptimMode::get().getType(), dtype::f16);
  EXPECT_EQ(OptimMode::kStringToOptimLevel.size(), 4u);
  EXPECT_EQ(OptimMode::toOptimLevel("DEFAULT"), OptimLevel::DEFAULT);
  EXPECT_EQ(OptimMode::toOptimLevel("O1"), OptimLevel::O1);
  EXPECT_EQ(OptimMode::toOptimLevel("O2"), OptimLevel::O2);
  EXPECT_EQ(OptimMode::toOptimLevel("O3"), OptimLevel::O3);
  EXPECT_NE(errorOf([] {
              OptimMode::toOptimLevel("O4");
            }).find("OptimMode::toOptimLevel: no level 'O4'; there are DEFAULT, O1, O2 and O3"),
            std::string::npos);
  EXPECT_NE(errorOf([] {
              OptimMode::get().setType(dtype::f32);
            }).find("OptimMode::setType: the type must be f16 or bf16, not f32"),
            std::string::npos);
}

}  // namespace
}  // namespace fl::test
