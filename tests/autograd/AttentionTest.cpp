// Attention: against plain loops, and its gradients.
#include <cmath>
#include <limits>

#include "fl/autograd/Functions.h"
#include "fl/tensor/Random.h"
#include "tests/autograd/GradientCheck.h"

namespace fl::test {
namespace {

Variable empty() { return Variable(Tensor(dtype::f64), false); }

// What multiheadAttention is given; an empty shape leaves an input out.
struct Case {
  Dim time, keys, features, batch;
  int heads;
  Dim positions = 0;
  int offset = 0;
  bool mask = false, padMask = false;

  std::vector<Tensor> inputs() const {
    const auto maybe = [](bool wanted, const Shape& shape) {
      return wanted ? randomTensor(shape, -2, 2) : Tensor(dtype::f64);
    };
    return {randomTensor({time, features * heads, batch}),
            randomTensor({keys, features * heads, batch}),
            randomTensor({keys, features * heads, batch}),
            maybe(positions > 0, {positions, features}),
            maybe(mask, {time, keys}),
            maybe(padMask, {keys, batch})};
  }
};

Variable attention(const Case& c, const std::vector<Variable>& v) {
  return multiheadAttention(v[0], v[1], v[2], v[3], v[4], v[5], c.heads, 0, c.offset);
}

// The score of one key for one query.
double plainScore(const Case& c, const std::vector<std::vector<double>>& in, Dim t, Dim k, int head,
                  Dim b) {
  double product = 0;
  for (Dim f = 0; f < c.features; ++f) {
    const Dim column = f + c.features * (head + c.heads * b);
    const Dim position = c.positions / 2 + k - t - c.offset;
    double other = in[1][k + c.keys * column];
    if (position >= 0 && position < c.positions) {
      other += in[3][position + c.positions * f];
    }
    product += in[0][t + c.time * column] * other;
  }
  product /= std::sqrt(static_cast<double>(c.features));
  return product + (c.mask ? in[4][t + c.time * k] : 0) + (c.padMask ? in[5][k + c.keys * b] : 0);
}

std::vector<double> plainAttention(const Case& c, const std::vector<Tensor>& inputs) {
  std::vector<std::vector<double>> in;
  for (const Tensor& input : inputs) {
    in.push_back(input.isEmpty() ? std::vector<double>() : valuesOf(input));
  }
  std::vector<double> result(inputs[0].elements());
  for (Dim b = 0; b < c.batch; ++b) {
    for (int head = 0; head < c.heads; ++head) {
      for (Dim t = 0; t < c.time; ++t) {
        std::vector<double> weights;
        double total = 0;
        for (Dim k = 0; k < c.keys; ++k) {
          weights.push_back(std::exp(plainScore(c, in, t, k, head, b)));
          total += weights.back();
        }
        for (Dim f = 0; f < c.features; ++f) {
          const Dim column = f + c.features * (head + c.heads * b);
          for (Dim k = 0; k < c.keys; ++k) {
            result[t + c.time * column] += weights[k] / total * in[2][k + c.keys * column];
          }
        }
      }
    }
  }
  return result;
}

const Case kCases[] = {
    {1, 1, 1, 1, 1},
    {3, 3, 2, 2, 2},
    {3, 5, 3, 1, 2, 0, 0, true},
    {4, 2, 1, 2, 3, 0, 0, false, true},
    {3, 3, 2, 2, 1, 6, 0, true, true},
    {2, 4, 3, 2, 2, 8, 0},  // positions beyond what is asked for
    {2, 5, 2, 1, 2, 9, 3},  // queries that are later than the first key
    {4, 4, 2, 1, 1, 2, 0},  // positions that end before the last key
    {3, 2, 2, 2, 2, 7, 1, true, true},
};

TEST(Attention, ValuesAndGradients) {
  for (const Case& c : kCases) {
    SCOPED_TRACE("case " + std::to_string(&c - kCases));
    const std::vector<Tensor> inputs = c.inputs();
    std::vector<Variable> fixed;
    std::vector<Tensor> given;
    for (const Tensor& input : inputs) {
      fixed.emplace_back(input, false);
      if (!input.isEmpty()) {
        given.push_back(input);
      }
    }
    const Variable result = attention(c, fixed);
    EXPECT_EQ(result.shape(), inputs[0].shape());
    expectNear(valuesOf(result.tensor()), plainAttention(c, inputs), 1e-12);
    expectGradients(
        [&](const std::vector<Variable>& v) {
          std::vector<Variable> all;
          for (size_t i = 0, next = 0; i < inputs.size(); ++i) {
            all.push_back(inputs[i].isEmpty() ? empty() : v[next++]);
          }
          return attention(c, all);
        },
        given);
  }
}

// Without queries, keys or samples there is nothing to tell the others.
TEST(Attention, OfNothing) {
  struct {
    Dim time, keys, batch;
  } const sizes[] = {{0, 3, 2}, {3, 0, 2}, {3, 3, 0}, {2, 3, 0}, {0, 0, 2}};
  for (const auto& [time, keys, batch] : sizes) {
    SCOPED_TRACE(Shape({time, keys, batch}).toString());
    Variable query(randomTensor({time, 4, batch}), true);
    Variable key(randomTensor({keys, 4, batch}), true), value = key.copy();
    multiheadAttention(query, key, value, empty(), empty(), empty(), 2, 0).backward();
    for (const Variable& input : {query, key, value}) {
      EXPECT_EQ(input.grad().shape(), input.shape());
      EXPECT_EQ(valuesOf(input.grad().tensor()), std::vector<double>(input.elements(), 0));
    }
  }
}

// Where a mask is -inf nothing flows, in either direction.
TEST(Attention, MasksHideKeys) {
  const double inf = std::numeric_limits<double>::infinity();
  const Variable query(randomTensor({2, 2, 1}), false);
  Variable key(randomTensor({2, 2, 1}), true);
  Variable value(Tensor::fromVector(Shape({2, 2, 1}), std::vector<double>{1, 10, 2, 20}), true);
  const Variable causal(
      Tensor::fromVector(Shape({2, 2}), std::vector<double>{0, 0, -inf, 0}).astype(dtype::f32),
      false);
  Variable first = multiheadAttention(query, key, value, empty(), causal, empty(), 1, 0)(0);
  expectNear(valuesOf(first.tensor()), {1, 2}, 0);
  first.backward();
  expectNear(valuesOf(value.grad().tensor()), {1, 0, 1, 0}, 0);
  expectNear(valuesOf(key.grad().tensor()), {0, 0, 0, 0}, 0);

  const Variable pads(Tensor::fromVector(Shape({2, 1}), std::vector<double>{-inf, 0}), false);
  expectNear(valuesOf(multiheadAttention(query, key, value, empty(), empty(), pads, 1, 0).tensor()),
             {10, 10, 20, 20}, 0);
}

// Flashlight's callers repeat the embedding for each head of each sequence.
TEST(Attention, PositionsOfEachHead) {
  const Variable query(randomTensor({3, 4, 2}), false), posEmb(randomTensor({7, 2}), false);
  const auto attended = [&](const Variable& positions) {
    return valuesOf(
        multiheadAttention(query, query, query, positions, empty(), empty(), 2, 0).tensor());
  };
  expectNear(attended(tile(posEmb, {1, 1, 4})), attended(posEmb), 1e-12);
}

TEST(Attention, Dropout) {
  setSeed(11);
  const Variable ones(full(Shape({64, 2, 1}), 1.0, dtype::f64), false);
  const auto mean = [&](double p) {
    const Variable y = multiheadAttention(ones, ones, ones, empty(), empty(), empty(), 2, p);
    return fl::mean(y, {}).scalar<double>();
  };
  EXPECT_NEAR(mean(0), 1, 1e-12);
  EXPECT_EQ(mean(1), 0);
  // 8192 equal weights, each dropped or doubled: the deviation of their mean is 0.011.
  EXPECT_NEAR(mean(0.5), 1, 0.06);
  EXPECT_NE(mean(0.5), 1);
}

TEST(Attention, Rotate) {
  const Variable x(Tensor::fromVector(Shape({2, 3}), std::vector<double>{1, 2, 3, 4, 5, 6}), false);
  const Variable y = relativePositionalEmbeddingRotate(x);
  EXPECT_EQ(y.shape(), Shape({4, 3}));
  expectNear(valuesOf(y.tensor()), {1, 2, 0, 0, 0, 3, 4, 0, 0, 0, 5, 6}, 0);
  for (const Shape& shape :
       {Shape({2, 3}), Shape({1, 1, 1}), Shape({5, 2, 3}), Shape({2, 4, 1, 2})}) {
    SCOPED_TRACE(shape.toString());
    expectGradients(
        [](const std::vector<Variable>& v) { return relativePositionalEmbeddingRotate(v[0]); },
        {randomTensor(shape)});
  }
  EXPECT_NE(errorOf([] {
              relativePositionalEmbeddingRotate(Variable(randomTensor({3}), false));
            }).find("relativePositionalEmbeddingRotate: input f64[3] must have two dimensions"),
            std::string::npos);
}

// A mask for each head of each sequence, with and without one of the sequences' ends.
TEST(Attention, MasksOfEveryHead) {
  const Case c = {3, 5, 2, 2, 2};
  std::vector<Tensor> inputs = c.inputs();
  const std::vector<double> mask = valuesOf(randomTensor({3, 5, 4}, -2, 2));
  for (const bool padded : {false, true}) {
    SCOPED_TRACE(padded);
    const Variable pad(padded ? randomTensor({5, 2}, -2, 2) : Tensor(dtype::f64), false);
    const auto whole = [&](const std::vector<Variable>& v) {
      return multiheadAttention(v[0], v[1], v[2], empty(), v[3], pad, 2, 0);
    };
    const std::vector<Variable> fixed = {
        Variable(inputs[0], false), Variable(inputs[1], false), Variable(inputs[2], false),
        Variable(Tensor::fromVector(Shape({3, 5, 4}), mask), false)};
    const std::vector<double> result = valuesOf(whole(fixed).tensor());
    expectGradients(whole, {inputs[0], inputs[1], inputs[2], fixed[3].tensor()});
    for (Dim b = 0; b < 2; ++b) {
      for (Dim head = 0; head < 2; ++head) {
        // Alone with its own mask, a head gives the same.
        const auto part = [&](int i) {
          return Variable(inputs[i](span, range(2 * head, 2 * head + 2), range(b, b + 1)), false);
        };
        const Variable own(fixed[3].tensor()(span, span, 2 * b + head), false);
        const Variable ownPad = padded ? Variable(pad.tensor()(span, range(b, b + 1)), false) : pad;
        const std::vector<double> alone = valuesOf(
            multiheadAttention(part(0), part(1), part(2), empty(), own, ownPad, 1, 0).tensor());
        const auto first = result.begin() + 3 * (2 * head + 4 * b);
        expectNear(std::vector<double>(first, first + 6), alone, 1e-14);
      }
    }
    const Variable shared(fixed[3].tensor()(span, span, range(1)), false);
    const auto valuesWith = [&](const Variable& used) {
      return valuesOf(
          multiheadAttention(fixed[0], fixed[1], fixed[2], empty(), used, pad, 2, 0).tensor());
    };
    EXPECT_EQ(valuesWith(shared), valuesWith(moddims(shared, {3, 5})));
  }
}

TEST(Attention, Misuse) {
  const auto of = [](const Shape& shape) { return Variable(randomTensor(shape), false); };
  const auto words = [&](const Variable& query, const Variable& key, const Variable& value,
                         const Variable& posEmb, const Variable& mask, const Variable& padMask,
                         int heads, int offset = 0) {
    return errorOf(
        [&] { multiheadAttention(query, key, value, posEmb, mask, padMask, heads, 0, offset); });
  };
  const Variable q = of({3, 4, 2}), k = of({5, 4, 2}), no = empty();
  const auto expectWords = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find("multiheadAttention: " + part), std::string::npos) << message;
  };
  const std::string rule = "must be (time, features, batch), with one time of key and value";
  expectWords(words(of({3, 4}), k, k, no, no, no, 1),
              "query f64[3,4], key f64[5,4,2] and value f64[5,4,2] " + rule);
  expectWords(words(q, k, q, no, no, no, 1),
              "query f64[3,4,2], key f64[5,4,2] and value f64[3,4,2] " + rule);
  expectWords(words(q, of({5, 6, 2}), of({5, 6, 2}), no, no, no, 1), "query f64[3,4,2], key");
  expectWords(words(q, of({5, 4, 1}), of({5, 4, 1}), no, no, no, 1), "query f64[3,4,2], key");
  expectWords(words(q, k, k.astype(dtype::f32), no, no, no, 1),
              "Variables of different types, f64[3,4,2] and f32[5,4,2]");
  expectWords(words(q, k, k, no, no, no, 3), "3 heads do not divide the 4 features of query f64");
  expectWords(words(q, k, k, no, no, no, 0), "0 heads do not divide");
  expectWords(words(q, k, k, no, of({5, 3}), no, 2), "mask f64[5,3] must be (3, 5) or (3, 5, 4)");
  expectWords(words(q, k, k, no, of({1, 5}), no, 2), "mask f64[1,5] must be (3, 5) or (3, 5, 4)");
  expectWords(words(q, k, k, no, no, of({5}), 2), "padMask f64[5] must have shape (5, 2)");
  expectWords(words(q, k, k, of({9, 4}), no, no, 2),
              "posEmb f64[9,4] must be (positions, 2) or (positions, 2, 4)");
  expectWords(words(q, k, k, of({9, 2, 3}), no, no, 2), "posEmb f64[9,2,3] must be (positions, 2)");
  expectWords(words(q, k, k, of({4, 2}), no, no, 2),
              "posEmb f64[4,2] is too short for 3 queries at offset 0 and 5 keys");
  expectWords(words(q, k, k, of({9, 2}), no, no, 2, 5), "posEmb f64[9,2] is too short");
  EXPECT_NE(errorOf([&] {
              multiheadAttention(q, k, k, no, no, no, 2, 2.0);
            }).find("dropout: the probability p must be in [0, 1], not 2"),
            std::string::npos);
}

// A second run over a retained graph adds the same gradients; hooks see them once a run.
TEST(Attention, SecondUse) {
  const Case c = kCases[4];
  std::vector<Variable> v;
  for (const Tensor& input : c.inputs()) {
    v.emplace_back(input, true);
  }
  int calls = 0;
  v[1].registerGradHook([&](Variable&) { ++calls; });
  Variable y = attention(c, v);
  y.backward(/*retainGraph=*/true);
  std::vector<Tensor> once;
  for (const Variable& input : v) {
    once.push_back(input.grad().tensor());
  }
  y.backward();
  EXPECT_EQ(calls, 2);
  for (size_t i = 0; i < v.size(); ++i) {
    SCOPED_TRACE(i);
    expectNear(valuesOf(v[i].grad().tensor()), valuesOf(once[i] * 2.0), 1e-15);
  }
}

}  // namespace
}  // namespace fl::test
