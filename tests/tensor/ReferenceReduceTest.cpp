// Reductions over every choice of axes, with and without the reduced dimensions, against NumPy.
#include <gtest/gtest.h>

#include <limits>

#include "tests/reference/References.h"

namespace fl::test {
namespace {

// In units of the dtype's last place, relative to the result.
constexpr double kSumUlps = 2;
constexpr double kVarianceUlps = 3;
constexpr double kPowerUlps = 4;

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
  const double p = c.text("p") == "inf" ? std::numeric_limits<double>::infinity() : c.number("p");
  reduction(c, p == 3 ? kPowerUlps : 0.5,
            [&](const Tensor& x, const std::vector<int>& axes, bool keep) {
              return norm(x, axes, p, keep);
            });
}

using Reduction = Tensor (*)(const Tensor&, const std::vector<int>&, bool);
using Extreme = void (*)(Tensor&, Tensor&, const Tensor&, unsigned, bool);
using ExtremeIndex = Tensor (*)(const Tensor&, unsigned, bool);

std::function<void(ReferenceCase&)> handler(Reduction reduce, double ulps = 0) {
  return [=](ReferenceCase& c) {
    // The sums of "positive" alone are not exact.
    reduction(c, ulps + (c.text("x") == "positive" ? kSumUlps : 0), reduce);
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
