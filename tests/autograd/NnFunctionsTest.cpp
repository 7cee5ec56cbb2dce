// Convolution, pooling, dropout, gated linear units.
#include "fl/autograd/Functions.h"
#include "fl/tensor/Random.h"
#include "tests/autograd/GradientCheck.h"

namespace fl::test {
namespace {

struct Convolution {
  int sx, sy, px, py, dx, dy, groups;
};

// The definition, element by element.
std::vector<double> plainConvolution(const Tensor& input, const Tensor& weights,
                                     const Convolution& c) {
  const Dim w = input.dim(0), h = input.dim(1), channels = input.dim(2), n = input.dim(3);
  const Dim kw = weights.dim(0), kh = weights.dim(1), depth = weights.dim(2);
  const Dim outputs = weights.dim(3), perGroup = outputs / c.groups;
  const Dim ow = 1 + (w + 2 * c.px - ((kw - 1) * c.dx + 1)) / c.sx;
  const Dim oh = 1 + (h + 2 * c.py - ((kh - 1) * c.dy + 1)) / c.sy;
  const std::vector<double> in = valuesOf(input);
  const std::vector<double> filter = valuesOf(weights);
  std::vector<double> result;
  for (Dim image = 0; image < n; ++image) {
    for (Dim o = 0; o < outputs; ++o) {
      for (Dim oy = 0; oy < oh; ++oy) {
        for (Dim ox = 0; ox < ow; ++ox) {
          double sum = 0;
          for (Dim d = 0; d < depth; ++d) {
            const Dim channel = o / perGroup * depth + d;
            for (Dim ky = 0; ky < kh; ++ky) {
              for (Dim kx = 0; kx < kw; ++kx) {
                const Dim x = ox * c.sx - c.px + kx * c.dx;
                const Dim y = oy * c.sy - c.py + ky * c.dy;
                if (x >= 0 && x < w && y >= 0 && y < h) {
                  sum += in[x + w * (y + h * (channel + channels * image))] *
                         filter[kx + kw * (ky + kh * (d + depth * o))];
                }
              }
            }
          }
          result.push_back(sum);
        }
      }
    }
  }
  return result;
}

TEST(NnFunctions, Conv2d) {
  const std::pair<Convolution, std::pair<Shape, Shape>> cases[] = {
      {{1, 1, 0, 0, 1, 1, 1}, {{5, 4, 2, 2}, {3, 2, 2, 3}}},
      {{1, 1, 1, 1, 1, 1, 1}, {{4, 4, 1, 1}, {3, 3, 1, 2}}},
      {{2, 1, 1, 0, 1, 1, 1}, {{6, 4, 2, 1}, {3, 2, 2, 2}}},
      {{1, 2, 2, 1, 2, 1, 1}, {{5, 5, 1, 2}, {3, 2, 1, 2}}},
      {{1, 1, 0, 0, 1, 1, 2}, {{4, 3, 4, 1}, {2, 2, 2, 4}}},
  };
  for (const auto& [c, shapes] : cases) {
    SCOPED_TRACE(shapes.first.toString() + " by " + shapes.second.toString());
    const Tensor input = randomTensor(shapes.first);
    const Tensor weights = randomTensor(shapes.second);
    const Tensor bias = randomTensor({1, 1, shapes.second[3], 1});
    const auto f = [c = c](const std::vector<Variable>& v) {
      return v.size() == 2 ? conv2d(v[0], v[1], c.sx, c.sy, c.px, c.py, c.dx, c.dy, c.groups)
                           : conv2d(v[0], v[1], v[2], c.sx, c.sy, c.px, c.py, c.dx, c.dy, c.groups);
    };
    const Variable result = f({Variable(input, false), Variable(weights, false)});
    expectNear(valuesOf(result.tensor()), plainConvolution(input, weights, c), 1e-12);
    expectGradients(f, {input, weights});
    expectGradients(f, {input, weights, bias});
  }
}

TEST(NnFunctions, Conv2dBias) {
  const Variable input(full(Shape({2, 2, 1, 1}), 1.0, dtype::f64), false);
  const Variable weights(full(Shape({1, 1, 1, 2}), 1.0, dtype::f64), false);
  const Variable bias(Tensor::fromVector(Shape({1, 1, 2, 1}), std::vector<double>{10, 20}), false);
  expectNear(valuesOf(conv2d(input, weights, bias).tensor()), {11, 11, 11, 11, 21, 21, 21, 21}, 0);
}

TEST(NnFunctions, Conv2dTakesBenchmarks) {
  const Tensor input = randomTensor({3, 3, 1, 1}), weights = randomTensor({2, 2, 1, 1});
  const auto gradient = [&](const std::shared_ptr<fl::detail::ConvBenchmarks>& benchmarks) {
    Variable x(input, true), w(weights, true);
    conv2d(x, w, 1, 1, 0, 0, 1, 1, 1, benchmarks).backward();
    return valuesOf(w.grad().tensor());
  };
  EXPECT_EQ(gradient(std::make_shared<fl::detail::ConvBenchmarks>()), gradient(nullptr));
}

// Each gradient alone is what it is among all.
TEST(NnFunctions, Conv2dOfFrozenParts) {
  const Tensor values[] = {randomTensor({5, 4, 2, 2}), randomTensor({3, 2, 2, 3}),
                           randomTensor({1, 1, 3, 1})};
  const auto gradients = [&](unsigned wanted) {
    std::vector<Variable> v;
    for (int i = 0; i < 3; ++i) {
      v.emplace_back(values[i], (wanted >> i & 1) != 0);
    }
    conv2d(v[0], v[1], v[2]).backward();
    return v;
  };
  const std::vector<Variable> all = gradients(7);
  for (unsigned i = 0; i < 3; ++i) {
    const std::vector<Variable> one = gradients(1u << i);
    EXPECT_EQ(valuesOf(one[i].grad().tensor()), valuesOf(all[i].grad().tensor()));
  }
}

TEST(NnFunctions, Pool2d) {
  const Variable image(Tensor::fromVector(Shape({2, 2, 1, 1}), std::vector<double>{1, -2, 3, -4}),
                       false);
  expectNear(valuesOf(pool2d(image, 2, 2).tensor()), {3}, 0);
  expectNear(valuesOf(pool2d(image, 2, 2, 1, 1, 0, 0, PoolingMode::AVG_INCLUDE_PADDING).tensor()),
             {-0.5}, 1e-15);
  // Windows at the corners of a padded image see one element each.
  expectNear(valuesOf(pool2d(image, 2, 2, 2, 2, 1, 1).tensor()), {1, -2, 3, -4}, 0);
  expectNear(valuesOf(pool2d(image, 2, 2, 2, 2, 1, 1, PoolingMode::AVG_INCLUDE_PADDING).tensor()),
             {0.25, -0.5, 0.75, -1}, 1e-15);
  expectNear(valuesOf(pool2d(image, 2, 2, 2, 2, 1, 1, PoolingMode::AVG_EXCLUDE_PADDING).tensor()),
             {1, -2, 3, -4}, 1e-15);

  for (PoolingMode mode :
       {PoolingMode::MAX, PoolingMode::AVG_INCLUDE_PADDING, PoolingMode::AVG_EXCLUDE_PADDING}) {
    SCOPED_TRACE(static_cast<int>(mode));
    const Tensor input = spreadTensor({5, 6, 2, 2});
    const auto check = [&](int wx, int wy, int sx, int sy, int px, int py) {
      expectGradients(
          [=](const std::vector<Variable>& v) {
            return pool2d(v[0], wx, wy, sx, sy, px, py, mode);
          },
          {input});
    };
    check(2, 2, 2, 2, 0, 0);
    check(3, 2, 1, 2, 1, 0);  // overlapping windows
  }
}

TEST(NnFunctions, Dropout) {
  setSeed(7);
  const double p = 0.3;
  Variable x(full(Shape({100, 100}), 2.0, dtype::f64), true);
  Variable y = dropout(x, p);
  y.backward();
  const std::vector<double> values = valuesOf(y.tensor());
  const std::vector<double> grads = valuesOf(x.grad().tensor());
  int kept = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    kept += values[i] != 0;
    ASSERT_TRUE(values[i] == 0 || std::abs(values[i] - 2 / (1 - p)) < 1e-12) << values[i];
    ASSERT_NEAR(grads[i], values[i] / 2, 1e-12);  // the mask of the forward pass
  }
  // 7000 of 10000 are expected; the deviation of their number is 46.
  EXPECT_NEAR(kept, 7000, 5 * 46);

