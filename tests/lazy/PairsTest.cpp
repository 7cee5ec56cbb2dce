// Sums over all pairs of two sets of points: no kernel writes anything for all pairs, and results
// are those of loops in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "fl/autograd/Functions.h"
#include "fl/autograd/Variable.h"
#include "fl/tensor/tensor.h"
#include "tests/lazy/Counts.h"
#include "tests/lazy/LaunchCase.h"

namespace fl::testing {
namespace {

constexpr Dim kHere = 70, kThere = 90;

// Points with coordinates along the first dimension, or along the last one.
struct Points {
  Tensor tensor;
  std::vector<double> host;
  Dim count, coordinates;
  double at(Dim point, Dim coordinate, bool last) const {
    return host[last ? coordinate * count + point : point * coordinates + coordinate];
  }
};

Points makePoints(const Shape& shape, Dim coordinates, dtype type = dtype::f32) {
  const Tensor tensor = rand(shape, type) * 2 - 1;
  Points points{tensor, tensor.astype(dtype::f64).toHostVector<double>(),
                shape.elements() / coordinates, coordinates};
  eval(points.tensor);
  return points;
}

double squared(const Points& x, Dim i, const Points& y, Dim j, bool last = false) {
  double sum = 0;
  for (Dim k = 0; k < x.coordinates; ++k) {
    sum += std::pow(x.at(i, k, last) - y.at(j, k, last), 2);
  }
  return sum;
}

struct Done {
  std::vector<double> values;
  uint64_t launches, bytes;
};

Done run(const std::function<Tensor()>& compute) {
  sync();
  const Counts counts;
  const uint64_t moved = runtime::counters().bytesMoved;
  Tensor result = compute();
  eval(result);
  sync();
  const uint64_t launches = counts.launches(), bytes = runtime::counters().bytesMoved - moved;
  EXPECT_EQ(counts.fallbacks(), 0u);
  return {result.astype(dtype::f64).toHostVector<double>(), launches, bytes};
}

void expectNear(const std::vector<double>& got, const std::vector<double>& want, double relative) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], relative * (1 + std::abs(want[i]))) << i;
  }
}

// The forces of the points y on the points x, along `axis` of all pairs.
void expectForces(const Shape& xShape, const Shape& yShape, bool last, int axis) {
  SCOPED_TRACE(::testing::Message() << xShape << ", axis " << axis);
  const Points x = makePoints(xShape, 3), y = makePoints(yShape, 3);
  const auto compute = [&] {
    const Tensor apart = y.tensor - x.tensor;
    const Tensor square = sum(apart * apart, {last ? 2 : 0}, /*keepDims=*/true) + 0.1;
    return sum(apart / (square * sqrt(square)), {axis});
  };
  const Done forces = run(compute);
  std::vector<double> want(3 * kHere);
  for (Dim k = 0; k < 3; ++k) {
    for (Dim i = 0; i < kHere; ++i) {
      double& force = want[last ? k * kHere + i : i * 3 + k];
      for (Dim j = 0; j < kThere; ++j) {
        force +=
            (y.at(j, k, last) - x.at(i, k, last)) / std::pow(squared(x, i, y, j, last) + 0.1, 1.5);
      }
    }
  }
  expectNear(forces.values, want, 1e-5);
  EXPECT_EQ(forces.launches, 1u);
  EXPECT_EQ(forces.bytes, 4u * 3 * (kHere + kThere + kHere));
}

TEST(Pairs, ForcesAreOneLaunch) {
  expectForces({1, kHere, 3}, {kThere, 1, 3}, true, 0);
  expectForces({3, 1, kHere}, {3, kThere, 1}, false, 1);
  expectForces({3, kHere, 1}, {3, 1, kThere}, false, 2);
}

void expectNearest(dtype type, Dim coordinates, bool last, uint64_t launches, double relative) {
  SCOPED_TRACE(::testing::Message() << type << ", " << coordinates << ", last " << last);
  const Points x = makePoints(last ? Shape{kHere, 1, coordinates} : Shape{coordinates, 1, kHere},
                              coordinates, type);
  const Points y = makePoints(last ? Shape{1, kThere, coordinates} : Shape{coordinates, kThere, 1},
                              coordinates, type);
  const Done nearest = run([&] {
    const Tensor apart = x.tensor - y.tensor;
    return amin(sqrt(sum(apart * apart, {last ? 2 : 0})), {last ? 1 : 0});
  });
  std::vector<double> want;
  for (Dim i = 0; i < kHere; ++i) {
    double least = std::numeric_limits<double>::infinity();
    for (Dim j = 0; j < kThere; ++j) {
      least = std::min(least, std::sqrt(squared(x, i, y, j, last)));
    }
    want.push_back(least);
  }
  expectNear(nearest.values, want, relative);
  EXPECT_EQ(nearest.launches, launches);
}

