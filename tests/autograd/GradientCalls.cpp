#include "tests/autograd/GradientCalls.h"

#include <tuple>

#include "fl/autograd/Functions.h"
#include "fl/tensor/Random.h"

namespace fl::test {
namespace {

using Call = GradientCall;
using Calls = std::vector<Call>;

// All results in one.
Variable joined(const Variable& result) { return result; }
Variable joined(const std::vector<Variable>& results) {
  std::vector<Variable> parts;
  for (const Variable& result : results) {
    if (!result.isEmpty()) {
      parts.push_back(flat(result));
    }
  }
  return concatenate(parts, 0);
}
Variable joined(const std::tuple<Variable, Variable, Variable>& results) {
  const auto& [first, second, third] = results;
  return joined(std::vector<Variable>{first, second, third});
}

// `call` is one of the Variables v[0], v[1], ..., whose values follow.
#define FL_GRADIENT(call, ...)                                                           \
  Call {                                                                                 \
    #call, [=](const std::vector<Variable>& v) { return joined(call); }, { __VA_ARGS__ } \
  }

Tensor of(const Shape& shape) { return spreadTensor(shape); }
Tensor positive(const Shape& shape) { return spreadTensor(shape, 0.3, 0.9); }
Variable none() { return Variable(Tensor(dtype::f64), false); }
Variable integers(const Shape& shape, std::vector<int> values) {
  return Variable(Tensor::fromVector(shape, std::move(values)), false);
}

Calls arithmetic() {
  return {FL_GRADIENT(operator+(v[0], v[1]), of({2, 1, 3}), of({1, 4})),
          FL_GRADIENT(operator+(0.5, v[0]), of({1, 3})),
          FL_GRADIENT(operator+(v[0], 0.5), of({})),
          FL_GRADIENT(operator-(v[0], v[1]), of({2, 1, 3}), of({1, 4})),
          FL_GRADIENT(operator-(0.5, v[0]), of({1, 3})),
          FL_GRADIENT(operator-(v[0], 0.5), of({})),
          FL_GRADIENT(operator*(v[0], v[1]), of({2, 1, 3}), of({1, 4})),
          FL_GRADIENT(operator*(0.5, v[0]), of({1, 3})),
          FL_GRADIENT(operator*(v[0], 0.5), of({})),
          FL_GRADIENT(operator/(v[0], v[1]), of({2, 1, 3}), positive({1, 4})),
          FL_GRADIENT(operator/(0.5, v[0]), positive({1, 3})),
          FL_GRADIENT(operator/(v[0], 0.5), of({}))};
}

Calls elementwise() {
  const Shape shape = {3, 1, 2};
  return {FL_GRADIENT(negate(v[0]), of(shape)),
          FL_GRADIENT(reciprocal(v[0]), positive(shape)),
          FL_GRADIENT(exp(v[0]), of(shape)),
          FL_GRADIENT(log(v[0]), positive(shape)),
          FL_GRADIENT(pow(v[0], -1.5), positive(shape)),
          FL_GRADIENT(pow(v[0], 3), of(shape)),
          FL_GRADIENT(log1p(v[0]), positive(shape)),
          FL_GRADIENT(sin(v[0]), of(shape)),
          FL_GRADIENT(cos(v[0]), of(shape)),
          FL_GRADIENT(sqrt(v[0]), positive(shape)),
          FL_GRADIENT(tanh(v[0]), of(shape)),
          FL_GRADIENT(clamp(v[0], -0.3, 0.4), of({4, 5})),
          FL_GRADIENT(sigmoid(v[0]), of(shape)),
          FL_GRADIENT(swish(v[0], -0.7), of(shape)),
          FL_GRADIENT(erf(v[0]), of(shape)),
          FL_GRADIENT(abs(v[0]), of(shape)),
          FL_GRADIENT(relu(v[0]), of({4, 5})),
          FL_GRADIENT(gelu(v[0]), of(shape)),
          FL_GRADIENT(exactGelu(v[0]), of(shape)),
          FL_GRADIENT(max(v[0], v[1]), of({2, 1, 3}), of({1, 4})),
          FL_GRADIENT(max(v[0], 0.2), of({4, 5})),
          FL_GRADIENT(max(-0.2, v[0]), of({4, 5})),
          FL_GRADIENT(min(v[0], v[1]), of({2, 1, 3}), of({1, 4})),
          FL_GRADIENT(min(v[0], 0.2), of({4, 5})),
          FL_GRADIENT(min(-0.2, v[0]), of({4, 5}))};
}

Calls shapes() {
  const Variable reference(of({2, 3}), false);
  const std::vector<std::pair<int, int>> pad = {{1, 0}, {0, 2}, {3, 1}};
  return {FL_GRADIENT(transpose(v[0]), of({3})),
          FL_GRADIENT(reorder(v[0], {1, 0}), of({3})),
          FL_GRADIENT(transpose(v[0], {1, 0, 3, 2}), of({2, 1, 3, 2})),
          FL_GRADIENT(reorder(v[0], {2, 1, 0}), of({2, 1, 3})),
          FL_GRADIENT(tileAs(v[0], Shape({2, 3, 4})), of({1, 3})),
          FL_GRADIENT(tileAs(v[0], reference), of({1, 3})),
          FL_GRADIENT(sumAs(v[0], Shape({1, 3})), of({2, 3, 4, 2})),
          FL_GRADIENT(sumAs(v[0], reference), of({2, 3, 4})),
          FL_GRADIENT(concatenate({v[0], v[1], v[0]}, 3), of({2, 1, 2, 1}), of({2, 1, 2, 2})),
          FL_GRADIENT(concatenate({v[0]}, 0), of({2, 3})),
          FL_GRADIENT(split(v[0], 2, 1), of({2, 5})),
          FL_GRADIENT(split(v[0], 4, 0), of({3})),
          FL_GRADIENT(split(v[0], std::vector<long>{1, 2}, 2), of({2, 1, 3})),
          FL_GRADIENT(tile(v[0], {1, 3, 1, 2}), of({2, 2})),
          FL_GRADIENT(tile(v[0], {}), of({2, 2})),
          FL_GRADIENT(tile(v[0], {3}, dtype::f64), of({})),
          FL_GRADIENT(flat(v[0]), of({})),
          FL_GRADIENT(moddims(v[0], {0, -1, 1}), of({2, 3, 2})),
          FL_GRADIENT(padding(v[0], pad, 0.5), of({2, 1, 2}))};
}

Calls reductions() {
  const Shape shape = {3, 1, 2, 2};
  return {FL_GRADIENT(sum(v[0], {3, 0}, true), of(shape)),
          FL_GRADIENT(mean(v[0], {0, 2}), of(shape)),
          FL_GRADIENT(mean(v[0], {}, true), of(shape)),
          FL_GRADIENT(var(v[0], {2, 0}), of(shape)),
          FL_GRADIENT(var(v[0], {1, 3}, true, true), of(shape)),
          FL_GRADIENT(norm(v[0], {0, 3}, 3, true), of(shape)),
          FL_GRADIENT(norm(v[0], {0}, 1), of(shape)),
          FL_GRADIENT(normalize(v[0], {0, 3}, 1), of(shape)),
          FL_GRADIENT(normalize(v[0], {2}, 2.5, 0.1), positive(shape)),
          FL_GRADIENT(softmax(v[0], 3), of(shape)),
          FL_GRADIENT(softmax(v[0], 1), of(shape)),
          FL_GRADIENT(logSoftmax(v[0], 3), of(shape)),
          FL_GRADIENT(logSoftmax(v[0], 1), of(shape))};
}

Calls matrices() {
  return {FL_GRADIENT(matmul(v[0], v[1]), of({2, 3, 1, 2}), of({3, 1, 1, 2})),
          FL_GRADIENT(matmul(v[0], v[1]), of({3}), of({3, 2, 2})),
          FL_GRADIENT(matmul(v[0], v[1]), of({2, 3, 2}), of({3})),
          FL_GRADIENT(matmulTN(v[0], v[1]), of({3, 2}), of({3, 1, 2, 2})),
          FL_GRADIENT(matmulTN(v[0], v[1]), of({3}), of({3})),
          FL_GRADIENT(matmulNT(v[0], v[1]), of({2, 3, 2, 2}), of({1, 3})),
          FL_GRADIENT(matmulNT(v[0], v[1]), of({2, 3, 2}), of({3})),
          FL_GRADIENT(matmulNT(v[0], v[1]), of({3}), of({3})),
          FL_GRADIENT(linear(v[0], v[1]), of({3, 1, 2, 1, 2}), of({1, 3})),
          FL_GRADIENT(linear(v[0], v[1], none()), of({3, 2}), of({2, 3})),
          FL_GRADIENT(linear(v[0], v[1], v[2]), of({1}), of({2, 1}), of({2}))};
}

Calls images() {
  const Tensor image = of({5, 4, 4, 2});
  const auto most = PoolingMode::MAX, including = PoolingMode::AVG_INCLUDE_PADDING;
  const auto excluding = PoolingMode::AVG_EXCLUDE_PADDING;
  return {// Stride, padding, dilation and groups at once; one group a channel; one pixel.
          FL_GRADIENT(conv2d(v[0], v[1], 2, 1, 1, 2, 1, 2, 2), image, of({3, 2, 2, 2})),
          FL_GRADIENT(conv2d(v[0], v[1], v[2], 1, 2, 2, 0, 2, 1, 4), image, of({2, 3, 1, 4}),
                      of({1, 1, 4, 1})),
          FL_GRADIENT(conv2d(v[0], v[1], none(), 3, 3), image, of({1, 1, 4, 2})),
          FL_GRADIENT(conv2d(v[0], v[1]), of({2, 1, 1, 1}), of({2, 1, 1, 1})),
          FL_GRADIENT(pool2d(v[0], 3, 2, 2, 3, 1, 1), image),
          FL_GRADIENT(pool2d(v[0](span, span, 0, 0), 3, 2, 2, 3, 1, 1), image),
          FL_GRADIENT(pool2d(v[0], 1, 4, 1, 1, 0, 2, most), image),
          FL_GRADIENT(pool2d(v[0], 3, 2, 2, 3, 1, 1, including), image),
          FL_GRADIENT(pool2d(v[0], 3, 2, 2, 3, 1, 1, excluding), image),
          FL_GRADIENT(pool2d(v[0], 5, 4, 1, 1, 0, 0, excluding), image)};
}

// With statistics of its own for each call.
Variable batchnormOf(const std::vector<Variable>& v, const std::vector<int>& axes, bool train,
                     double epsilon) {
  Variable mean(full({4}, 0.3, dtype::f64), false), variance(full({4}, 0.7, dtype::f64), false);
  return batchnorm(v[0], v[1], v[2], mean, variance, axes, train, 0.2, epsilon);
}

Calls layers() {
  const Tensor weight = of({4}), bias = of({4});
  // 2 -> 2 features, two layers in both directions; two layers of one.
  const auto both = RnnMode::GRU, one = RnnMode::TANH;
  const Tensor sequence = of({2, 1, 3}), state = of({2, 1, 4});
  return {Call{"batchnorm(...)",
               [](const auto& v) { return batchnormOf(v, {0, 1}, true, 0.1); },
               {of({2, 2, 3}), weight, bias}},
          Call{"batchnorm(...)",
               [](const auto& v) { return batchnormOf(v, {1}, false, 0.1); },
               {of({1, 4, 2, 2}), weight, bias}},
          FL_GRADIENT(rnn(v[0], v[1], none(), v[2], 2, 2, both, true, 0.4f), sequence, state,
                      of({12 * (2 + 2 + 2) + 12 * (4 + 2 + 2)})),
          FL_GRADIENT(rnn(v[0], none(), none(), v[1], 1, 2, one, false, 0.4f), sequence,
                      of({(2 + 1 + 2) + (1 + 1 + 2)})),
          FL_GRADIENT(dropout(v[0], 0.4), of({5, 1, 3})),
          FL_GRADIENT(dropout(v[0], 0), of({3})),
          FL_GRADIENT(gatedlinearunit(v[0], 0), of({4, 1, 3})),
          FL_GRADIENT(gatedlinearunit(v[0], 2), of({3, 1, 2})),
          FL_GRADIENT(embedding(integers({2, 1, 2}, {3, 0, 3, 3}), v[0]), of({2, 4}))};
}

Calls attention() {
  const Tensor query = of({3, 4, 2}), key = of({2, 4, 2}), value = of({2, 4, 2});
  const Tensor mask = of({3, 2}), pads = of({2, 2});
  return {FL_GRADIENT(relativePositionalEmbeddingRotate(v[0]), of({3, 2, 1, 2})),
          // Positions of each head of each sequence; of all, with both masks and an offset.
          FL_GRADIENT(multiheadAttention(v[0], v[1], v[2], v[3], none(), none(), 2, 0), query, key,
                      value, of({7, 2, 4})),
          FL_GRADIENT(multiheadAttention(v[0], v[1], v[2], v[3], v[4], v[5], 2, 0, 1), query, key,
                      value, of({9, 2}), mask, pads),
          FL_GRADIENT(multiheadAttention(v[0], v[1], v[2], none(), v[3], none(), 4, 0.4), query,
                      key, value, mask),
          FL_GRADIENT(multiheadAttention(v[0], v[0], v[0], none(), none(), none(), 1, 0), query)};
}

Calls losses() {
  const Variable targets = integers({3, 2}, {1, 0, 3, 3, 2, 1}), one = integers({}, {2});
  return {FL_GRADIENT(binaryCrossEntropy(v[0], v[1]), positive({3, 1, 2}), positive({3, 1, 2})),
          FL_GRADIENT(categoricalCrossEntropy(v[0], targets), of({4, 3, 2})),
          FL_GRADIENT(categoricalCrossEntropy(v[0], targets, ReduceMode::SUM, 3), of({4, 3, 2})),
          FL_GRADIENT(categoricalCrossEntropy(v[0], targets, ReduceMode::NONE, 3), of({4, 3, 2})),
          FL_GRADIENT(categoricalCrossEntropy(v[0], targets, ReduceMode::MEAN, 3), of({4, 3, 2})),
          FL_GRADIENT(categoricalCrossEntropy(v[0], one, ReduceMode::NONE), of({4})),
          FL_GRADIENT(weightedCategoricalCrossEntropy(v[0], targets, v[1], 3), of({4, 3, 2}),
                      positive({4})),
          FL_GRADIENT(weightedCategoricalCrossEntropy(v[0], targets, v[1], -1), of({4, 3, 2}),
                      positive({4}))};
}

}  // namespace

Variable GradientCall::operator()(const std::vector<Variable>& variables) const {
  setSeed(3);
  return function(variables);
}

Calls gradientCalls() {
  Calls all;
  for (const auto part :
       {arithmetic, elementwise, shapes, reductions, matrices, images, layers, attention, losses}) {
    for (Call& call : part()) all.push_back(std::move(call));
  }
  return all;
}

}  // namespace fl::test
