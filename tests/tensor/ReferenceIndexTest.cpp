// Parts of tensors, read and written, against NumPy.
#include <gtest/gtest.h>

#include "tests/reference/References.h"

namespace fl::test {
namespace {

template <typename Operand>
void update(Tensor view, const std::string& operation, const Operand& operand) {
  if (operation == "set") {
    std::move(view) = operand;
  } else if (operation == "add") {
    view += operand;
  } else if (operation == "sub") {
    view -= operand;
  } else if (operation == "mul") {
    view *= operand;
  } else {
    ASSERT_EQ(operation, "div");
    view /= operand;
  }
}

void write(ReferenceCase& c) {
  Tensor x = c.tensor("x");
  const Tensor before = x;
  if (c.has("value")) {
    update(c.part(x), c.text("op"), c.integer("value"));
  } else {
    update(c.part(x), c.text("op"), c.tensor("y"));
  }
  c.expect("x", x);
  EXPECT_TRUE(all(before == c.tensor("x")).scalar<char>())
      << "a copy made before the write has changed";
}

TEST(Reference, Indexing) {
  runReferences("indexing", {
                                {"read", [](auto& c) { c.expect("y", c.part(c.tensor("x"))); }},
                                {"write", write},
                            });
}

}  // namespace
}  // namespace fl::test
