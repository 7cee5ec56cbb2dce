// Reductions over every choice of axes, with and without the reduced dimensions, against NumPy.
#include <gtest/gtest.h>

#include "tests/reference/References.h"

namespace fl::test {
namespace {

// In units of the dtype's last place, relative to the result.
constexpr double kSumUlps = 2;
constexpr double kVarianceUlps = 3;
constexpr double kPowerUlps = 4;
// The rounded exponent 1/3 is off by 1e-8, which counts as often as the logarithm of its base.
constexpr double kLargeRootUlps = 6;

template <typename F>
void reduction(ReferenceCase& c, double ulps, F reduce) {
  const Tensor x = c.tensor("x");
  const std::vector<int> axes = c.integers("axes");
  c.expect("y", reduce(x, axes, true), ulps);
  c.expectAs(shapeWithout(x.shape(), axes), "y", reduce(x, axes, false), ulps);
}

template <typename Find, typename Argument>
void extreme(ReferenceCase& c, Find find, Argument argument) {
  const Tensor x = c.tensor("x");
  const int axis = c.integer("axis");
  const Shape without = shapeWithout(x.shape(), {axis});
  Tensor values, indices;
  find(values, indices, x, axis, true);
  c.expect("values", values);
  c.expect("indices", indices);
  c.expect("indices", argument(x, axis, true));
  find(values, indices, x, axis, false);
  c.expectAs(without, "values", values);
  c.expectAs(without, "indices", indices);
  c.expectAs(without, "indices", argument(x, axis, false));
}

void variance(ReferenceCase& c) {
  reduction(c, kVarianceUlps, [&](const Tensor& x, const std::vector<int>& axes, bool keep) {
    return var(x, axes, c.integer("bias") != 0, keep);
  });
}

void vectorNorm(ReferenceCase& c) {
  const double p = c.number("p");  // stod() reads "-inf"
  const double root = c.text("x").starts_with("ends") ? kLargeRootUlps : kPowerUlps;
  reduction(c, p == 3 ? root : 0.5, [&](const Tensor& x, const std::vector<int>& axes, bool keep) {
    return norm(x, axes, p, keep);
  });
}

using Reduction = Tensor (*)(const Tensor&, const std::vector<int>&, bool);
using Extreme = void (*)(Tensor&, Tensor&, const Tensor&, unsigned, bool);
using ExtremeIndex = Tensor (*)(const Tensor&, unsigned, bool);

std::function<void(ReferenceCase&)> handler(Reduction reduce, double ulps = 0) {
  return [=](ReferenceCase& c) {
    // All other sums are exact.
    const bool rounds = c.text("x") == "positive" || c.text("x").starts_with("ends");
    reduction(c, ulps + (rounds ? kSumUlps : 0), reduce);
  };
}

// `find` gives the values and their indices, `argument` the indices alone.
std::function<void(ReferenceCase&)> handler(Extreme find, ExtremeIndex argument) {
  return [=](ReferenceCase& c) { extreme(c, find, argument); };
}

TEST(Reference, Reductions) {
  runReferences("reductions", {
                                  {"sum", handler(fl::sum)},
                                  {"amin", handler(fl::amin)},
                                  {"amax", handler(fl::amax)},
                                  {"any", handler(fl::any)},
                                  {"all", handler(fl::all)},
                                  {"countNonzero", handler(fl::countNonzero)},
                                  {"mean", handler(fl::mean)},
                                  {"std", handler(fl::std, kVarianceUlps)},
                                  {"min", handler(fl::min, fl::argmin)},
                                  {"max", handler(fl::max, fl::argmax)},
                                  {"var", variance},
                                  {"norm", vectorNorm},
                              });
}

}  // namespace
}  // namespace fl::test