TEST(Pairs, NearestIsOneLaunch) {
  expectNearest(dtype::f32, 3, false, 1, 1e-6);
  expectNearest(dtype::f32, 3, true, 1, 1e-6);
  expectNearest(dtype::f64, 2, false, 1, 1e-14);
  expectNearest(dtype::f32, 8, false, 1, 1e-6);
  // Of so many coordinates a sum is a sweep.
  expectNearest(dtype::f32, 9, false, 2, 1e-6);
}

// The sum over j of exp(-|x - y_j|^2) and its gradients.
TEST(Pairs, AGradientIsALaunchForEachSet) {
  const Points x = makePoints({1, kHere, 3}, 3), y = makePoints({kThere, 1, 3}, 3);
  const auto gradients = [&] {
    Variable here(x.tensor, true), there(y.tensor, true);
    {
      const Shape pairs = {kThere, kHere, 3};
      const Variable apart = tileAs(here, pairs) - tileAs(there, pairs);
      sum(exp(-1.0 * sum(apart * apart, {2}, true)), {0, 1, 2}).backward();
    }
    return concatenate(std::vector<Tensor>{reshape(here.grad().tensor(), {3 * kHere}),
                                           reshape(there.grad().tensor(), {3 * kThere})},
                       0);
  };
  const Done both = run(gradients);
  std::vector<double> want(3 * (kHere + kThere), 0);
  for (Dim i = 0; i < kHere; ++i) {
    for (Dim j = 0; j < kThere; ++j) {
      const double scale = -2 * std::exp(-squared(x, i, y, j, true));
      for (Dim k = 0; k < 3; ++k) {
        const double part = scale * (x.at(i, k, true) - y.at(j, k, true));
        want[k * kHere + i] += part;
        want[3 * kHere + k * kThere + j] -= part;
      }
    }
  }
  expectNear(both.values, want, 1e-5);
  EXPECT_EQ(both.launches, 2u);
  // Both read both sets.
  EXPECT_LE(both.bytes, 4u * 3 * 4 * (kHere + kThere));
}

// Coordinates first are summed up as rows are, and sums over pairs stay those of columns.
TEST(Pairs, HaveTheBitsOfEagerMode) {
  for (const Dim coordinates : {2, 3, 5, 7, 8}) {
    for (const bool last : {false, true}) {
      SCOPED_TRACE(::testing::Message() << coordinates << ", last " << last);
      const Shape here = last ? Shape{1, kHere, coordinates} : Shape{coordinates, 1, kHere};
      const Shape there = last ? Shape{kThere, 1, coordinates} : Shape{coordinates, kThere, 1};
      const auto sums = [=](const Inputs& x) {
        const Tensor apart = x[1] - x[0], square = sum(apart * apart, {last ? 2 : 0}, true);
        const Tensor along = sum(apart * square, {last ? 0 : 1});
        const Tensor across = sum(apart * square, {last ? 1 : 2});
        return concatenate(std::vector<Tensor>{reshape(square, {kHere * kThere}),
                                               reshape(along, {coordinates * kHere}),
                                               reshape(across, {coordinates * kThere})});
      };
      expectBitsAndLaunches({"pairs", {here, there}, sums, 0}, /*areLaunchesKnown=*/false);
    }
  }
}

// As in eager mode, where a sum begins at 0.
TEST(Pairs, ASumOfNegativeZerosIsZero) {
  const Tensor zeros = full({3, 1, kHere}, -0.0), ones = full({3, kThere, 1}, 1.0);
  const Tensor sums = sum(zeros * ones, {0});
  for (const float each : sums.toHostVector<float>()) {
    ASSERT_EQ(each, 0.0f);
    ASSERT_FALSE(std::signbit(each));
  }
}

}  // namespace
}  // namespace fl::testing
