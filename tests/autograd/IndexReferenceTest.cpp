// Gradients of parts of a Variable against NumPy's add.at: each use of an element adds to its
// gradient.
#include <gtest/gtest.h>

#include "fl/autograd/Variable.h"
#include "tests/reference/References.h"

namespace fl {
namespace {

void gradient(test::ReferenceCase& c) {
  const Variable x(c.tensor("x"), true);
  const auto levels = c.levels();
  Variable y = c.has("flat") ? x.flat(levels[0][0]) : x(levels[0]);
  for (size_t i = 1; i < levels.size(); ++i) {
    y = y(levels[i]);
  }
  y.backward(Variable(c.tensor("g"), false));
  c.expect("x", x.grad().tensor());
}

TEST(Reference, GradientsOfParts) { test::runReferences("gradients", {{"gradient", gradient}}); }

}  // namespace
}  // namespace fl
