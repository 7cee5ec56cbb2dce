// Modules: parameters, modes, copies, containers, layers against the functions they wrap.
#include <cmath>
#include <set>
#include <stdexcept>

#include "fl/autograd/Functions.h"
#include "fl/autograd/Utils.h"
#include "fl/nn/modules/Module.h"
#include "fl/nn/nn.h"
#include "fl/tensor/Random.h"
#include "tests/nn/ModuleChecks.h"

namespace fl::test {
namespace {

Variable constantInput(const Shape& shape, float value) { return input(full(shape, value)); }

TEST(Module, ParametersAreHandles) {
  Linear layer(3, 2);
  ASSERT_EQ(layer.numParamTensors(), 2);
  layer.params()[0].tensor() = full(Shape({2, 3}), 1.0);
  layer.param(1).tensor() = full(Shape({2}), 0.5);
  EXPECT_EQ(valuesOf(layer(constantInput({3}, 1)).tensor()), (std::vector<float>{3.5, 3.5}));

  layer.setParams(param(full(Shape({2}), 10.0)), 1);
  EXPECT_EQ(valuesOf(layer(constantInput({3}, 1)).tensor()), (std::vector<float>{13, 13}));
  EXPECT_NE(errorOf<std::out_of_range>([&] {
              layer.param(2);
            }).find("Module: no parameter 2 among 2, at "),
            std::string::npos);
  EXPECT_THROW(layer.setParams(param(full(Shape({2}), 1.0)), -1), std::out_of_range);
}

TEST(Module, TrainEvalZeroGrad) {
  Linear layer(3, 2);
  sum(layer(constantInput({3, 4}, 1)), {}).backward();
  EXPECT_TRUE(layer.param(0).isGradAvailable());
  layer.zeroGrad();
  EXPECT_FALSE(layer.param(0).isGradAvailable());
  layer.eval();
  EXPECT_FALSE(layer.param(0).isCalcGrad());
  EXPECT_FALSE(layer(constantInput({3, 4}, 1)).isCalcGrad());
  layer.train();
  EXPECT_TRUE(layer(constantInput({3, 4}, 1)).isCalcGrad());
}

// Copying copies parameters, moving keeps them, whichever way it is done.
TEST(Module, CopiesAreIndependent) {
  Linear layer(3, 2);
  Linear copy(layer);
  Linear assigned(1, 1);
  assigned = layer;
  const std::unique_ptr<Module> clone = layer.clone();
  EXPECT_TRUE(allParamsClose(layer, copy, 1e-9));
  EXPECT_TRUE(allParamsClose(layer, assigned, 1e-9));
  EXPECT_TRUE(allParamsClose(layer, *clone, 1e-9));
  const Tensor before = layer.param(0).tensor();
  copy.param(0).tensor() += 1;
  assigned.param(0).tensor() += 1;
  clone->param(0).tensor() += 1;
  EXPECT_TRUE(allClose(layer.param(0).tensor(), before, 1e-9));
  EXPECT_FALSE(allParamsClose(layer, copy));

  Linear moved(std::move(copy));
  EXPECT_EQ(valuesOf(moved.param(0).tensor()), valuesOf(clone->param(0).tensor()));
  EXPECT_FALSE(allParamsClose(layer, *std::make_shared<Linear>(3, 4)));
}

TEST(Module, InputCountsAreChecked) {
  Linear layer(3, 2);
  const Variable x = constantInput({3}, 1);
  EXPECT_EQ(layer(std::vector<Variable>{x}).size(), 1u);
  EXPECT_NE(errorOf([&] {
              layer(std::vector<Variable>{x, x});
            }).find("Linear (3->2) (with bias): takes one input, not 2"),
            std::string::npos);
  MeanSquaredError loss;
  EXPECT_NE(errorOf([&] {
              loss(std::vector<Variable>{x});
            }).find("MeanSquaredError: takes two inputs, not 1"),
            std::string::npos);
}

// ---- Layers ----

TEST(Layers, LinearInitialisation) {
  setSeed(11);
  const Linear layer(300, 200);
  EXPECT_EQ(layer.param(0).shape(), Shape({200, 300}));
  EXPECT_EQ(layer.param(1).shape(), Shape({200}));
  // Uniform within sqrt(3 / 300) and sqrt(1 / 300); 60000 draws come close to the bound.
  expectUniform(layer.param(0).tensor(), std::sqrt(3.0 / 300), 0.999);
  expectUniform(layer.param(1).tensor(), std::sqrt(1.0 / 300), 0.9);
  EXPECT_EQ(Linear(3, 2, /*bias=*/false).numParamTensors(), 1);
  EXPECT_EQ(layer.prettyString(), "Linear (300->200) (with bias)");
  EXPECT_THROW(Linear(0, 2), std::invalid_argument);
}

TEST(Layers, LinearAroundParameters) {
  const Variable w = param(full(Shape({2, 3}), 2.0));
  EXPECT_EQ(valuesOf(Linear(w)(constantInput({3}, 1)).tensor()), (std::vector<float>{6, 6}));
  const Variable b = param(full(Shape({2}), 1.0));
  EXPECT_EQ(valuesOf(Linear(w, b)(constantInput({3}, 1)).tensor()), (std::vector<float>{7, 7}));
  EXPECT_NE(errorOf([&] {
              Linear(w, param(full(Shape({3}), 1.0)));
            }).find("Linear: bias (3) does not fit weight (2, 3)"),
            std::string::npos);
}

// Parameters are cast to the input's dtype; their gradients come back in their own.
TEST(Layers, ComputeInTheInputsType) {
  Linear layer(3, 2);
  Variable y = layer(input(full(Shape({3}), 1.0, dtype::f64)));
  EXPECT_EQ(y.type(), dtype::f64);
  y.backward();
  EXPECT_EQ(layer.param(0).grad().type(), dtype::f32);
}

TEST(Layers, Conv2D) {
  setSeed(12);
  Conv2D layer(4, 60, 5, 3, 1, 1, PaddingMode::SAME, PaddingMode::SAME, 1, 1, true, 2);
  EXPECT_EQ(layer.param(0).shape(), Shape({5, 3, 2, 60}));
  EXPECT_EQ(layer.param(1).shape(), Shape({1, 1, 60, 1}));
  expectUniform(layer.param(0).tensor(), std::sqrt(3.0 / 30), 0.99);
  expectUniform(layer.param(1).tensor(), std::sqrt(1.0 / 30), 0.9);
  const Variable x = input(rand({7, 6, 4, 2}));
  const Variable y = layer(x);
  EXPECT_EQ(y.shape(), Shape({7, 6, 60, 2}));
  EXPECT_TRUE(allClose(y, conv2d(x, layer.param(0), layer.param(1), 1, 1, 2, 1, 1, 1, 2)));
  EXPECT_EQ(layer.prettyString(), "Conv2D (4->60, 5x3, 1,1, SAME,SAME, 1,1) (with bias)");

  Conv2D strided(param(rand({3, 3, 2, 4})), 2, 2, 1, 1);
  EXPECT_EQ(strided(input(rand({8, 8, 2, 1}))).shape(), Shape({4, 4, 4, 1}));
  EXPECT_NE(errorOf([&] {
              strided(input(rand({8, 8})));
            }).find("the input must be (W, H, C, N), not f32[8,8]"),
            std::string::npos);
  EXPECT_THROW(Conv2D(3, 4, 1, 1, 1, 1, 0, 0, 1, 1, true, 2), std::invalid_argument);
  EXPECT_THROW(Conv2D(param(rand({3, 3, 2, 4})), param(rand({4}))), std::invalid_argument);
  const auto words = [](int stride, int groups) {
    return errorOf([&] { Conv2D(param(rand({3, 3, 2, 4})), stride, 1, 0, 0, 1, 1, groups); });
  };
  EXPECT_NE(words(0, 1).find("Conv2D: strides must be positive, not 0,1"), std::string::npos);
  EXPECT_NE(words(1, 3).find("Conv2D: 3 groups do not divide 6->4 channels"), std::string::npos);
}

TEST(Layers, Pool2D) {
  const Variable x = input(rand({6, 4, 2, 3}));
  EXPECT_TRUE(allClose(Pool2D(2, 2, 2, 2)(x), pool2d(x, 2, 2, 2, 2)));
  Pool2D same(3, 3, 1, 1, PaddingMode::SAME, PaddingMode::SAME, PoolingMode::AVG_EXCLUDE_PADDING);
  EXPECT_EQ(same(x).shape(), x.shape());
  EXPECT_TRUE(allClose(same(x), pool2d(x, 3, 3, 1, 1, 1, 1, PoolingMode::AVG_EXCLUDE_PADDING)));
  const Variable image = input(rand({6, 4}));
  EXPECT_TRUE(allClose(Pool2D(2, 2)(image), pool2d(moddims(image, {6, 4, 1, 1}), 2, 2)));
}

TEST(Layers, Activations) {
  const Variable x = input(randn({4, 3}));
  EXPECT_TRUE(allClose(ReLU()(x), relu(x)));
  EXPECT_TRUE(allClose(Sigmoid()(x), sigmoid(x)));
  EXPECT_TRUE(allClose(Tanh()(x), tanh(x)));
  EXPECT_TRUE(allClose(LogSoftmax()(x), logSoftmax(x, 0)));
  EXPECT_TRUE(allClose(LogSoftmax(1)(x), logSoftmax(x, 1)));
  EXPECT_TRUE(allClose(Identity()(x), x));
  const Variable y = input(rand({2}));
  const std::vector<Variable> both = Identity()({x, y});
  ASSERT_EQ(both.size(), 2);
  EXPECT_TRUE(allClose(both[0], x) && allClose(both[1], y));
  EXPECT_TRUE(allClose(Padding({{1, 2}, {0, 3}}, 0.5)(x), Padding({1, 2}, {0, 3}, 0.5)(x)));
  EXPECT_TRUE(allClose(Transform([](const Variable& v) { return v * 2.0; })(x), x * 2.0));
  EXPECT_EQ(View({2, -1})(x).shape(), Shape({2, 6}));
  EXPECT_EQ(View({-1})(x).shape(), Shape({12}));
}

TEST(Layers, DropoutIsTheIdentityInEvaluation) {
  setSeed(5);
  Dropout layer(0.5);
  const Variable x = constantInput({1000}, 1);
  const std::vector<float> dropped = valuesOf(layer(x).tensor());
  EXPECT_NEAR(std::count(dropped.begin(), dropped.end(), 0.0f), 500, 5 * 16);
  layer.eval();
  EXPECT_EQ(valuesOf(layer(x).tensor()), std::vector<float>(1000, 1.0f));
}

TEST(Layers, DropoutTakesARatioFromZeroToOne) {
  const Variable x = constantInput({50}, 1);
  EXPECT_EQ(valuesOf(Dropout(0)(x).tensor()), std::vector<float>(50, 1.0f));
  EXPECT_EQ(valuesOf(Dropout(1)(x).tensor()), std::vector<float>(50, 0.0f));
  const auto wordsFor = [](double ratio) {
    const std::string words = errorOf([&] { Dropout layer(ratio); });
    return words.substr(0, words.find(", at "));
  };
  EXPECT_EQ(wordsFor(-1), "Dropout: the ratio must be in [0, 1], not -1");
  EXPECT_EQ(wordsFor(1.5), "Dropout: the ratio must be in [0, 1], not 1.5");
  EXPECT_EQ(wordsFor(std::nan("")), "Dropout: the ratio must be in [0, 1], not nan");
}

TEST(Losses, Values) {
  const Variable x = input(Tensor::fromVector(Shape({2, 2}), std::vector<float>{1, 2, 3, 4}));
  const Variable y = input(Tensor::fromVector(Shape({2, 2}), std::vector<float>{1, 0, 0, 8}));
  EXPECT_FLOAT_EQ(MSE()(x, y).scalar<float>(), (4 + 9 + 16) / 4.0f);
  EXPECT_FLOAT_EQ(MAE()(x, y).scalar<float>(), (2 + 3 + 4) / 4.0f);
  EXPECT_EQ(MSE()(x, y).shape(), Shape());
  const Variable classes = input(Tensor::fromVector(std::vector<int>{1, 0}));
  EXPECT_FLOAT_EQ(CategoricalCrossEntropy()(x, classes).scalar<float>(), -2.5f);
  EXPECT_FLOAT_EQ(CategoricalCrossEntropy(ReduceMode::SUM, 0)(x, classes).scalar<float>(), -2.0f);
  EXPECT_NE(errorOf([&] {
              MSE()(x, constantInput({2}, 1));
            }).find("MeanSquaredError: inputs f32[2,2] and targets f32[2] differ in shape"),
            std::string::npos);
}

TEST(Losses, TakeWideTargetsOfNarrowOutputs) {
  const Variable x = input(Tensor::fromVector(std::vector<float>{1, 3}).astype(dtype::f16));
  const Variable y = input(Tensor::fromVector(std::vector<float>{0.5, 1}));
  EXPECT_EQ(MSE()(x, y).astype(dtype::f32).scalar<float>(), (0.25f + 4) / 2);
  EXPECT_EQ(MAE()(x, y).astype(dtype::f32).scalar<float>(), (0.5f + 2) / 2);
  const Variable half = input(full({2}, 0.5, dtype::f16));
  EXPECT_NEAR(BinaryCrossEntropy()(half, y).astype(dtype::f32).scalar<float>(), std::log(2), 1e-3);
}

// ---- Containers ----

class Residual : public Container {
 public:
  Residual() {
    params_.push_back(fl::param(full(Shape({1}), 0.5)));
    add(Linear(2, 2));
    add(std::make_unique<ReLU>());
    params_.push_back(fl::param(full(Shape({1}), 0.25)));
  }
  FL_BASIC_CONTAINER_CLONING(Residual)
  std::vector<Variable> forward(const std::vector<Variable>& inputs) override {
    return {inputs[0] * params_[0] +
            module(1)->forward(module(0)->forward(inputs))[0] * params_[3]};
  }
  std::string prettyString() const override { return "Residual" + Container::prettyString(); }
};

TEST(Containers, ChildrenKeepTheirParameters) {
  auto layer = std::make_shared<Linear>(3, 2);
  Sequential model;
  model.add(layer);
  model.add(ReLU());
  model.add(Linear(2, 1));
  ASSERT_EQ(model.numParamTensors(), 4);
  model.param(0).tensor() = full(Shape({2, 3}), 7.0);
  EXPECT_EQ(layer->param(0).scalar<float>(), 7);
  model.setParams(param(full(Shape({2, 3}), 8.0)), 0);
  EXPECT_EQ(layer->param(0).scalar<float>(), 8);
  model.eval();
  EXPECT_FALSE(layer->param(0).isCalcGrad());
  EXPECT_EQ(model.module(0), layer);
  EXPECT_EQ(model.modules().size(), 3u);
  EXPECT_EQ(numTotalParams(std::make_shared<Sequential>(model)), 2 * 3 + 2 + 2 + 1);
  EXPECT_NE(errorOf<std::out_of_range>([&] {
              model.module(3);
            }).find("Container: no module 3 among 3, at "),
            std::string::npos);
  EXPECT_NE(errorOf([&] { model.add(std::shared_ptr<Linear>()); }).find("cannot add a null module"),
            std::string::npos);
}

TEST(Containers, SequentialRunsInOrder) {
  Sequential model;
  model.add(Transform([](const Variable& v) { return v + 1.0; }));
  model.add(Transform([](const Variable& v) { return v * 2.0; }));
  EXPECT_EQ(model(constantInput({1}, 3)).scalar<float>(), 8);
  EXPECT_EQ(model.forward(std::vector<Variable>{constantInput({1}, 3)})[0].scalar<float>(), 8);
  Sequential outer;
  outer.add(std::move(model));
  outer.add(Transform([](const Variable& v) { return v - 1.0; }, "minus"));
  EXPECT_EQ(outer(constantInput({1}, 3)).scalar<float>(), 7);
  EXPECT_NE(outer.prettyString().find("(1): Transform (minus)"), std::string::npos);
}

TEST(Containers, CopiesAreIndependentAndKeepTheOrder) {
  Residual model;
  Residual copy(model);
  const std::unique_ptr<Module> clone = model.clone();
  const Variable x = constantInput({2, 3}, 1);
  const std::vector<float> expected = valuesOf(model.forward({x})[0].tensor());
  EXPECT_EQ(valuesOf(copy.forward({x})[0].tensor()), expected);
  EXPECT_EQ(valuesOf(clone->forward({x})[0].tensor()), expected);
  for (int i = 0; i < model.numParamTensors(); ++i) {
    copy.param(i).tensor() += 1;
    clone->param(i).tensor() += 1;
  }
  EXPECT_EQ(valuesOf(model.forward({x})[0].tensor()), expected);
  // Within a copy, container and child still share.
  EXPECT_EQ(valuesOf(copy.param(1).tensor()), valuesOf(copy.module(0)->param(0).tensor()));
  copy = model;
  EXPECT_EQ(valuesOf(copy.forward({x})[0].tensor()), expected);
}

// By the child that they stand behind.
TEST(Containers, KnowTheirOwnParameters) {
  const Residual container;
  const auto orphans = container.getOrphanedParamsIdxMap();
  ASSERT_EQ(orphans.size(), 2u);
  EXPECT_EQ(orphans.find(-1)->second, 0);
  EXPECT_EQ(orphans.find(0)->second, 3);
  EXPECT_EQ(container.param(0).scalar<float>(), 0.5);
  EXPECT_EQ(container.param(3).scalar<float>(), 0.25);
}

// As programs for Flashlight copy a container that holds more than its children.
class CopiesItself : public Container {
 public:
  CopiesItself() {
    for (const float value : {1, 2}) {
      params_.push_back(fl::param(full({1}, value)));
    }
    add(Linear(2, 2));
    add(ReLU());
    params_.push_back(fl::param(full({1}, 3.0)));
  }
  CopiesItself(const CopiesItself& other) : Container() {
    train_ = other.train_;
    const auto own = other.getOrphanedParamsIdxMap();
    for (int child = -1; child < static_cast<int>(other.modules_.size()); ++child) {
      if (child >= 0) {
        add(other.modules_[child]->clone());
      }
      const auto [first, last] = own.equal_range(child);
      std::set<int> positions;
      for (auto each = first; each != last; ++each) {
        positions.insert(each->second);
      }
      for (const int position : positions) {
        params_.push_back(other.params_[position].copy());
      }
    }
  }
  std::vector<Variable> forward(const std::vector<Variable>& inputs) override { return inputs; }
  std::unique_ptr<Module> clone() const override { return std::make_unique<CopiesItself>(*this); }
};

TEST(Containers, AreCopiedChildByChild) {
  const CopiesItself container;
  const CopiesItself copy(container);
  ASSERT_EQ(copy.numParamTensors(), 5);
  EXPECT_TRUE(allParamsClose(container, copy, 1e-9));
  EXPECT_EQ(copy.getOrphanedParamsIdxMap(), container.getOrphanedParamsIdxMap());
}

TEST(Containers, AModuleAddedTwiceStaysOne) {
  auto layer = std::make_shared<Linear>(2, 2);
  Sequential model;
  model.add(layer);
  model.add(layer);
  Sequential copy(model);
  EXPECT_EQ(copy.module(0), copy.module(1));
  EXPECT_NE(copy.module(0), model.module(0));
}

// Errors in a model name the user's line and the layer.
TEST(Containers, ErrorsNameTheLayer) {
  Sequential model;
  model.add(Linear(3, 2));
  model.add(Linear(5, 2));
  const std::string message = errorOf([&] { model(constantInput({3}, 1)); });
  EXPECT_NE(message.find("linear: input f32[2] does not fit weight f32[2,5]"), std::string::npos)
      << message;
  EXPECT_NE(message.find("(in Linear (5->2) (with bias))"), std::string::npos) << message;
  EXPECT_NE(message.find("tests/nn/ModuleTest.cpp:"), std::string::npos) << message;
}

// ---- Helpers ----

TEST(Utils, DerivePadding) {
  const int same = static_cast<int>(PaddingMode::SAME);
  EXPECT_EQ(derivePadding(28, 5, 1, same, 1), 2);
  EXPECT_EQ(derivePadding(28, 4, 1, same, 1), 2);  // an odd total pads one more
  EXPECT_EQ(derivePadding(28, 3, 1, same, 2), 2);
  EXPECT_EQ(derivePadding(28, 3, 2, same, 1), 1);
  EXPECT_EQ(derivePadding(27, 3, 2, same, 1), 1);
  EXPECT_EQ(derivePadding(28, 2, 2, same, 1), 0);
  EXPECT_EQ(derivePadding(28, 1, 2, same, 1), 0);
  EXPECT_EQ(derivePadding(28, 5, 1, 3, 1), 3);
  EXPECT_THROW(derivePadding(28, 5, 1, -2, 1), std::invalid_argument);
  EXPECT_NE(errorOf([&] {
              derivePadding(28, 5, 0, same, 1);
            }).find("derivePadding: the stride must be positive, not 0"),
            std::string::npos);
}

TEST(Utils, Join) {
  const Tensor a = Tensor::fromVector(std::vector<float>{1, 2, 3});
  const Tensor b = Tensor::fromVector(std::vector<float>{4});
  Tensor joined = join({a, b}, -1);
  EXPECT_EQ(joined.shape(), Shape({3, 2}));
  EXPECT_EQ(valuesOf(joined), (std::vector<float>{1, 2, 3, 4, -1, -1}));
  EXPECT_EQ(join({reshape(a, {3, 1}), reshape(b, {1, 1})}).shape(), Shape({3, 2}));
  EXPECT_EQ(join({reshape(a, {1, 3}), reshape(b, {1, 1})}, 0, 0).shape(), Shape({2, 3}));
  EXPECT_EQ(join({a, Tensor()}, 9).shape(), Shape({3, 2}));
  EXPECT_TRUE(join({}).isEmpty());
  EXPECT_NE(errorOf([&] { join({a, b}, 0, 0); }).find("join: dimension 0 of (3) is not free"),
            std::string::npos);
}

TEST(Init, Distributions) {
  setSeed(1);
  expectUniform(kaimingUniform(Shape({100, 100}), 4).tensor(), std::sqrt(3.0 / 4), 0.999);
  expectUniform(glorotUniform(Shape({100, 100}), 4, 8).tensor(), std::sqrt(6.0 / 12), 0.999);
  expectNormal(kaimingNormal(Shape({100, 100}), 4).tensor(), 0, std::sqrt(1.0 / 4));
  expectNormal(glorotNormal(Shape({100, 100}), 4, 8).tensor(), 0, std::sqrt(2.0 / 12));
  expectNormal(normal(100, 100, 3, 5).tensor(), 5, 3);
  expectUniform(uniform(100, 100, 2, 4).tensor() - 3.0, 1, 0.999);
  EXPECT_THROW(kaimingNormal(Shape({1}), 0), std::invalid_argument);
}

TEST(Init, Constants) {
  EXPECT_EQ(valuesOf(constant(2, 1, 2).tensor()), (std::vector<float>{2, 2}));
  EXPECT_EQ(constant(2, Shape({3}), dtype::f64, false).type(), dtype::f64);
  EXPECT_EQ(valuesOf(identity(2, 2).tensor()), (std::vector<float>{1, 0, 0, 1}));
  EXPECT_THROW(identity(2, 3), std::invalid_argument);
  EXPECT_EQ(fl::scalar(3.5f).shape(), Shape());
  EXPECT_TRUE(param(full(Shape({1}), 1.0)).isCalcGrad());
  EXPECT_FALSE(noGrad(full(Shape({1}), 1.0)).isCalcGrad());
}

}  // namespace
}  // namespace fl::test
