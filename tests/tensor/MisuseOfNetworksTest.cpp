// Misuse of the operators of neural networks, forward and backward.
#include <gtest/gtest.h>

#include <memory>

#include "fl/autograd/tensor/AutogradExtension.h"
#include "fl/autograd/tensor/AutogradOps.h"
#include "fl/base/CallSite.h"
#include "fl/tensor/tensor.h"
#include "tests/tensor/Misuse.h"

namespace fl::testing {
namespace {

TEST_F(Misuse, OfConvolutionsAndPools) {
  EXPECT_MISUSE(
      Rank, conv2d(f34, filter),
      "conv2d: f32[3,4] x f32[3,3,4,6]: needs an input (W,H,C,N) and a filter (KW,KH,C/groups,O)");
  EXPECT_MISUSE(Shapes, conv2d(image, filter, 1, 1, 0, 0, 1, 1, 2),
                "conv2d: f32[8,8,4,2] x f32[3,3,4,6]: the input has 4 channels, the filter takes 4 "
                "in 2 groups and makes 6");
  EXPECT_MISUSE(Value, conv2d(image, filter, 0, 1),
                "conv2d: f32[8,8,4,2] x f32[3,3,4,6]: a stride of 0 is not positive");
  EXPECT_MISUSE(NegativeSize, conv2d(image, filter, 1, 1, -1, 0),
                "conv2d: f32[8,8,4,2] x f32[3,3,4,6]: a padding of -1 is negative");
  EXPECT_MISUSE(Value, conv2d(image, filter, 1, 1, 0, 0, 1, 0),
                "conv2d: f32[8,8,4,2] x f32[3,3,4,6]: a dilation of 0 is not positive");
  EXPECT_MISUSE(Shapes, conv2d(image, filter, 1, 1, 0, 0, 4, 4),
                "conv2d: f32[8,8,4,2] x f32[3,3,4,6]: a filter of 3 with stride 1, padding 0, "
                "dilation 4 does not fit into 8");
  EXPECT_MISUSE(Shapes, conv2d(image, filter, f7),
                "conv2d: f32[8,8,4,2] x f32[3,3,4,6] x f32[7]: the bias must be (1,1,6,1)");
  EXPECT_MISUSE(DtypesDiffer, conv2d(image, s34),
                "conv2d: f32[8,8,4,2] x s32[3,4]: dtypes f32 and s32 differ");
  EXPECT_MISUSE(Dtype, conv2d(image.astype(dtype::s32), filter.astype(dtype::s32)),
                "conv2d: s32[8,8,4,2] x s32[3,3,4,6]: needs a floating dtype");
  EXPECT_MISUSE(Empty, conv2d(full({0, 8, 4, 2}, 1.0), filter),
                "conv2d: f32[0,8,4,2] x f32[3,3,4,6]: a filter of 3 with stride 1, padding 0, "
                "dilation 1 does not fit into 0");
  EXPECT_MISUSE(Empty, conv2d(image, full({0, 3, 4, 6}, 1.0)),
                "conv2d: f32[8,8,4,2] x f32[0,3,4,6]: a filter of 0 with stride 1, padding 0, "
                "dilation 1 does not fit into 8");
  EXPECT_MISUSE(
      Empty, pool2d(full({0, 8, 4, 2}, 1.0), 2, 2),
      "pool2d: f32[0,8,4,2]: a window of 2 with stride 1 and padding 0 does not fit into 0");
  EXPECT_MISUSE(Rank, pool2d(reshape(image, {8, 8, 4, 2, 1}), 2, 2),
                "pool2d: f32[8,8,4,2,1]: needs (W,H,C,N)");
  EXPECT_MISUSE(
      Shapes, pool2d(image, 9, 9),
      "pool2d: f32[8,8,4,2]: a window of 9 with stride 1 and padding 0 does not fit into 8");
  EXPECT_MISUSE(Value, pool2d(image, 2, 2, 0, 1),
                "pool2d: f32[8,8,4,2]: a stride of 0 is not positive");
  EXPECT_MISUSE(Value, pool2d(image, 2, 2, 1, 1, 2, 2),
                "pool2d: f32[8,8,4,2]: a padding of 2 is more than half of a window of 2");
  EXPECT_MISUSE(Dtype, pool2d(image.astype(dtype::s32), 2, 2),
                "pool2d: s32[8,8,4,2]: needs a floating dtype");
}

TEST_F(Misuse, OfGradientsOfConvolutions) {
  const Tensor y = conv2d(image, filter), bias = full({1, 1, 6, 1}, 1.0);
  const auto data = [&](const Tensor& grad, const Tensor& input, const Tensor& weights,
                        int stride = 1) __attribute__((noinline)) {
    FL_API_ENTRY();  // errors name the line that calls this
    return detail::conv2dBackwardData(grad, input, weights, stride, 1, 0, 0, 1, 1, 1, nullptr,
                                      nullptr);
  };
  const auto both = [&](const Tensor& grad, const Tensor& input, const Tensor& weights,
                        int stride = 1) __attribute__((noinline)) {
    FL_API_ENTRY();
    return detail::conv2dBackwardFilterBias(grad, input, weights, bias, stride, 1, 0, 0, 1, 1, 1,
                                            nullptr, nullptr, nullptr);
  };
  const auto narrow = [](const Tensor& x) { return x.astype(dtype::s32); };
  const std::string ofData = "conv2dBackwardData: ", ofFilter = "conv2dBackwardFilter: ";
  const std::string grads = "conv2dBackwardFilterBias";
  EXPECT_EQ(data(y, image, filter).shape(), image.shape());
  EXPECT_EQ(both(y, image, filter).first.shape(), filter.shape());
  EXPECT_MISUSE(Rank,
                detail::conv2dBackwardFilterBias(f34, image, filter, bias, 1, 1, 0, 0, 1, 1, 1,
                                                 nullptr, nullptr, nullptr),
                grads + ": f32[3,4] x f32[8,8,4,2]: needs four dimensions");
  EXPECT_MISUSE_OF("conv2dBackwardData", Rank, data(f34, image, filter),
                   ofData + "f32[3,4] x f32[3,3,4,6]: needs four dimensions");
  EXPECT_MISUSE_OF(
      "conv2dBackwardData", Shapes, data(image, image, filter),
      ofData + "f32[8,8,4,2] x f32[3,3,4,6]: channels, batches or 1 groups do not match");
  EXPECT_MISUSE_OF(
      "conv2dBackwardData", Shapes, data(full({5, 6, 6, 2}, 1.0), image, filter),
      ofData + "f32[5,6,6,2] x f32[3,3,4,6]: a gradient of 5 where a filter of 3 makes 6 of 8");
  EXPECT_MISUSE_OF(
      "conv2dBackwardData", Empty, data(full({0, 6, 6, 2}, 1.0), image, filter),
      ofData + "f32[0,6,6,2] x f32[3,3,4,6]: a gradient of 0 where a filter of 3 makes 6 of 8");
  EXPECT_MISUSE_OF("conv2dBackwardData", DtypesDiffer, data(narrow(y), image, filter),
                   ofData + "s32[6,6,6,2] x f32[3,3,4,6]: dtypes s32 and f32 differ");
  EXPECT_MISUSE_OF("conv2dBackwardData", Dtype, data(narrow(y), image, narrow(filter)),
                   ofData + "s32[6,6,6,2] x s32[3,3,4,6]: needs a floating dtype");
  EXPECT_MISUSE_OF("conv2dBackwardData", Value, data(y, image, filter, 0),
                   ofData + "f32[6,6,6,2] x f32[3,3,4,6]: a stride of 0 is not positive");
  EXPECT_MISUSE_OF(grads, Rank, both(f34, image, filter),
                   ofFilter + "f32[3,4] x f32[8,8,4,2]: needs four dimensions");
  EXPECT_MISUSE_OF(
      grads, Shapes, both(y, full({8, 8, 4, 3}, 1.0), filter),
      ofFilter + "f32[6,6,6,2] x f32[8,8,4,3]: channels, batches or 1 groups do not match");
  EXPECT_MISUSE_OF(
      grads, Shapes, both(full({6, 5, 6, 2}, 1.0), image, filter),
      ofFilter + "f32[6,5,6,2] x f32[8,8,4,2]: a gradient of 5 where a filter of 3 makes 6 of 8");
  EXPECT_MISUSE_OF(
      grads, Empty, both(full({0, 6, 6, 2}, 1.0), image, filter),
      ofFilter + "f32[0,6,6,2] x f32[8,8,4,2]: a gradient of 0 where a filter of 3 makes 6 of 8");
  EXPECT_MISUSE_OF(grads, DtypesDiffer, both(y, narrow(image), filter),
                   ofFilter + "f32[6,6,6,2] x s32[8,8,4,2]: dtypes f32 and s32 differ");
  EXPECT_MISUSE_OF(grads, Dtype, both(narrow(y), narrow(image), filter),
                   ofFilter + "s32[6,6,6,2] x s32[8,8,4,2]: needs a floating dtype");
  EXPECT_MISUSE_OF(grads, Value, both(y, image, filter, 0),
                   ofFilter + "f32[6,6,6,2] x f32[8,8,4,2]: a stride of 0 is not positive");
}

TEST_F(Misuse, OfGradientsOfPools) {
  const Tensor y = pool2d(image, 2, 2);
  const auto run = [&](const Tensor& grad, const Tensor& input,
                       int stride = 1) __attribute__((noinline)) {
    FL_API_ENTRY();  // errors name the line that calls this
    return detail::pool2dBackward(grad, input, y, 2, 2, stride, 1, 0, 0, PoolingMode::MAX, nullptr);
  };
  EXPECT_EQ(run(y, image).shape(), image.shape());
  EXPECT_MISUSE(Shapes, run(image, image),
                "pool2dBackward: f32[8,8,4,2] x f32[8,8,4,2]: the gradient must be f32[7,7,4,2]");
  EXPECT_MISUSE(Rank, run(y, full({8, 8, 4, 2, 1}, 1.0)),
                "pool2dBackward: f32[7,7,4,2] x f32[8,8,4,2,1]: needs (W,H,C,N)");
  EXPECT_MISUSE(Empty, run(full({0, 7, 4, 2}, 1.0), image),
                "pool2dBackward: f32[0,7,4,2] x f32[8,8,4,2]: the gradient must be f32[7,7,4,2]");
  EXPECT_MISUSE(DtypesDiffer, run(y.astype(dtype::f16), image),
                "pool2dBackward: f16[7,7,4,2] x f32[8,8,4,2]: the gradient must be f32[7,7,4,2]");
  EXPECT_MISUSE(Dtype, run(y, image.astype(dtype::s32)),
                "pool2dBackward: f32[7,7,4,2] x s32[8,8,4,2]: needs a floating dtype");
  EXPECT_MISUSE(Value, run(y, image, 0),
                "pool2dBackward: f32[7,7,4,2] x f32[8,8,4,2]: a stride of 0 is not positive");
}

TEST_F(Misuse, OfBatchnorm) {
  const Tensor none, four = full({4}, 1.0), zeros = full({4}, 0.0);
  Tensor mean = zeros, variance = four, empty;
  const auto run = [&](const Tensor& x, const Tensor& weight, const std::vector<int>& axes)
                       __attribute__((noinline)) {
                         FL_API_ENTRY();  // errors name the line that calls this
                         return batchnorm(x, weight, none, mean, variance, axes, true, 0.1, 1e-5);
                       };
  EXPECT_MISUSE(Dtype, run(image.astype(dtype::s32), none, {2}),
                "batchnorm: s32[8,8,4,2]: needs a floating dtype");
  EXPECT_MISUSE(Value, run(image, none, {}), "batchnorm: f32[8,8,4,2]: needs feature axes");
  EXPECT_MISUSE(AxisAbove, run(image, none, {4}), "batchnorm: f32[8,8,4,2]: no dimension 4");
  EXPECT_MISUSE(AxisBelow, run(image, none, {-1, 0}), "batchnorm: f32[8,8,4,2]: no dimension -1");
  EXPECT_MISUSE(Value, run(image, none, {0, 2}),
                "batchnorm: f32[8,8,4,2]: the feature axes must be neighbours");
  EXPECT_MISUSE(AxisTwice, run(image, none, {2, 2}),
                "batchnorm: f32[8,8,4,2]: the feature axes must be neighbours");
  EXPECT_MISUSE(Shapes, run(image, f7, {2}),
                "batchnorm: f32[8,8,4,2] with weight f32[7]: needs 4 elements of f32");
  EXPECT_MISUSE(DtypesDiffer, run(image, four.astype(dtype::f64), {2}),
                "batchnorm: f32[8,8,4,2] with weight f64[4]: needs 4 elements of f32");
  EXPECT_MISUSE(Shapes, run(image.astype(dtype::f16), four.astype(dtype::f16), {2}),
                "batchnorm: f16[8,8,4,2] with weight f16[4]: needs 4 elements of f32");
  EXPECT_MISUSE(Shapes, run(image, none, {3}),
                "batchnorm: f32[8,8,4,2] with running mean f32[4]: needs 2 elements of f32");
  EXPECT_MISUSE(Shapes, batchnorm(image, none, f7, mean, variance, {2}, true, 0.1, 1e-5),
                "batchnorm: f32[8,8,4,2] with bias f32[7]: needs 4 elements of f32");
  EXPECT_MISUSE(Value, batchnorm(image, none, none, mean, empty, {2}, true, 0.1, 1e-5),
                "batchnorm: running mean and variance must be both empty or neither");
  EXPECT_MISUSE(Value, batchnorm(image, none, none, empty, empty, {2}, false, 0.1, 1e-5),
                "batchnorm: f32[8,8,4,2]: needs running statistics where it does not train");
  EXPECT_EQ(mean.toHostVector<float>(), zeros.toHostVector<float>()) << "a failure changed it";
}

TEST_F(Misuse, OfGradientsOfBatchnorm) {
  const Tensor none, four = full({4}, 1.0), whole = image.astype(dtype::s32);
  const auto run = [&](const Tensor& grad, const Tensor& input, const Tensor& mean,
                       const std::vector<int>& axes) __attribute__((noinline)) {
    FL_API_ENTRY();  // errors name the line that calls this
    return detail::batchnormBackward(grad, mean, four, input, none, axes, true, 1e-5, nullptr);
  };
  const std::string row = "batchnormBackward", type = "batchnorm: f32[8,8,4,2]: ";
  EXPECT_MISUSE(Shapes, run(f34, image, four, {2}),
                "batchnormBackward: a gradient f32[3,4] of a result of shape (8, 8, 4, 2)");
  EXPECT_MISUSE(Shapes, run(image, image, f7, {2}),
                "batchnormBackward: f32[8,8,4,2] with saved mean f32[7]: needs 4 elements");
  EXPECT_MISUSE(Shapes, run(image, image, none, {2}),
                "batchnormBackward: f32[8,8,4,2] with saved mean f32[0]: needs 4 elements");
  EXPECT_MISUSE(Shapes, detail::batchnormBackward(image, four, none, image, none, {2}, true, 0, {}),
                "batchnormBackward: f32[8,8,4,2] with saved variance f32[0]: needs 4 elements");
  EXPECT_MISUSE(Shapes, detail::batchnormBackward(image, four, four, image, f7, {2}, true, 0, {}),
                "batchnormBackward: f32[8,8,4,2] with weight f32[7]: needs 4 elements");
  EXPECT_MISUSE_OF(row, Dtype, run(whole, whole, four, {2}),
                   "batchnorm: s32[8,8,4,2]: needs a floating dtype");
  EXPECT_MISUSE_OF(row, AxisAbove, run(image, image, four, {4}), type + "no dimension 4");
  EXPECT_MISUSE_OF(row, AxisBelow, run(image, image, four, {-1}), type + "no dimension -1");
  EXPECT_MISUSE_OF(row, AxisTwice, run(image, image, four, {2, 2}),
                   type + "the feature axes must be neighbours");
}

TEST_F(Misuse, OfModesOfNetworks) {
  const Tensor none, y = full({4, 4, 4, 2}, 1.0), x = full({3, 2, 5}, 1.0);
  for (const int mode : {-1, 3}) {
    const std::string words = ": " + std::to_string(mode) + " is no PoolingMode";
    const auto wrong = static_cast<PoolingMode>(mode);
    EXPECT_MISUSE(Value, pool2d(image, 2, 2, 2, 2, 0, 0, wrong), "pool2d" + words);
    EXPECT_MISUSE(Value, detail::pool2dBackward(y, image, y, 2, 2, 2, 2, 0, 0, wrong, nullptr),
                  "pool2dBackward" + words);
  }
  const auto wrong = static_cast<RnnMode>(9);
  EXPECT_MISUSE(Value, rnn(x, none, none, full({36}, 1.0), 4, 1, wrong, false, 0),
                "rnn: 9 is no RnnMode");
  EXPECT_MISUSE(
      Value, detail::rnnBackward(x, none, none, f7, nullptr, none, 1, 4, wrong, false, 0, nullptr),
      "rnnBackward: 9 is no RnnMode");
}

TEST_F(Misuse, OfRecurrentNetworks) {
  const Tensor none, x = full({3, 2, 5}, 1.0), state = full({4, 2, 1}, 1.0);
  const Tensor weights = full({4 * 4 * (3 + 4 + 2)}, 1.0);  // of an LSTM
  const auto run = [&](const Tensor& input, const Tensor& hidden, const Tensor& cell,
                       const Tensor& w, RnnMode mode = RnnMode::LSTM, int layers = 1)
                       __attribute__((noinline)) {
                         FL_API_ENTRY();  // errors name the line that calls this
                         return rnn(input, hidden, cell, w, 4, layers, mode, false, 0);
                       };
  run(x, state, state, weights);
  EXPECT_MISUSE(Dtype, run(s34, none, none, weights), "rnn: s32[3,4]: needs a floating dtype");
  EXPECT_MISUSE(Rank, run(image, none, none, weights),
                "rnn: f32[8,8,4,2]: needs an input (features, batch, time) that is not empty");
  EXPECT_MISUSE(Empty, run(full({3, 2, 0}, 1.0), none, none, weights),
                "rnn: f32[3,2,0]: needs an input (features, batch, time) that is not empty");
  EXPECT_MISUSE(Value, run(x, none, none, weights, RnnMode::LSTM, 0),
                "rnn: f32[3,2,5]: hidden size 4 and 0 layers must be positive");
  EXPECT_MISUSE(Value, rnn(x, none, none, weights, -4, 1, RnnMode::LSTM, false, 0),
                "rnn: f32[3,2,5]: hidden size -4 and 1 layers must be positive");
  EXPECT_MISUSE(Shapes, run(x, none, none, f7),
                "rnn: f32[3,2,5] with weights f32[7]: needs 144 of f32");
  EXPECT_MISUSE(Shapes, run(x, none, none, weights, RnnMode::GRU),
                "rnn: f32[3,2,5] with weights f32[144]: needs 108 of f32");
  EXPECT_MISUSE(Shapes, run(x, none, none, weights, RnnMode::LSTM, 2),
                "rnn: f32[3,2,5] with weights f32[144]: needs 304 of f32");
  EXPECT_MISUSE(Shapes, rnn(x, none, none, weights, 4, 1, RnnMode::LSTM, true, 0),
                "rnn: f32[3,2,5] with weights f32[144]: needs 288 of f32");
  EXPECT_MISUSE(DtypesDiffer, run(x, none, none, weights.astype(dtype::f64)),
                "rnn: f32[3,2,5] with weights f64[144]: needs 144 of f32");
  EXPECT_MISUSE(Shapes, run(x, f34, none, weights),
                "rnn: f32[3,2,5] with a hidden state f32[3,4]: must be f32[4,2,1] or empty");
  EXPECT_MISUSE(Shapes, run(x, state, f34, weights),
                "rnn: f32[3,2,5] with a cell state f32[3,4]: must be f32[4,2,1] or empty");
  EXPECT_MISUSE(Shapes, run(x, state.astype(dtype::f16), none, weights),
                "rnn: f32[3,2,5] with a hidden state f16[4,2,1]: must be f32[4,2,1] or empty");
  // Of more weights than can be counted.
  EXPECT_MISUSE(Shapes, rnn(x, none, none, weights, 2147483647, 2147483647, RnnMode::GRU, true, 0),
                "rnn: f32[3,2,5] with weights f32[144]: needs 9223372036854775807 of f32");
  EXPECT_MISUSE(Value, run(x, none, state, full({36}, 1.0), RnnMode::TANH),
                "rnn: f32[3,2,5]: only an LSTM has a cell state");
  EXPECT_MISUSE(Value, rnn(x, none, none, weights, 4, 1, RnnMode::LSTM, false, 1.5f),
                "rnn: the probability dropout must be in [0, 1], not 1.5");
}

TEST_F(Misuse, OfGradientsOfRecurrentNetworks) {
  using Grads = std::shared_ptr<detail::RNNGradData>;
  const Tensor none, x = full({3, 2, 5}, 1.0), weights = full({36}, 1.0);
  const auto payload = std::make_shared<detail::AutogradPayload>();
  const Tensor y =
      std::get<0>(detail::rnn(x, none, none, weights, 4, 1, RnnMode::TANH, false, 0, payload));
  const auto run = [&](const Grads& grads, const std::shared_ptr<detail::AutogradPayload>& kept,
                       const Tensor& input, const Tensor& packed, int layers = 1)
                       __attribute__((noinline)) {
                         FL_API_ENTRY();  // errors name the line that calls this
                         return detail::rnnBackward(input, none, none, packed, grads, y, layers, 4,
                                                    RnnMode::TANH, false, 0, kept);
                       };
  const auto grads = [](const Tensor& dy, const Tensor& dhy = {}, const Tensor& dcy = {}) {
    return std::make_shared<detail::RNNGradData>(detail::RNNGradData{dy, dhy, dcy});
  };
  const std::string row = "rnnBackward";
  run(grads(y), payload, x, weights);
  const std::string needs =
      "rnnBackward: needs gradients, and the payload of rnn() with the same arguments";
  EXPECT_MISUSE(Value, run(grads(y), nullptr, x, weights), needs);
  EXPECT_MISUSE(Value, run(grads(y), std::make_shared<detail::AutogradPayload>(), x, weights),
                needs);
  EXPECT_MISUSE(Null, run(nullptr, payload, x, weights), needs);
  EXPECT_MISUSE(Shapes, run(grads(f34), payload, x, weights),
                "rnnBackward: the gradient dy f32[3,4] must be f32[4,2,5] or empty");
  EXPECT_MISUSE(Shapes, run(grads({}, f34), payload, x, weights),
                "rnnBackward: the gradient dhy f32[3,4] must be f32[4,2,1] or empty");
  EXPECT_MISUSE(Shapes, run(grads({}, {}, f34), payload, x, weights),
                "rnnBackward: the gradient dcy f32[3,4] must be f32[4,2,1] or empty");
  EXPECT_MISUSE(DtypesDiffer, run(grads(y.astype(dtype::f64)), payload, x, weights),
                "rnnBackward: the gradient dy f64[4,2,5] must be f32[4,2,5] or empty");
  EXPECT_MISUSE_OF(row, Shapes, run(grads(y), payload, x, f7),
                   "rnn: f32[3,2,5] with weights f32[7]: needs 36 of f32");
  EXPECT_MISUSE_OF(row, Value, run(grads(y), payload, x, weights, 0),
                   "rnn: f32[3,2,5]: hidden size 4 and 0 layers must be positive");
  EXPECT_MISUSE_OF(row, Dtype, run(grads(y), payload, s34, weights),
                   "rnn: s32[3,4]: needs a floating dtype");
  const std::string input = ": needs an input (features, batch, time) that is not empty";
  EXPECT_MISUSE_OF(row, Rank, run(grads(y), payload, image, weights), "rnn: f32[8,8,4,2]" + input);
  EXPECT_MISUSE_OF(row, Empty, run(grads(y), payload, none, weights), "rnn: f32[0]" + input);
}

}  // namespace
}  // namespace fl::testing
