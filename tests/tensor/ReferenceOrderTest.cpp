// Sorting, cumulative sums and medians against NumPy.
#include <gtest/gtest.h>

#include "tests/reference/References.h"

namespace fl::test {
namespace {

SortMode mode(const ReferenceCase& c) {
  return c.text("mode") == "up" ? SortMode::Ascending : SortMode::Descending;
}

// Both forms of sort, and argsort.
void sorted(ReferenceCase& c) {
  const Tensor x = c.tensor("x");
  Tensor values, indices;
  sort(values, indices, x, c.integer("axis"), mode(c));
  c.expect("values", values);
  c.expect("indices", indices);
  c.expect("values", sort(x, c.integer("axis"), mode(c)));
  c.expect("indices", argsort(x, c.integer("axis"), mode(c)));
}

void top(ReferenceCase& c) {
  Tensor values, indices;
  topk(values, indices, c.tensor("x"), c.integer("k"), c.integer("axis"), mode(c));
  c.expect("values", values);
  c.expect("indices", indices);
}

TEST(Reference, Order) {
  runReferences(
      "order",
      {
          {"sort", sorted},
          {"topk", top},
          {"cumsum", [](auto& c) { c.expect("y", cumsum(c.tensor("x"), c.integer("axis"))); }},
          {"median",
           [](auto& c) {
             const auto axes = c.integers("axes");
             const Tensor x = c.tensor("x");
             // The mean of the middle two is rounded twice for 16-bit floats.
             const double ulps = getTypeSize(x.type()) == 2 && isFloating(x.type()) ? 1 : 0;
             c.expect("y", median(x, axes, true), ulps);
             c.expectAs(shapeWithout(x.shape(), axes), "y", median(x, axes), ulps);
           }},
      });
}

}  // namespace
}  // namespace fl::test
