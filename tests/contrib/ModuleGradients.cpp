// Every module of fl/contrib, in all its options, that has a gradient.
#include "tests/nn/ModuleGradients.h"

#include "fl/contrib/contrib.h"
#include "fl/nn/nn.h"
#include "tests/ErrorOf.h"

namespace fl::test {
namespace {

using Cases = std::vector<GradientCase>;

Tensor none() { return Tensor(dtype::f32); }

// Of two examples, the last one shorter by one; f32, for it has no gradient.
Tensor padMask(Dim time) {
  Tensor mask = full({time, 2}, 1.0);
  mask(time - 1, 1) = 0;
  return mask;
}

Tensor steps(Dim time, Dim batch = 2) { return randomTensor({4, time, batch}); }

Cases transformers() {
  const auto with = [](const Tensor& mask) { return Inputs{steps(3), mask}; };
  return {
      {FL_MODULE(Transformer, 4, 2, 3, 2, 0, 0, 0), {with(none()), {steps(1, 1), none()}}},
      {FL_MODULE(Transformer, 4, 2, 3, 2, 3, 0, 0, true, true), {with(padMask(3))}},
      {FL_MODULE(Transformer, 4, 2, 3, 1, 2, 0, 0, true), {with(none()), with(padMask(2))}},
      {FL_MODULE(Transformer, 4, 2, 3, 2, 4, 0, 0, true), {{steps(2), steps(2), none()}}},
      {FL_MODULE(Transformer, 4, 2, 3, 2, 0, 0, 0, false, true), {{steps(1), steps(3), none()}}},
      {FL_MODULE(Transformer, 4, 2, 3, 2, 3, 0.3f, 0.2f), {with(none())}, true},
      {FL_MODULE(Transformer, 4, 2, 3, 1, 0, 0.3f, 0.2f, true, true), {with(none())}}};
}

Cases conformers() {
  const auto with = [](const Tensor& mask) { return Inputs{steps(3), mask}; };
  return {{FL_MODULE(Conformer, 4, 2, 3, 2, 3, 3, 0), {with(padMask(3))}},
          {FL_MODULE(Conformer, 4, 2, 3, 1, 0, 2, 0), {with(none()), {steps(1, 1), none()}}},
          {FL_MODULE(Conformer, 4, 2, 3, 1, 2, 3, 0.3f, 0.2f), {with(none())}, true}};
}

Cases convolutions() {
  const std::vector<Shape> images = {{5, 2, 2, 2}, {4, 2, 2, 1}};
  const std::vector<Shape> waves = {{6, 2, 2, 2}, {5, 1, 2, 1}};
  const auto same = PaddingMode::SAME;
  return {{FL_MODULE(TDSBlock, 2, 3, 2), each(images)},
          {FL_MODULE(TDSBlock, 2, 3, 2, 0, 3, 0, false), each(images)},
          {FL_MODULE(TDSBlock, 2, 4, 2, 0, 0, 2), each(images)},
          {FL_MODULE(TDSBlock, 2, 3, 2, 0.3), each(images), true},
          {FL_MODULE(AsymmetricConv1D, 2, 3, 3), each(waves)},
          {FL_MODULE(AsymmetricConv1D, 2, 3, 3, 1, same, 0, 2), each(waves)},
          {FL_MODULE(AsymmetricConv1D, 2, 2, 5, 2, same, 1, 1, false, 2), each(waves)},
          {FL_MODULE(AsymmetricConv1D, 2, 4, 4, 3, same, 0.25, 1, true, 2), each(waves)}};
}

Cases embeddings() {
  const auto words = [](const Shape& shape, std::vector<int> values) {
    return Inputs{Tensor::fromVector(shape, std::move(values))};
  };
  const std::vector<int> cutoff = {2, 5, 7};
  return {
      {"AdaptiveEmbedding",
       [=] { return std::make_shared<AdaptiveEmbedding>(4, cutoff, 2); },
       {words({2, 3}, {0, 6, 3, 3, 1, 4}), words({}, {5})}},
      {FL_MODULE(AdaptiveEmbedding, 3, std::vector<int>{4}), {words({3}, {3, 0, 3})}},
      {FL_MODULE(PositionEmbedding, 3, 5), each({{3, 4, 2}, {3, 5, 1}, {3, 1, 2}})},
      {FL_MODULE(PositionEmbedding, 3, 4, 0.4), each({{3, 4, 2}}), true},
      {FL_MODULE(SinusoidalPositionEmbedding, 4), each({{4, 3, 2}, {4, 1}})},
      {FL_MODULE(SinusoidalPositionEmbedding, 3, 1.5), each({{3, 3, 2}})},
  };
}

Residual shortcuts() {
  Residual residual;
  residual.add(Linear(3, 3));
  residual.add(Tanh());
  residual.add(Linear(3, 2));
  residual.addShortcut(0, 3);
  residual.addShortcut(1, 4, Linear(3, 2, false));
  residual.addShortcut(0, 4, Linear(3, 2));
  residual.addScale(3, 0.5);
  residual.addScale(4, 0.25);
  return residual;
}

Cases residuals() {
  return {{FL_MODULE(Residual, shortcuts()), each({{3, 4}, {3}, {3, 1, 2}})},
          {FL_MODULE(Residual), each({{3, 2}})}};
}

TEST_P(ModuleGradients, InAllOptions) {
  for (const GradientCase& c : GetParam()()) {
    expectGradients(c);
  }
}

constexpr Part kParts[] = {transformers, conformers, convolutions, embeddings, residuals};
INSTANTIATE_TEST_SUITE_P(Parts, ModuleGradients, ::testing::ValuesIn(kParts));

// The others, which have no parameters, refuse an input that wants a gradient.
TEST(AllModules, HaveACaseOrNoGradient) {
  std::set<std::string> names = modulesIn(kParts);
  const GradientCase others[] = {
      {FL_MODULE(SpecAugment, 0, 2, 1, 2, 1, 1), each({{5, 4}})},
      {FL_MODULE(RawWavSpecAugment, 0, 2, 1, 2, 1, 1, 8), each({{50, 1, 1}})},
  };
  for (const GradientCase& c : others) {
    const ModulePtr module = c.make();
    EXPECT_EQ(module->numParamTensors(), 0);
    EXPECT_NE(errorOf([&] {
                module->forward({Variable(c.runs[0][0], true)});
              }).find("has no gradient for its input"),
              std::string::npos);
    names.insert(c.module);
  }
  EXPECT_EQ(names, modulesOf("fl/contrib"));
}

}  // namespace
}  // namespace fl::test
