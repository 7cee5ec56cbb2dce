// batchnorm and rnn on tensors against NumPy's loops, in f64 to the last digits, and in the other
// floating dtypes within their precision.
#include <gtest/gtest.h>

#include "fl/autograd/tensor/AutogradOps.h"
#include "tests/reference/References.h"

namespace fl::test {
namespace {

// Of f64, for results whose terms may cancel.
constexpr double kUlps = 1e5;

// The largest distance of elements that a dtype's rounding explains, for values around 1.
const std::pair<dtype, double> kOtherTypes[] = {
    {dtype::f32, 1e-5}, {dtype::f16, 2e-2}, {dtype::bf16, 1.5e-1}};

void expectClose(const Tensor& actual, const Tensor& expected, dtype type, double tolerance) {
  EXPECT_EQ(actual.type(), type);
  ASSERT_EQ(actual.shape(), expected.shape());
  const double distance = amax(absolute(actual.astype(dtype::f64) - expected)).scalar<double>();
  EXPECT_LE(distance, tolerance) << type;
}

struct Normalized {
  Tensor y, mean, variance;
};

void normalization(ReferenceCase& c) {
  const std::string name = c.text("x");
  const auto run = [&](dtype type, dtype statistics) {
    const auto parameter = [&](const char* suffix) {
      return c.input(name + suffix).astype(statistics);
    };
    Normalized result{{}, parameter("_m"), parameter("_v")};
    result.y = batchnorm(c.tensor("x").astype(type), parameter("_w"), parameter("_b"), result.mean,
                         result.variance, c.integers("axes"), c.integer("train") != 0,
                         c.number("momentum"), c.number("epsilon"));
    return result;
  };
  const Normalized exact = run(dtype::f64, dtype::f64);
  c.expect("y", exact.y, kUlps);
  c.expect("mean", exact.mean, kUlps);
  c.expect("variance", exact.variance, kUlps);
  for (const auto& [type, tolerance] : kOtherTypes) {
    const Normalized other = run(type, dtype::f32);
    expectClose(other.y, exact.y, type, tolerance);
    expectClose(other.mean, exact.mean, dtype::f32, tolerance);
    expectClose(other.variance, exact.variance, dtype::f32, tolerance);
  }
}

void recurrent(ReferenceCase& c) {
  const auto mode = static_cast<RnnMode>(c.integer("mode"));
  const auto run = [&](dtype type) {
    const auto state = [&](const char* key) {
      return c.has(key) ? c.tensor(key).astype(type) : Tensor(type);
    };
    return rnn(c.tensor("x").astype(type), state("h"), state("c"), c.tensor("w").astype(type),
               c.integer("size"), c.integer("layers"), mode, c.integer("directions") == 2, 0);
  };
  const auto [y, hidden, cell] = run(dtype::f64);
  c.expect("y", y, kUlps);
  c.expect("hidden", hidden, kUlps);
  if (mode == RnnMode::LSTM) {
    c.expect("cell", cell, kUlps);
  } else {
    EXPECT_TRUE(cell.isEmpty());
  }
  for (const auto& [type, tolerance] : kOtherTypes) {
    // A ReLU's values grow without a limit.
    const double scale = std::max(1.0, amax(absolute(y)).scalar<double>());
    const auto [y2, hidden2, cell2] = run(type);
    expectClose(y2, y, type, tolerance * scale);
    expectClose(hidden2, hidden, type, tolerance * scale);
    if (mode == RnnMode::LSTM) {
      expectClose(cell2, cell, type, tolerance * scale);
    }
  }
}

TEST(Reference, Neural) {
  runReferences("neural", {{"batchnorm", normalization}, {"rnn", recurrent}});
}

}  // namespace
}  // namespace fl::test