  EXPECT_EQ(valuesOf(dropout(x, 0).tensor()), valuesOf(x.tensor()));
  EXPECT_EQ(valuesOf(dropout(x, 1).tensor()), std::vector<double>(10000, 0.0));
  EXPECT_NE(errorOf([&] {
              dropout(x, 1.5);
            }).find("dropout: the probability p must be in [0, 1], not 1.5"),
            std::string::npos);
}

TEST(NnFunctions, DropoutFollowsTheSeed) {
  const Variable x(full(Shape({50}), 1.0, dtype::f32), false);
  setSeed(3);
  const std::vector<double> first = valuesOf(dropout(x, 0.5).tensor());
  EXPECT_NE(valuesOf(dropout(x, 0.5).tensor()), first);
  setSeed(3);
  EXPECT_EQ(valuesOf(dropout(x, 0.5).tensor()), first);
}

TEST(NnFunctions, GatedLinearUnit) {
  const Variable x(Tensor::fromVector(std::vector<double>{2, 3, 0, std::log(3.0)}), false);
  expectNear(valuesOf(gatedlinearunit(x, 0).tensor()), {1, 2.25}, 1e-14);
  expectGradients([](const std::vector<Variable>& v) { return gatedlinearunit(v[0], 1); },
                  {randomTensor({3, 4})});
  EXPECT_NE(errorOf([] {
              gatedlinearunit(Variable(randomTensor({3}), false), 0);
            }).find("gatedlinearunit: dimension 0 of f64[3] must be even"),
            std::string::npos);
}

TEST(NnFunctions, Embedding) {
  const Variable table(Tensor::fromVector(Shape({2, 3}), std::vector<double>{0, 1, 10, 11, 20, 21}),
                       false);
  const auto indices = [](const Shape& shape, std::vector<int> values) {
    return Variable(Tensor::fromVector(shape, std::move(values)), false);
  };
  const Variable found = embedding(indices({2, 2}, {2, 0, 1, 2}), table);
  EXPECT_EQ(found.shape(), Shape({2, 2, 2}));
  expectNear(valuesOf(found.tensor()), {20, 21, 0, 1, 10, 11, 20, 21}, 0);
  EXPECT_EQ(embedding(indices({}, {1}), table).shape(), Shape({2}));
  EXPECT_EQ(embedding(indices({1, 2, 1, 2}, {0, 0, 1, 1}), table).shape(), Shape({2, 1, 2, 1, 2}));
  const Variable floats(Tensor::fromVector(std::vector<float>{1, 0}), false);
  expectNear(valuesOf(embedding(floats, table).tensor()), {10, 11, 0, 1}, 0);

  const std::pair<Shape, std::vector<int>> cases[] = {{{4}, {3, 0, 3, 3}},
                                                      {{}, {2}},
                                                      {{1}, {4}},
                                                      {{2, 3}, {0, 1, 2, 3, 4, 0}},
                                                      {{1, 1, 2, 1}, {1, 1}}};
  for (const auto& [shape, values] : cases) {
    SCOPED_TRACE(shape.toString());
    for (Dim size : {1, 3}) {
      expectGradients(
          [&, shape = shape, values = values](const std::vector<Variable>& v) {
            return embedding(indices(shape, values), v[0]);
          },
          {randomTensor({size, 5})});
    }
  }
}

// 16 bits count to 2048 or 256 by ones.
TEST(NnFunctions, GradientsOfEqualIndicesAddUp) {
  constexpr Dim kTimes = 5000;
  const Variable zeros(full({kTimes}, 0, dtype::s32), false);
  for (const auto& [type, expected] : {std::pair(dtype::f16, 5000.0), {dtype::bf16, 4992.0}}) {
    SCOPED_TRACE(type);
    Variable table(full({1, 2}, 1.0, type), true);
    embedding(zeros, table).backward();
    EXPECT_EQ(valuesOf(table.grad().tensor()), (std::vector<double>{expected, 0}));
    EXPECT_EQ(table.grad().type(), type);
    Variable x(full({3}, 1.0, type), true);
    x.flat(zeros.tensor()).backward();
    EXPECT_EQ(valuesOf(x.grad().tensor()), (std::vector<double>{expected, 0, 0}));
  }
}

TEST(NnFunctions, EmbeddingMisuse) {
  const Variable table(randomTensor({2, 3}), false);
  const auto words = [](const Variable& input, const Variable& embeddings) {
    return errorOf([&] { valuesOf(embedding(input, embeddings).tensor()); });
  };
  const Variable indices(Tensor::fromVector(std::vector<int>{1, 3}), false);
  EXPECT_NE(words(indices, Variable(randomTensor({6}), false))
                .find("embedding: embeddings f64[6] must be (size, count)"),
            std::string::npos);
  EXPECT_NE(words(indices.astype(dtype::b8), table)
                .find("embedding: input b8[2] must hold indices, not a mask"),
            std::string::npos);
  const std::string message = words(indices, table);
  EXPECT_NE(message.find("embedding: "), std::string::npos) << message;
  EXPECT_NE(message.find("3 is out of range for dimension 1 of 3 elements"), std::string::npos)
      << message;
}

}  // namespace
}  // namespace fl::test
