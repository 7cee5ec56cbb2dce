// rnn's gradients: every mode, direction and depth; results used alone and together.
#include "fl/autograd/Functions.h"
#include "fl/tensor/Random.h"
#include "tests/autograd/GradientCheck.h"

namespace fl::test {
namespace {

struct Case {
  RnnMode mode;
  bool bidirectional;
  int layers;

  int gates() const { return mode == RnnMode::LSTM ? 4 : mode == RnnMode::GRU ? 3 : 1; }
  int directions() const { return bidirectional ? 2 : 1; }
  Dim weights(Dim in, Dim hidden) const {
    const Dim rows = directions() * gates() * hidden;
    return rows * (in + hidden + 2) + (layers - 1) * rows * (directions() * hidden + hidden + 2);
  }
};

constexpr Dim kIn = 3, kHidden = 2, kBatch = 2, kTime = 3;

// All results in one, each element of which counts.
Variable allResults(const Case& c, const Variable& x, const Variable& h, const Variable& s,
                    const Variable& w, float dropout = 0) {
  const auto [y, hidden, cell] =
      rnn(x, h, s, w, kHidden, c.layers, c.mode, c.bidirectional, dropout);
  std::vector<Variable> parts = {flat(y), flat(hidden)};
  if (c.mode == RnnMode::LSTM) {
    parts.push_back(flat(cell));
  }
  return concatenate(parts, 0);
}

class Rnn : public ::testing::TestWithParam<Case> {};

TEST_P(Rnn, Gradients) {
  const Case c = GetParam();
  const Tensor input = randomTensor({kIn, kBatch, kTime});
  const Tensor weights = randomTensor({c.weights(kIn, kHidden)});
  const Shape state = {kHidden, kBatch, c.layers * c.directions()};
  const Variable none(Tensor(dtype::f64), false);
  // The weights count as they do beside states.
  const Variable w(weights, false);
  expectGradients(
      [&](const std::vector<Variable>& v) { return allResults(c, v[0], none, none, w); }, {input});
  if (c.mode == RnnMode::LSTM) {
    expectGradients(
        [&](const std::vector<Variable>& v) { return allResults(c, v[0], v[1], v[2], v[3]); },
        {input, randomTensor(state), randomTensor(state), weights});
  } else {
    expectGradients(
        [&](const std::vector<Variable>& v) { return allResults(c, v[0], v[1], none, v[2]); },
        {input, randomTensor(state), weights});
  }
}

std::string nameOf(const ::testing::TestParamInfo<Case>& info) {
  const char* names[] = {"Relu", "Tanh", "Lstm", "Gru"};
  return names[static_cast<int>(info.param.mode)] + std::to_string(info.param.layers) +
         (info.param.bidirectional ? "Both" : "One");
}

std::vector<Case> allCases() {
  std::vector<Case> cases;
  for (const RnnMode mode : {RnnMode::RELU, RnnMode::TANH, RnnMode::LSTM, RnnMode::GRU}) {
    for (const bool bidirectional : {false, true}) {
      for (const int layers : {1, 2}) {
        cases.push_back({mode, bidirectional, layers});
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Networks, Rnn, ::testing::ValuesIn(allCases()), nameOf);

TEST(RnnResults, CountAloneAndTogether) {
  const Case c{RnnMode::LSTM, false, 1};
  const Tensor input = randomTensor({kIn, kBatch, kTime});
  const Variable none(Tensor(dtype::f64), false);
  const Variable w(randomTensor({c.weights(kIn, kHidden)}), false);
  const auto gradients = [&](bool output, bool hidden, bool cell) {
    Variable x(input, true);
    const auto [y, h, s] = rnn(x, none, none, w, kHidden, 1, c.mode, false, 0);
    std::vector<Variable> used;
    for (const auto& [wanted, result] : {std::pair(output, y), {hidden, h}, {cell, s}}) {
      if (wanted) {
        used.push_back(flat(result));
      }
    }
    concatenate(used, 0).backward();
    return valuesOf(x.grad().tensor());
  };
  const auto y = gradients(true, false, false), h = gradients(false, true, false);
  const auto s = gradients(false, false, true), all = gradients(true, true, true);
  std::vector<double> sums;
  for (size_t i = 0; i < y.size(); ++i) {
    sums.push_back(y[i] + h[i] + s[i]);
    EXPECT_NE(y[i], 0);
    EXPECT_NE(h[i], 0);
    EXPECT_NE(s[i], 0);
  }
  expectNear(all, sums, 1e-12);
}

// A graph that is kept gives the same gradients again, of the results that are asked for.
TEST(RnnResults, GoBackTwice) {
  const Case c{RnnMode::GRU, true, 1};
  Variable x(randomTensor({kIn, kBatch, kTime}), true);
  const Variable none(Tensor(dtype::f64), false);
  const Variable w(randomTensor({c.weights(kIn, kHidden)}), false);
  auto [y, h, s] = rnn(x, none, none, w, kHidden, 1, c.mode, true, 0);
  h.backward(/*retainGraph=*/true);
  const std::vector<double> first = valuesOf(x.grad().tensor());
  x.zeroGrad();
  y.backward(/*retainGraph=*/true);
  x.zeroGrad();
  h.backward();
  expectNear(valuesOf(x.grad().tensor()), first, 1e-14);
}

// The gradient drops what the forward pass dropped: both are linear in a dropped input of the
// second layer, here with identity weights in a ReLU network without recurrence.
TEST(RnnResults, DropoutIsBetweenLayers) {
  const Dim n = 50;
  const Case c{RnnMode::RELU, false, 2};
  std::vector<double> weights(c.weights(n, n), 0.0);
  for (Dim i = 0; i < n; ++i) {
    weights[i * n + i] = weights[2 * n * n + i * n + i] = 1;  // W of both layers
  }
  const Variable w(Tensor::fromVector(weights), false), none(Tensor(dtype::f64), false);
  Variable x(full({n, n, 2}, 3.0, dtype::f64), true);
  setSeed(11);
  auto y = std::get<0>(rnn(x, none, none, w, n, 2, c.mode, false, 0.2f));
  y.backward();
  const auto values = valuesOf(y.tensor()), grads = valuesOf(x.grad().tensor());
  int kept = 0;
  const double scale = 1 / (1 - static_cast<double>(0.2f));
  for (size_t i = 0; i < values.size(); ++i) {
    kept += values[i] != 0;
    ASSERT_TRUE(values[i] == 0 || std::abs(values[i] - 3 * scale) < 1e-12) << values[i];
    ASSERT_NEAR(grads[i], values[i] / 3, 1e-12);
  }
  // 4000 of 5000 are expected; the deviation of their number is 28.
  EXPECT_NEAR(kept, 4000, 5 * 28);
  x.zeroGrad();
  EXPECT_EQ(valuesOf(std::get<0>(rnn(x, none, none, w, n, 2, c.mode, false, 0)).tensor()),
            std::vector<double>(5000, 3.0));
}

}  // namespace
}  // namespace fl::test
