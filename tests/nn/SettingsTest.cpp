// Settings that a module cannot work with are errors that name it, when it is made, or when it is
// called if only the input shows it.
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "fl/nn/nn.h"
#include "tests/ErrorOf.h"
#include "tests/nn/ModuleChecks.h"

namespace fl::test {
namespace {

// Words that the error begins with, and what throws it.
struct Wrong {
  std::string words;
  std::function<void()> call;
};

void expectErrors(const std::vector<Wrong>& all) {
  for (const auto& [words, call] : all) {
    EXPECT_EQ(errorOf(call).substr(0, words.size()), words);
  }
}

Variable ones(const Shape& shape) { return input(full(shape, 1.0)); }

TEST(Settings, Pool2D) {
  expectErrors({
      {"Pool2D: windows must be positive, not 0,2", [] { Pool2D(0, 2); }},
      {"Pool2D: windows must be positive, not 2,-1", [] { Pool2D(2, -1); }},
      {"Pool2D: strides must be positive, not 0,1", [] { Pool2D(2, 2, 0); }},
      {"Pool2D: strides must be positive, not 1,0", [] { Pool2D(2, 2, 1, 0); }},
      {"Pool2D: a padding of -2 is negative and no PaddingMode", [] { Pool2D(2, 2, 1, 1, -2); }},
      {"Pool2D: paddings 0,2 are more than half of the windows 2,3",
       [] { Pool2D(2, 3, 1, 1, 0, 2); }},
  });
  // SAME is no number.
  EXPECT_EQ(Pool2D(2, 2, 1, 1, PaddingMode::SAME, 0)(ones({4, 4, 1, 1})).shape(),
            Shape({5, 3, 1, 1}));
}

TEST(Settings, Convolutions) {
  const Variable weights = param(full({3, 3, 2, 4}, 1.0));
  expectErrors({
      {"Conv2D: strides must be positive, not 0,1", [] { Conv2D(1, 1, 2, 2, 0); }},
      {"Conv2D: strides must be positive, not 1,0", [&] { Conv2D(weights, 1, 0); }},
      {"Conv2D: dilations must be positive, not 0,1", [] { Conv2D(1, 1, 2, 2, 1, 1, 0, 0, 0); }},
      {"Conv2D: dilations must be positive, not 1,-1", [&] { Conv2D(weights, 1, 1, 0, 0, 1, -1); }},
      {"Conv2D: a padding of -3 is negative and no PaddingMode",
       [] { Conv2D(1, 1, 2, 2, 1, 1, 0, -3); }},
      {"Conv2D: channels and filter must be positive, not 0->4",
       [&] { Conv2D(weights, 1, 1, 0, 0, 1, 1, 0); }},
      {"Conv2D: weights f32[3,3] must have four dimensions",
       [] { Conv2D(param(full({3, 3}, 1.0))); }},
      {"Conv1D: strides must be positive, not 0,1", [] { Conv1D(1, 1, 2, 0); }},
      {"Conv1D: dilations must be positive, not 0,1", [] { Conv1D(1, 1, 2, 1, 0, 0); }},
      {"ConvTranspose2D: strides must be positive, not 0,0",
       [] { ConvTranspose2D(1, 1, 2, 2, 0, 0); }},
      {"ConvTranspose2D: dilations must be positive, not 1,0",
       [] { ConvTranspose2D(1, 1, 2, 2, 1, 1, 0, 0, 1, 0); }},
      {"ConvTranspose2D: paddings must be numbers from 0 on, not -1,0",
       [] { ConvTranspose2D(1, 1, 2, 2, 1, 1, -1); }},
      {"derivePadding: the stride must be positive, not 0", [] { derivePadding(4, 2, 0, 0, 1); }},
  });
}

TEST(Settings, Others) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Variable x = ones({2, 3});
  expectErrors({
      {"Dropout: the ratio must be in [0, 1], not -0.5", [] { Dropout(-0.5); }},
      {"Dropout: the ratio must be in [0, 1], not 1.5", [] { Dropout(1.5); }},
      {"Dropout: the ratio must be in [0, 1], not nan", [&] { Dropout{nan}; }},
      {"RNN: sizes and layers must be positive, not 3, 2 and 0",
       [] { RNN(3, 2, 0, RnnMode::GRU); }},
      {"RNN: drop_prob must be in [0, 1], not 1.5", [] { RNN(3, 2, 1, RnnMode::GRU, false, 1.5); }},
      {"Linear: sizes must be positive, not 0 and 2", [] { Linear(0, 2); }},
      {"Linear: the weight f32[2] must have two dimensions", [] { Linear(param(full({2}, 1.0))); }},
      {"Linear: the weight f32[2,1,1] must have two dimensions",
       [] { Linear(param(full({2, 1, 1}, 1.0)), param(full({2}, 1.0))); }},
      {"AdaptiveSoftMax: inputs must be positive and divValue at least 1, not 0 and 4",
       [] { AdaptiveSoftMax(0, {2}); }},
      {"AdaptiveSoftMax: inputs must be positive and divValue at least 1, not 8 and 0",
       [] { AdaptiveSoftMax(8, {2, 4}, 0); }},
      {"MultiheadAttention: 0 heads do not divide 4 features", [] { MultiheadAttention(4, 0); }},
      {"GroupNorm: 0 groups do not divide 4 channels", [] { GroupNorm(0, 4); }},
      {"Embedding: sizes must be positive, not 2 and 0", [] { Embedding(2, 0); }},
      {"LayerNorm: axes { -1 } are not different ones of 4", [] { LayerNorm(-1); }},
      {"padding: -1 and 2 elements at dimension 0 of f32[2,3] must not be negative",
       [&] { Padding({-1, 2}, 0.0)(x); }},
      {"padding: 3 pairs for the dimensions of f32[2,3]",
       [&] { Padding({1, 2}, {1, 1}, {1, 1}, 0.0)(x); }},
  });
}

// Of these only the input shows that they cannot be.
TEST(Settings, ErrorsOfCalls) {
  const Variable x = ones({2, 3});
  expectErrors({
      {"moddims", [&] { View({-1, -1})(x); }},
      {"moddims", [&] { View({4, 2})(x); }},
      {"moddims", [&] { View({-2, 3})(x); }},
      {"reorder", [&] { Reorder({0, 0})(x); }},
      {"reorder", [&] { Reorder({0})(x); }},
      {"batchnorm", [&] { BatchNorm(2, 3)(x); }},
      {"batchnorm", [&] { BatchNorm(-1, 3)(x); }},
      {"norm", [&] { Normalize({2})(x); }},
      {"gatedlinearunit", [&] { GatedLinearUnit(2)(x); }},
      {"gatedlinearunit", [&] { GatedLinearUnit(1)(x); }},
      {"logSoftmax", [&] { LogSoftmax(-1)(x); }},
      {"softmax", [&] { Softmax(2)(x); }},
  });
}

}  // namespace
}  // namespace fl::test
