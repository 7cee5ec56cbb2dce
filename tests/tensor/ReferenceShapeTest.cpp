// Functions that move or choose elements, quotients and remainders, and matrix products, against
// NumPy.
#include <gtest/gtest.h>

#include "tests/reference/References.h"

namespace fl::test {
namespace {

// In units of the dtype's last place.
constexpr double kPowerUlps = 2.5;
constexpr double kSigmoidUlps = 2;

// "1:2;0:3"
void padded(ReferenceCase& c) {
  std::vector<std::pair<int, int>> widths;
  std::istringstream in(c.text("widths"));
  for (std::string pair; std::getline(in, pair, ';');) {
    widths.emplace_back(std::stoi(pair), std::stoi(pair.substr(pair.find(':') + 1)));
  }
  const std::string& mode = c.text("mode");
  const PadType type = mode == "constant" ? PadType::Constant
                       : mode == "edge"   ? PadType::Edge
                                          : PadType::Symmetric;
  c.expect("y", pad(c.tensor("x"), widths, type));
}

void tiled(ReferenceCase& c) {
  const std::vector<int> counts = c.integers("shape");
  c.expect("y", tile(c.tensor("x"), Shape(std::vector<Dim>(counts.begin(), counts.end()))));
}

void clipped(ReferenceCase& c) {
  const Tensor x = c.tensor("x");
  if (c.has("lowTensor")) {
    c.expect("y", clip(x, c.tensor("lowTensor"), c.tensor("highTensor")));
  } else {
    c.expect("y", clip(x, c.number("low"), c.number("high")));
  }
}

void chosen(ReferenceCase& c) {
  const Tensor condition = c.tensor("c"), x = c.tensor("x");
  c.expect("y", c.has("value") ? where(condition, x, c.number("value"))
                               : where(condition, x, c.tensor("y")));
}

void raised(ReferenceCase& c) {
  const Tensor x = c.tensor("x");
  c.expect("y",
           c.has("base")       ? power(c.number("base"), x)
           : c.has("exponent") ? power(x, c.number("exponent"))
                               : power(x, c.tensor("y")),
           kPowerUlps);
}

void counted(ReferenceCase& c) {
  const auto shape = [&](const char* key) {
    const std::vector<int> sizes = c.integers(key);
    return Shape(std::vector<Dim>(sizes.begin(), sizes.end()));
  };
  c.expect("y", iota(shape("dims"), shape("tile"), stringToDtype(c.text("type"))));
}

void product(ReferenceCase& c) {
  const auto property = [&](const char* key) {
    return c.integer(key) ? MatrixProperty::Transpose : MatrixProperty::None;
  };
  c.expect("y", matmul(c.tensor("x"), c.tensor("y"), property("tx"), property("ty")));
}

TEST(Reference, Shapes) {
  runReferences(
      "shapes",
      {
          {"pad", padded},
          {"tile", tiled},
          {"clip", clipped},
          {"flip", [](auto& c) { c.expect("y", flip(c.tensor("x"), c.integer("axis"))); }},
          {"roll",
           [](auto& c) {
             c.expect("y", roll(c.tensor("x"), c.integer("shift"), c.integer("axis")));
           }},
          {"tril", [](auto& c) { c.expect("y", tril(c.tensor("x"))); }},
          {"triu", [](auto& c) { c.expect("y", triu(c.tensor("x"))); }},
          {"concatenate",
           [](auto& c) { c.expect("y", concatenate(c.tensors("x"), c.integer("axis"))); }},
          {"nonzero", [](auto& c) { c.expect("y", nonzero(c.tensor("x"))); }},
          {"where", chosen},
          {"minimum", [](auto& c) { c.expect("y", minimum(c.tensor("x"), c.number("number"))); }},
          {"maximum", [](auto& c) { c.expect("y", maximum(c.number("number"), c.tensor("x"))); }},
          {"sigmoid", [](auto& c) { c.expect("y", sigmoid(c.tensor("x")), kSigmoidUlps); }},
          {"power", raised},
          {"isInvalidArray",
           [](auto& c) { c.expect("y", fromScalar(isInvalidArray(c.tensor("x")), dtype::b8)); }},
          {"identity",
           [](auto& c) {
             c.expect("y", identity(c.integer("dim"), stringToDtype(c.text("type"))));
           }},
          {"iota", counted},
          {"sub", [](auto& c) { c.expect("y", c.tensor("x") - c.tensor("y")); }},
          {"div", [](auto& c) { c.expect("y", c.tensor("x") / c.tensor("y")); }},
          {"mod", [](auto& c) { c.expect("y", c.tensor("x") % c.tensor("y")); }},
      });
}

// All sums are exact.
TEST(Reference, Matmul) { runReferences("matmul", {{"matmul", product}}); }

}  // namespace
}  // namespace fl::test
