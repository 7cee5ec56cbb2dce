// Batch normalisation and recurrent networks, recorded: kernels, library calls and bytes, and
// kernels that serve sequences of every length.
#include <gtest/gtest.h>

#include "fl/autograd/tensor/AutogradExtension.h"
#include "fl/autograd/tensor/AutogradOps.h"
#include "fl/base/Flags.h"
#include "fl/tensor/tensor.h"
#include "tests/lazy/Counts.h"
#include "tests/lazy/FreshEngine.h"

namespace fl::testing {
namespace {

// In memory, so that a test's own plan does not make it.
Tensor input(const Shape& shape) {
  const Tensor tensor = rand(shape) - 0.5;
  tensor.toHostVector<float>();
  return tensor;
}

// Sweeps over the input: one for the mean, one for the variance, one for the result, which is
// written; backward both operands for one sum, the gradient for the other, both for the result.
TEST(Batchnorm, IsThreeKernelsEachWay) {
  const Shape shape = {16, 16, 32, 8};
  const Tensor x = input(shape), weight = input({32}), bias = input({32}), grad = input(shape);
  Tensor mean = input({32}), variance = input({32}) + 1.0, saveMean, saveVar;
  variance.toHostVector<float>();
  const auto size = static_cast<double>(x.bytes());
  const runtime::Counters& counters = runtime::counters();

  const Counts forward;
  uint64_t bytes = counters.bytesMoved;
  const Tensor y =
      batchnorm(saveMean, saveVar, x, weight, bias, mean, variance, {2}, true, 0.1, 1e-5);
  y.toHostVector<float>();
  EXPECT_EQ(forward.launches(), 3u) << "with the update of the running statistics";
  EXPECT_EQ(forward.realizes(), 1u);
  EXPECT_LE(static_cast<double>(counters.bytesMoved - bytes), 4.01 * size);

  const Counts backward;
  bytes = counters.bytesMoved;
  const auto [gradInput, gradWeight, gradBias] =
      detail::batchnormBackward(grad, saveMean, saveVar, x, weight, {2}, true, 1e-5f, nullptr);
  gradInput.toHostVector<float>();
  EXPECT_EQ(backward.launches(), 3u);
  EXPECT_LE(static_cast<double>(counters.bytesMoved - bytes), 6.01 * size);
  EXPECT_EQ(forward.fallbacks(), 0u);
}

TEST(Batchnorm, WithFixedStatisticsIsOneMap) {
  const Tensor x = input({16, 16, 32, 8}), weight = input({32}), bias = input({32});
  Tensor mean = input({32}), variance = input({32}) + 1.0;
  variance.toHostVector<float>();
  const Counts counts;
  const uint64_t bytes = runtime::counters().bytesMoved;
  batchnorm(x, weight, bias, mean, variance, {2}, false, 0.1, 1e-5).toHostVector<float>();
  EXPECT_LE(counts.launches(), 2u) << "the scale of each channel, and the map";
  EXPECT_LE(static_cast<double>(runtime::counters().bytesMoved - bytes),
            2.01 * static_cast<double>(x.bytes()));
}

struct Network {
  RnnMode mode;
  bool bidirectional;

  Dim gates() const { return mode == RnnMode::LSTM ? 4 : mode == RnnMode::GRU ? 3 : 1; }
};

class Rnn : public ::testing::TestWithParam<Network> {
 protected:
  static constexpr Dim kIn = 24, kHidden = 20, kBatch = 3;
  static constexpr int kLayers = 2;

  // The output, or also everything that goes back.
  void run(Dim time, bool backward) const {
    const auto [mode, bidirectional] = GetParam();
    const Dim directions = bidirectional ? 2 : 1;
    const Dim rows = directions * GetParam().gates() * kHidden;
    const Tensor weights =
        input({rows * (kIn + kHidden + 2) + rows * (directions * kHidden + kHidden + 2)});
    const Tensor x = input({kIn, kBatch, time}), none;
    const auto payload = backward ? std::make_shared<detail::AutogradPayload>() : nullptr;
    before_ = Counts();
    libraryCalls_ = runtime::counters().libraryCalls;
    const auto [y, hidden, cell] =
        detail::rnn(x, none, none, weights, kHidden, kLayers, mode, bidirectional, 0, payload);
    if (backward) {
      const auto grads = std::make_shared<detail::RNNGradData>(detail::RNNGradData{y, {}, {}});
      const auto [dx, dh, dc, dw] = detail::rnnBackward(x, none, none, weights, grads, y, kLayers,
                                                        kHidden, mode, bidirectional, 0, payload);
      dw.toHostVector<float>();
    } else {
      y.toHostVector<float>();
    }
    libraryCalls_ = runtime::counters().libraryCalls - libraryCalls_;
  }

  mutable Counts before_;
  mutable uint64_t libraryCalls_ = 0;
};

TEST_P(Rnn, CompilesNothingForAnotherLength) {
  for (bool backward : {false, true}) {
    run(7, backward);
    for (Dim time : {19, 8, 40}) {
      run(time, backward);
      EXPECT_EQ(before_.plansBuilt(), 1u);
      EXPECT_EQ(before_.kernelsCompiled(), 0u) << time << " steps, backward " << backward;
      EXPECT_EQ(before_.realizes(), 1u);
      EXPECT_EQ(before_.fallbacks(), 0u);
    }
  }
}

// A long one is run in pieces, which end where a step does.
TEST_P(Rnn, CompilesNothingForALengthThatIsFlushed) {
  flags().jit = "sync";
  flags().flushNodes = "700";
  const FreshEngine engine;
  flags().flushNodes = "20000";
  for (bool backward : {false, true}) {
    run(7, backward);
    run(60, backward);
    for (Dim time : {83, 121, 200}) {
      run(time, backward);
      EXPECT_GT(before_.realizes(), 1u);
      EXPECT_EQ(before_.kernelsCompiled(), 0u) << time << " steps, backward " << backward;
    }
  }
}

// One more step is, in every layer and direction, one product, one cell and one copy of its result
// to its place; all else is there once. A cell of one gate is the product's epilogue.
TEST_P(Rnn, IsOneKernelAndOneProductAStep) {
  const uint64_t chains = kLayers * (GetParam().bidirectional ? 2 : 1);
  run(10, false);
  const uint64_t launches = before_.launches(), calls = libraryCalls_;
  EXPECT_EQ(calls, chains * 11);
  run(17, false);
  EXPECT_EQ(libraryCalls_ - calls, chains * 7);
  const uint64_t expected = chains * 7 * (GetParam().gates() == 1 ? 1 : 2);
  // Cells of two directions may stand side by side, and are one launch then.
  if (GetParam().bidirectional) {
    EXPECT_LE(before_.launches() - launches, expected + 1);
  } else {
    EXPECT_EQ(before_.launches() - launches, expected);
  }
}

// Backward one product a step more; the gradients of W, R and the input are three for all steps.
TEST_P(Rnn, GoesBackByOneProductAStep) {
  const uint64_t chains = kLayers * (GetParam().bidirectional ? 2 : 1);
  run(10, true);
  const uint64_t calls = libraryCalls_;
  run(17, true);
  EXPECT_EQ(libraryCalls_ - calls, chains * 7 * 2);
}

INSTANTIATE_TEST_SUITE_P(
    Networks, Rnn,
    ::testing::Values(Network{RnnMode::RELU, false}, Network{RnnMode::TANH, true},
                      Network{RnnMode::LSTM, false}, Network{RnnMode::LSTM, true},
                      Network{RnnMode::GRU, false}, Network{RnnMode::GRU, true}));

}  // namespace
}  // namespace fl::testing
